"""Finds the audit rows with one correlation id, in all tenants. The calling room decides who may see which row."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, or_, select

from ..kit.rows import Query
from .tables import audit


@dataclass(frozen=True)
class RecordedDecision:
    tenant_id: str
    at: int
    actor_id: str
    permission: str
    outcome: str
    reason: str
    project_id: str | None
    resource_id: str | None
    trace_id: str


_a = audit.c
_NEWEST = (
    Query(
        select(
            _a.tenant_id,
            _a.at,
            _a.actor_id,
            _a.permission,
            _a.outcome,
            _a.reason,
            _a.project_id,
            _a.resource_id,
            _a.trace_id,
        ).limit(bindparam("most")),
        RecordedDecision,
    )
    .where(
        _a.correlation_id == bindparam("correlation"),
        or_(_a.outcome != "allowed", _a.permission != bindparam("left_out")),
    )
    .order_by(_a.at.desc(), _a.sequence.desc(), _a.tenant_id)
)


def decisions(tx: Connection, correlation_id: str, *, left_out: str, limit: int) -> list[RecordedDecision]:
    """Return the last `limit` decisions in chronological order:
    denials, and grants of every permission except `left_out`."""
    return _NEWEST.all(tx, correlation=correlation_id, left_out=left_out, most=limit)[::-1]
