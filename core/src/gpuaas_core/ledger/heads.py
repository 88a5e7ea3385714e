"""The counter row of a tenant: the last lock a transaction takes, so numbers are dense and become visible in order."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from ..kit.db import insert_into
from .tables import event_heads


def advance(tx: Connection, tenant_id: str, *, events: int = 0, audits: int = 0) -> tuple[int, int]:
    """Moves the counters on and returns them; the row is made when it is the first, also when two come first."""
    t = event_heads.c
    first = insert_into(tx, event_heads).values(tenant_id=tenant_id, sequence=events, audit_sequence=audits)
    moved = {"sequence": t.sequence + events, "audit_sequence": t.audit_sequence + audits}
    upsert = first.on_conflict_do_update(index_elements=[t.tenant_id], set_=moved)
    row = tx.execute(upsert.returning(t.sequence, t.audit_sequence)).one()
    return row.sequence, row.audit_sequence


def hold(tx: Connection, tenant_ids: Iterable[str]) -> None:
    """Who writes to several streams takes their rows in one order, or two such writers could wait for each other."""
    wanted = sorted(set(tenant_ids))
    if len(wanted) > 1:
        for tenant_id in wanted:
            tx.execute(select(event_heads.c.sequence).where(event_heads.c.tenant_id == tenant_id).with_for_update())
