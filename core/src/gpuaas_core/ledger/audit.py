"""Audit rows: who did what under which permission, allowed or denied. No row, no effect: same transaction."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from ..kit.clock import rfc3339
from .events import PLATFORM
from .heads import advance
from .tables import audit

NO_SEQUENCE = 2**62  # beyond every sequence and still a number the store can compare


@dataclass
class Entry:
    actor_id: str
    actor_kind: str
    permission: str
    outcome: str  # allowed, denied
    reason: str
    tenant_id: str | None
    project_id: str | None
    resource_id: str | None


def append(tx: Connection, entry: Entry, *, correlation_id: str, trace_id: str, now: int) -> None:
    tenant_id = entry.tenant_id or PLATFORM
    _, sequence = advance(tx, tenant_id, audits=1)
    tx.execute(
        insert(audit).values(
            tenant_id=tenant_id,
            sequence=sequence,
            at=now,
            actor_id=entry.actor_id,
            actor_kind=entry.actor_kind,
            permission=entry.permission,
            outcome=entry.outcome,
            reason=entry.reason[:1000],
            project_id=entry.project_id,
            resource_id=entry.resource_id,
            correlation_id=correlation_id,
            trace_id=trace_id,
        )
    )


def after(tx: Connection, tenant_id: str, sequence: int, *, limit: int) -> list[dict[str, Any]]:
    newest = min(sequence, NO_SEQUENCE)
    query = select(audit).where(audit.c.tenant_id == tenant_id, audit.c.sequence > newest)
    rows = tx.execute(query.order_by(audit.c.sequence).limit(limit))
    return [dict(row._mapping) | {"at": rfc3339(row.at)} for row in rows]
