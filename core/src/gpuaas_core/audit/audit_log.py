"""Audit rows: who did what under which permission, allowed or denied. Written in the transaction of the change.

Rows are append-only, each linked to the previous (`chain.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from ..events.event_log import PLATFORM
from ..events.heads import advance
from ..events.tables import event_heads
from ..kit.clock import rfc3339
from ..kit.correlation import correlate
from .chain import link
from .tables import audit

# A change across a boundary: the caller got a 404, and is not shown this row either.
NOT_VISIBLE = "the resource is not visible to the caller"
NO_SEQUENCE = 2**62  # above every sequence, and within the database's integer range

# Part of every change, so built once.
_ADD = insert(audit)
_LINK = update(event_heads).where(event_heads.c.tenant_id == bindparam("tenant"))


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
    via: str | None = None  # id of the delegation or break-glass that granted the permission
    on_behalf_of: str | None = None  # who granted it; the actor stays the actor


@dataclass
class Filter:
    """A filter of rows; None matches anything. `permission` is a prefix of a key."""

    actor: str | None = None
    permission: str | None = None
    outcome: str | None = None
    correlation_id: str | None = None
    project: str | None = None


def append(tx: Connection, entry: Entry, *, correlation_id: str, trace_id: str, now: int) -> None:
    tenant_id = entry.tenant_id or PLATFORM
    # The head stays locked: two writers never link to the same row.
    _, sequence, previous = advance(tx, tenant_id, audits=1)
    row = {
        "tenant_id": tenant_id,
        "sequence": sequence,
        "at": now,
        "actor_id": entry.actor_id,
        "actor_kind": entry.actor_kind,
        "permission": entry.permission,
        "outcome": entry.outcome,
        "reason": entry.reason[:1000],
        "project_id": entry.project_id,
        "resource_id": entry.resource_id,
        "correlation_id": correlation_id,
        "trace_id": trace_id,
        "via": entry.via,
        "on_behalf_of": entry.on_behalf_of,
    }
    row["hash"] = link(previous, row)
    tx.execute(_ADD, row)
    tx.execute(_LINK, {"tenant": tenant_id, "audit_hash": row["hash"]})


def by_operator(tx: Connection, permission: str, reason: str, now: int, tenant_id: str | None = None) -> None:
    """Records what was done on the platform's own host, not through the API."""
    entry = Entry("operator", "operator", permission, "allowed", reason, tenant_id, None, None)
    seen = correlate(None, None)
    append(tx, entry, correlation_id=seen.correlation_id, trace_id=seen.trace_id, now=now)


def begin_again(tx: Connection, tenant_id: str, reason: str, now: int) -> None:
    """Reset the anchored position, and record why. By the operator, on the platform's host."""
    by_operator(tx, "ledger.audit.restart", reason, now, tenant_id)
    tx.execute(update(event_heads).where(event_heads.c.tenant_id == tenant_id).values(audit_anchored=0))


def after(tx: Connection, tenant_id: str, sequence: int, *, limit: int, only: Filter) -> list[dict[str, Any]]:
    newest = min(sequence, NO_SEQUENCE)
    query = select(audit).where(audit.c.tenant_id == tenant_id, audit.c.sequence > newest, *_matching(only))
    return _views(tx.execute(query.order_by(audit.c.sequence).limit(limit)))


def before(tx: Connection, tenant_id: str, sequence: int, *, limit: int, only: Filter) -> list[dict[str, Any]]:
    """Newest first; 0 starts at the end of the trail."""
    query = select(audit).where(audit.c.tenant_id == tenant_id, *_matching(only))
    if sequence:
        query = query.where(audit.c.sequence < min(sequence, NO_SEQUENCE))
    return _views(tx.execute(query.order_by(audit.c.sequence.desc()).limit(limit)))


def _views(rows: Iterable[Row[Any]]) -> list[dict[str, Any]]:
    return [dict(row._mapping) | {"at": rfc3339(row.at)} for row in rows]


def _matching(only: Filter) -> list[Any]:
    exact = {
        audit.c.actor_id: only.actor,
        audit.c.outcome: only.outcome,
        audit.c.correlation_id: only.correlation_id,
        audit.c.project_id: only.project,
    }
    wanted = [column == value for column, value in exact.items() if value is not None]
    if only.permission is not None:
        wanted.append(audit.c.permission.startswith(only.permission, autoescape=True))
    return wanted
