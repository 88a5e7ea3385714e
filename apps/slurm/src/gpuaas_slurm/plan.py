"""From an instance and its members to what shall run where. Pure; the reconcilers call it first.

Everything is computed from members: a single-node cluster is the case in which controller and worker share an
allocation; one of several workers may share it, too. Nothing below assumes that they do.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from gpuaas_slurm import validate

UNIX_USER = "gpuaas"
INPUTS = {"cluster_name", "partition", "default_time_limit_minutes", "gpu_type"}


class MemberLike(Protocol):
    """The part of the SDK's MemberView that the plan reads."""

    @property
    def id(self) -> str: ...
    @property
    def component_key(self) -> str: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def allocation_id(self) -> Any: ...
    @property
    def node_name(self) -> Any: ...
    @property
    def address(self) -> Any: ...


class BadPlan(ValueError):
    """The members do not make a cluster this version can build."""


@dataclass(frozen=True)
class Seat:
    """One member on its allocation."""

    member_id: str
    allocation_id: str
    ordinal: int
    host: str
    address: str

    @property
    def node(self) -> str:
        """The Slurm node name: unique by member, since two hosts with one name merge silently."""
        tail = self.member_id.rsplit("_", 1)[-1][-8:]
        return validate.word("node", f"worker{self.ordinal}-{tail}")


@dataclass(frozen=True)
class Plan:
    instance_id: str
    cluster: str
    account: str
    partition: str
    minutes: int
    gpu_type: str
    controller: Seat
    workers: tuple[Seat, ...]
    user: str = UNIX_USER

    @property
    def allocations(self) -> tuple[str, ...]:
        """Every allocation once, the controller's first."""
        return tuple(dict.fromkeys([self.controller.allocation_id, *(w.allocation_id for w in self.workers)]))

    def workers_on(self, allocation_id: str) -> tuple[Seat, ...]:
        return tuple(w for w in self.workers if w.allocation_id == allocation_id)


def make(
    instance_id: str,
    name: str,
    inputs: dict[str, Any],
    members: Iterable[MemberLike],
    project_id: str,
    project_slug: str | None = None,
) -> Plan:
    validate.known_keys(inputs, INPUTS)
    seats = _seats(members)
    return Plan(
        instance_id=validate.word("id", instance_id),
        cluster=validate.word("cluster_name", inputs.get("cluster_name") or _cluster_from(name, instance_id)),
        account=validate.word("account", account_for(project_id, project_slug)),
        partition=validate.word("partition", inputs.get("partition", "main")),
        minutes=validate.whole("default_time_limit_minutes", inputs.get("default_time_limit_minutes", 60), 1, 43200),
        gpu_type=validate.word("gpu_type", inputs.get("gpu_type", "gpu")),
        controller=seats["controller"][0],
        workers=tuple(seats["worker"]),
    )


def account_for(project_id: str, project_slug: str | None) -> str:
    """The Slurm account of a project: its slug when that is a usable word, else a word made of its id."""
    fallback = "prj-" + validate.word("id", project_id).rsplit("_", 1)[-1][-10:]
    made = validate.slug(project_slug or "", fallback)
    return made if made not in validate.RESERVED["account"] else fallback


def _cluster_from(name: str, instance_id: str) -> str:
    return validate.slug(name, "slurm-" + validate.word("id", instance_id).rsplit("_", 1)[-1][-8:])


def _seats(members: Iterable[MemberLike]) -> dict[str, list[Seat]]:
    seats: dict[str, list[Seat]] = {"controller": [], "worker": []}
    for member in sorted(members, key=lambda m: (m.component_key, m.ordinal)):
        if member.component_key in seats:
            seats[member.component_key].append(_seat(member))
    if len(seats["controller"]) != 1:
        raise BadPlan(f"A cluster has exactly one controller; this instance has {len(seats['controller'])}.")
    if not seats["worker"]:
        raise BadPlan("A cluster needs at least one worker; this instance has none.")
    return seats


def _seat(member: MemberLike) -> Seat:
    if not member.allocation_id or not member.address:
        raise BadPlan(f"Member {member.id} has no machine yet.")
    return Seat(
        member_id=validate.word("id", member.id),
        allocation_id=validate.word("id", member.allocation_id),
        ordinal=validate.whole("ordinal", member.ordinal, 0, 9999),
        host=str(member.node_name or member.address),  # only ever shown to people
        address=validate.address(member.address),
    )
