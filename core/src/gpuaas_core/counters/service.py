"""Advances the counter row of a tenant: the last lock of a transaction, so numbers are dense and visible in order.

Events and audit rows are numbered here, and each audit row is linked to the previous while the row is locked.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, update

from ..kit.db import insert_of
from ..kit.rows import Changes, WriteQuery
from .tables import event_heads

PLATFORM = "platform"  # the counter of events and audit rows without a tenant

# Part of every change, so built once.
_LOCK = select(event_heads.c.sequence).where(event_heads.c.tenant_id == bindparam("tenant")).with_for_update()
_LINK = Changes(event_heads, "tenant_id")


@dataclass(frozen=True)
class Advanced:
    """The counters after this transaction's rows, and the hash of the newest audit row before them."""

    sequence: int
    audit_sequence: int
    audit_hash: str


def advance(tx: Connection, tenant_id: str, *, events: int = 0, audits: int = 0) -> Advanced:
    """Advance the tenant's counters and keep the row locked until the transaction ends. The first call creates the
    row."""
    return _moving(tx.dialect.name).one(tx, tenant_id=tenant_id, sequence=events, audit_sequence=audits)


@functools.cache
def _moving(dialect: str) -> WriteQuery[Advanced]:
    """Build the statement that advances the counters, once per database dialect."""
    t = event_heads.c
    first = insert_of(dialect, event_heads)
    new = first.excluded
    moved = {"sequence": t.sequence + new.sequence, "audit_sequence": t.audit_sequence + new.audit_sequence}
    upsert = first.on_conflict_do_update(index_elements=[t.tenant_id], set_=moved)
    return WriteQuery(upsert, event_heads, Advanced, ("tenant_id", "sequence", "audit_sequence"))


def link(tx: Connection, tenant_id: str, audit_hash: str) -> None:
    """Store the hash of the newest audit row. Only while the row is locked by `advance`."""
    _LINK.run(tx, tenant_id, {"audit_hash": audit_hash})


def hold(tx: Connection, tenant_ids: Iterable[str]) -> None:
    """Lock the counters of several tenants in a fixed order, to avoid deadlocks."""
    wanted = sorted(set(tenant_ids))
    if len(wanted) > 1:
        for tenant_id in wanted:
            tx.execute(_LOCK, {"tenant": tenant_id})


def mark_anchored(tx: Connection, tenant_id: str, sequence: int) -> None:
    """Raise the anchored sequence, after the file with the checkpoint was synced to disk. Never lowers it."""
    behind = (event_heads.c.tenant_id == tenant_id) & (event_heads.c.audit_anchored < sequence)
    tx.execute(update(event_heads).where(behind).values(audit_anchored=sequence))


def reset_anchored(tx: Connection, tenant_id: str) -> None:
    tx.execute(update(event_heads).where(event_heads.c.tenant_id == tenant_id).values(audit_anchored=0))
