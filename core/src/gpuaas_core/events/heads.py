"""The counter row of a tenant: the last lock of a transaction, so numbers are dense and become visible in order."""

import functools
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select

from ..kit.db import insert_of
from .tables import event_heads


def advance(tx: Connection, tenant_id: str, *, events: int = 0, audits: int = 0) -> tuple[int, int, str]:
    """Advance the counters; returns them and the newest audit hash. The first call creates the row, also if two are
    concurrent."""
    by = {"tenant_id": tenant_id, "sequence": events, "audit_sequence": audits}
    row = tx.execute(_moving(tx.dialect.name), by).one()
    return row.sequence, row.audit_sequence, row.audit_hash


@functools.cache
def _moving(dialect: str) -> Any:
    """Part of every change, so built once per database dialect."""
    t = event_heads.c
    first = insert_of(dialect, event_heads)
    new = first.excluded
    moved = {"sequence": t.sequence + new.sequence, "audit_sequence": t.audit_sequence + new.audit_sequence}
    upsert = first.on_conflict_do_update(index_elements=[t.tenant_id], set_=moved)
    return upsert.returning(t.sequence, t.audit_sequence, t.audit_hash)


def hold(tx: Connection, tenant_ids: Iterable[str]) -> None:
    """A transaction that writes to several streams locks their rows in one order, to avoid deadlocks."""
    wanted = sorted(set(tenant_ids))
    if len(wanted) > 1:
        for tenant_id in wanted:
            tx.execute(select(event_heads.c.sequence).where(event_heads.c.tenant_id == tenant_id).with_for_update())
