"""Instances, members and the operations on them, as typed rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType, TypedDict

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
    """An instance with the kind and the status of its newest operation."""

    last_kind: str | None
    last_status: str | None


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


@dataclass(frozen=True)
class Work(OperationRow):
    """An operation on an instance or a member. Its lock key is the instance's id: exclusive for an operation of the
    instance, shared for operations of members."""

    @property
    def instance_id(self) -> InstanceId:
        return InstanceId(self.lock_key)

    @property
    def member_id(self) -> MemberId | None:
        return MemberId(self.target_id) if self.target_kind == OF_MEMBER else None

    @property
    def old_member_id(self) -> MemberId | None:
        """The member that a replace operation removes, if this is one."""
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
