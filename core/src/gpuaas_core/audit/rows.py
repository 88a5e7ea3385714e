"""The dataclass for a row of the audit trail."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AuditRow:
    """The columns of `tables.audit`, in their order."""

    tenant_id: str
    sequence: int
    at: int
    actor_id: str
    actor_kind: str
    permission: str
    outcome: str
    reason: str
    project_id: str | None
    resource_id: str | None
    correlation_id: str
    trace_id: str
    hash: str
    via: str | None
    on_behalf_of: str | None
