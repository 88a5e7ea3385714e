"""Advances the counter row of a tenant, which numbers the tenant's events and audit rows. A transaction locks this row
last, so the numbers have no gaps and become visible in order.

Each audit row is linked to the previous one while the counter row is locked.
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
    """The counters including the rows of this transaction, and the hash of the last audit row before them."""

    sequence: int
    audit_sequence: int
    audit_hash: str


def advance(tx: Connection, tenant_id: str, *, events: int = 0, audits: int = 0) -> Advanced:
    """Advance the tenant's counters and return them.
    The row stays locked until the transaction ends; the first call creates it."""
    return _moving(tx.dialect.name).one(tx, tenant_id=tenant_id, sequence=events, audit_sequence=audits)


@functools.cache
def _moving(dialect: str) -> WriteQuery[Advanced]:
    """Return the statement that advances the counters. It is built once per database dialect."""
    t = event_heads.c
    first = insert_of(dialect, event_heads)
    new = first.excluded
    moved = {"sequence": t.sequence + new.sequence, "audit_sequence": t.audit_sequence + new.audit_sequence}
    upsert = first.on_conflict_do_update(index_elements=[t.tenant_id], set_=moved)
    return WriteQuery(upsert, event_heads, Advanced, ("tenant_id", "sequence", "audit_sequence"))


def link(tx: Connection, tenant_id: str, audit_hash: str) -> None:
    """Store the hash of the newest audit row. The caller has locked the counter row with `advance`."""
    _LINK.run(tx, tenant_id, {"audit_hash": audit_hash})


def hold(tx: Connection, tenant_ids: Iterable[str]) -> None:
    """Lock the counters of several tenants in a fixed order, to avoid deadlocks."""
    wanted = sorted(set(tenant_ids))
    if len(wanted) > 1:
        for tenant_id in wanted:
            tx.execute(_LOCK, {"tenant": tenant_id})


def mark_anchored(tx: Connection, tenant_id: str, sequence: int) -> None:
    """Record that checkpoints cover the audit rows up to this sequence, unless a higher sequence is recorded. Called
    after the checkpoint file was synced to disk."""
    behind = (event_heads.c.tenant_id == tenant_id) & (event_heads.c.audit_anchored < sequence)
    tx.execute(update(event_heads).where(behind).values(audit_anchored=sequence))


def reset_anchored(tx: Connection, tenant_id: str) -> None:
    tx.execute(update(event_heads).where(event_heads.c.tenant_id == tenant_id).values(audit_anchored=0))
