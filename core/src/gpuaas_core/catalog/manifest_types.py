"""Types for the parts of a manifest that the core reads. `manifest.schema.json` is the contract; these types follow it.

A manifest is stored and served exactly as it was sent.
"""

from typing import Literal, NotRequired, TypedDict

from ..kit.json_types import Json
from ..policy.modes import DeclaredModes


class Component(TypedDict):
    key: str
    title: str
    min: NotRequired[int]
    max: NotRequired[int | None]
    actions: NotRequired[list[str]]  # of members with this component; omitted: all that the app declares


class PlacementRule(TypedDict):
    """The number of allocations that a component needs in a topology, and the component with which it shares them."""

    min: int
    max: NotRequired[int | None]
    shares_with: NotRequired[str | None]
    may_share_with: NotRequired[str | None]


class Topology(TypedDict):
    key: str
    title: str
    components: dict[str, PlacementRule]


class InputEffect(TypedDict):
    effect: Literal["pushed", "needs_restart", "needs_drain", "refused"]
    sentence: NotRequired[str]


class Timing(TypedDict, total=False):
    deadline_s: int
    expected_phase_s: int


class Action(TypedDict):
    key: str
    title: str
    target: Literal["instance", "member"]
    valid_in: NotRequired[list[str]]  # topologies
    reason_when_not: NotRequired[str]


class Manifest(DeclaredModes):
    version: str
    title: str
    components: list[Component]
    topologies: list[Topology]
    inputs_schema: Json
    input_effects: NotRequired[dict[str, InputEffect]]
    artifact_sources: NotRequired[list[str]]
    operations: NotRequired[dict[str, Timing]]  # by kind
    actions: NotRequired[list[Action]]
