"""Audit rows: actor, permission, resource, and whether the request was allowed.
A row is written in the transaction of the change that it records.

Rows are append-only; the hash of each row covers the hash of the previous row (`chain.py`).
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

# The reason of a denial that the caller saw as a 404; triage does not show the row to the caller.
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
    on_behalf_of: str | None = None  # the principal who granted it; `actor_id` is still the caller


@dataclass
class Filter:
    """Conditions for audit rows; None matches anything. `permission` matches every key that starts with it."""

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
    """Append one row to the trail. `moved`: the tenant's counters,
    if the caller has advanced them for this row already."""
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
    """Append a row for a command that the operator ran on the platform's own host, not through the API."""
    entry = Entry("operator", "operator", permission, "allowed", reason, tenant_id, None, None)
    seen = correlate(None, None)
    append(tx, entry, correlation_id=seen.correlation_id, trace_id=seen.trace_id, now=now)


def begin_again(tx: Connection, tenant_id: str, reason: str, now: int) -> None:
    """Record the reason in the tenant's trail, and reset the position up to which the trail counts as covered by
    checkpoints. Called by the operator's command on the platform's host."""
    by_operator(tx, "ledger.audit.restart", reason, now, tenant_id)
    counters.reset_anchored(tx, tenant_id)


def after(tx: Connection, tenant_id: str, sequence: int, *, limit: int, only: Filter) -> list[AuditRow]:
    newest = min(sequence, NO_SEQUENCE)
    query = _ROWS.where(audit.c.tenant_id == tenant_id, audit.c.sequence > newest, *_matching(only))
    return query.order_by(audit.c.sequence).limit(limit).all(tx)


def before(tx: Connection, tenant_id: str, sequence: int, *, limit: int, only: Filter) -> list[AuditRow]:
    """Return the rows before this sequence number, newest first; 0 starts at the end of the trail."""
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
