"""Audit rows: actor, permission, resource, and whether it was allowed. Written in the transaction of the change.

Rows are append-only; each is linked to the previous one (`chain.py`).
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, insert, select

from ..counters import service as counters
from ..counters.service import PLATFORM
from ..kit.correlation import correlate
from ..kit.rows import Command, Query
from .chain import link
from .rows import AuditRow
from .tables import audit

# A change across a boundary: the caller got a 404, and is not shown this row either.
NOT_VISIBLE = "the resource is not visible to the caller"
NO_SEQUENCE = 2**62  # above every sequence, and within the database's integer range

# Part of every change, so built once.
_ADD = Command(insert(audit), [column.name for column in audit.columns])
_ROWS = Query(select(audit), AuditRow)


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
    """Conditions for audit rows; None matches anything. `permission` is the prefix of a key."""

    actor: str | None = None
    permission: str | None = None
    outcome: str | None = None
    correlation_id: str | None = None
    project: str | None = None


def append(
    tx: Connection,
    entry: Entry,
    *,
    correlation_id: str,
    trace_id: str,
    now: int,
    moved: counters.Advanced | None = None,
) -> None:
    """Append one row to the trail. `moved`: the counters, if they were advanced already for this row."""
    tenant_id = entry.tenant_id or PLATFORM
    # The head stays locked: two writers never link to the same row.
    moved = moved or counters.advance(tx, tenant_id, audits=1)
    row = {
        "tenant_id": tenant_id,
        "sequence": moved.audit_sequence,
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
    digest = link(moved.audit_hash, row)
    _ADD.run(tx, **row, hash=digest)
    counters.link(tx, tenant_id, digest)


def by_operator(tx: Connection, permission: str, reason: str, now: int, tenant_id: str | None = None) -> None:
    """Append a row for a command of the operator on the platform's own host, not through the API."""
    entry = Entry("operator", "operator", permission, "allowed", reason, tenant_id, None, None)
    seen = correlate(None, None)
    append(tx, entry, correlation_id=seen.correlation_id, trace_id=seen.trace_id, now=now)


def begin_again(tx: Connection, tenant_id: str, reason: str, now: int) -> None:
    """Reset the anchored position of a trail, and record the reason. Called by the operator's command on the
    platform's host."""
    by_operator(tx, "ledger.audit.restart", reason, now, tenant_id)
    counters.reset_anchored(tx, tenant_id)


def after(tx: Connection, tenant_id: str, sequence: int, *, limit: int, only: Filter) -> list[AuditRow]:
    newest = min(sequence, NO_SEQUENCE)
    query = _ROWS.where(audit.c.tenant_id == tenant_id, audit.c.sequence > newest, *_matching(only))
    return query.order_by(audit.c.sequence).limit(limit).all(tx)


def before(tx: Connection, tenant_id: str, sequence: int, *, limit: int, only: Filter) -> list[AuditRow]:
    """Return rows before this sequence, newest first; sequence 0 starts at the end of the trail."""
    query = _ROWS.where(audit.c.tenant_id == tenant_id, *_matching(only))
    if sequence:
        query = query.where(audit.c.sequence < min(sequence, NO_SEQUENCE))
    return query.order_by(audit.c.sequence.desc()).limit(limit).all(tx)


def _matching(only: Filter) -> list[ColumnElement[bool]]:
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
