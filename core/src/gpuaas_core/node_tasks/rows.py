"""The row of a task for other rooms, and the properties of a node and an allocation that queueing a task needs."""

from dataclasses import dataclass
from typing import NewType, Protocol

from ..authz.ids import PrincipalId, ProjectId, TenantId
from ..kit.json_types import Json

TaskId = NewType("TaskId", str)


@dataclass(frozen=True)
class TaskRow:
    """The columns of `tables.node_tasks`, in their order."""

    id: TaskId
    tenant_id: TenantId
    node_id: str
    allocation_id: str | None
    project_id: ProjectId | None
    operation_id: str | None
    kind: str
    arguments: Json
    epoch: int
    idempotent: bool
    state: str
    attempt: int
    lease_expires_at: int | None
    deadline_at: int
    message: str
    evidence: Json
    asked_by: PrincipalId
    correlation_id: str
    created_at: int
    started_at: int | None
    ended_at: int | None


class Node(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def tenant_id(self) -> TenantId: ...


class Allocation(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def project_id(self) -> ProjectId: ...
