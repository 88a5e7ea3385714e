"""The frozen row of an operation, with typed ids, for other rooms. It is built from a whole row of the table, by
position."""

from dataclasses import dataclass
from typing import NewType

from ..kit.json_types import Json
from ..kit.rows import RawRow

OperationId = NewType("OperationId", str)
TargetId = NewType("TargetId", str)
BatchId = NewType("BatchId", str)


@dataclass(frozen=True)
class OperationRow:
    """The columns of `tables.operations`, in their order."""

    id: OperationId
    target_kind: str
    target_id: TargetId
    lock_key: str
    lock_shared: int
    scope_kind: str
    scope_id: str
    tenant_id: str | None
    payer_id: str
    kind: str
    app_slug: str
    version: str
    assigned_to: str | None
    turn: int
    status: str
    phase: str
    step: int
    steps: int
    furthest_step: int
    message: str
    error: Json | None
    adapter_detail: Json | None
    evidence: Json | None
    attempts: int
    claim_epoch: int
    claimed_by: str | None
    claimant_id: str | None
    lease_expires_at: int | None
    not_before: int
    cancel_requested: int
    retry_of: OperationId | None
    batch_id: BatchId | None
    from_state: str | None
    params: Json | None
    details: Json | None
    deadline_at: int | None
    expected_phase_s: int | None
    progressed_at: int | None
    stuck_reason: str | None
    stuck_since: int | None
    correlation_id: str
    requested_by: str
    created_at: int
    started_at: int | None
    finished_at: int | None

    @property
    def project_id(self) -> str | None:
        return self.scope_id if self.scope_kind == "project" else None

    @classmethod
    def of(cls, row: RawRow) -> "OperationRow":
        return cls(*row)


@dataclass(frozen=True)
class OutcomeRow:
    """The kind and the status of an operation."""

    id: OperationId
    kind: str
    status: str
