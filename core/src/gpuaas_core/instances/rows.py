"""Instances, members and the operations on them, as typed rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NewType, TypedDict

from pydantic_core import from_json

from ..kit.json_types import Json, JsonValue
from ..operations.rows import OperationId, OperationRow
from .states import OF_MEMBER

InstanceId = NewType("InstanceId", str)
MemberId = NewType("MemberId", str)


class StoredCondition(TypedDict):
    type: str
    status: str
    reason: str
    message: str
    observed_generation: int | None
    last_transition_at: int


@dataclass(frozen=True)
class InstanceRow:
    """The columns of `tables.instances`, in their order."""

    id: InstanceId
    project_id: str
    tenant_id: str
    name: str
    app_slug: str
    version: str
    topology: str
    state: str
    health_status: str
    health_sentence: str
    conditions: Sequence[StoredCondition]
    generation: int
    observed_generation: int
    inputs: Json
    placement_intent: dict[str, list[str]]
    operating_mode: str
    control_plane_scope: str
    runtime_backend: str
    tenant_boundary_mode: str
    operator_id: str | None
    requested: dict[str, str] | None
    previous_version: str | None
    runtime_version: str | None
    access: Json | None
    adapter_detail: Json | None
    last_operation_id: OperationId | None
    correlation_id: str
    created_by: str
    created_at: int
    updated_at: int


@dataclass(frozen=True)
class InstanceAndLastRow(InstanceRow):
    """An instance with the kind and the status of its newest operation, and whether an operation is under way."""

    last_kind: str | None
    last_status: str | None
    has_live: bool


class InstanceSummary(NamedTuple):
    """The fields of an instance that a list of its members needs: its tenant, and the fields that decide which actions
    are possible."""

    id: InstanceId
    tenant_id: str
    app_slug: str
    version: str
    topology: str
    state: str
    observed_generation: int
    previous_version: str | None
    last_operation_id: OperationId | None
    has_live: bool  # an operation is under way


@dataclass(frozen=True)
class MemberRow:
    """A member with its machine and its newest operation."""

    id: MemberId
    instance_id: InstanceId
    component_key: str
    ordinal: int
    state: str
    allocation_id: str
    node_id: str
    runtime_state: str | None
    runtime_version: str | None
    adapter_detail: Json | None
    replaces: MemberId | None
    last_operation_id: OperationId | None
    correlation_id: str
    created_at: int
    updated_at: int
    node_name: str
    address: str
    region: str
    sku: str
    facts: Json
    last_target_kind: str | None
    last_kind: str | None
    last_status: str | None
    last_params: Json | None

    @property
    def host_is_gone(self) -> bool:
        return host_is_gone(self.last_params)


class ListedMember(NamedTuple):
    """A member for lists: the fields of `schemas.MemberView` in their order, then the fields that decide its actions.

    JSON is left as text, because a list does not read it. `current_operation_id` and `available_actions` are selected
    as NULL; the view sets them.
    """

    id: MemberId
    instance_id: InstanceId
    component_key: str
    ordinal: int
    state: str
    allocation_id: str
    node_id: str
    node_name: str
    address: str
    facts: str
    runtime_state: str | None
    runtime_version: str | None
    adapter_detail: str | None
    replaces: MemberId | None
    current_operation_id: None
    last_operation_id: OperationId | None
    available_actions: None
    correlation_id: str
    last_target_kind: str | None
    last_kind: str | None
    last_status: str | None
    last_params: str | None

    @property
    def host_is_gone(self) -> bool:
        text = self.last_params  # rarely has this parameter, so it is rarely parsed
        return text is not None and '"host_is_gone"' in text and host_is_gone(from_json(text))


def host_is_gone(params: Json | None) -> bool:
    return bool((params or {}).get("host_is_gone"))


@dataclass(frozen=True)
class Work(OperationRow):
    """An operation on an instance or a member. Its lock key is the instance's id. Operations of the instance hold the
    key exclusively; operations of members share it, unless they fence a machine."""

    @property
    def instance_id(self) -> InstanceId:
        return InstanceId(self.lock_key)

    @property
    def member_id(self) -> MemberId | None:
        return MemberId(self.target_id) if self.target_kind == OF_MEMBER else None

    @property
    def old_member_id(self) -> MemberId | None:
        """The id of the member that a replace operation removes; None for other operations."""
        found = self._detail("old_member_id")
        return None if found is None else MemberId(found)

    @property
    def from_version(self) -> str | None:
        return self._detail("from_version")

    @property
    def to_version(self) -> str | None:
        return self._detail("to_version")

    def _detail(self, name: str) -> str | None:
        found: JsonValue = (self.details or {}).get(name)
        return found if isinstance(found, str) else None


def work_of(operation: OperationRow) -> Work:
    return operation if isinstance(operation, Work) else Work(**vars(operation))
