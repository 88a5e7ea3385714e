"""The position and the lease of event forwarding. They are stored in the database, so that they survive a restart and
only one replica forwards at a time."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select, update

from ..counters.reads import COUNTERS
from ..kit.db import insert_into
from .fanout_tables import fanout_lease, fanout_positions

LEASE_MS = 15_000
_THE_ONE = "fanout"


@dataclass(frozen=True)
class Waiting:
    tenant_id: str
    position: int
    head: int


def take_lease(tx: Connection, holder: str, now: int) -> bool:
    """Take or extend the lease and return True; return False if another replica holds it."""
    values = {"name": _THE_ONE, "holder": holder, "expires_at": now + LEASE_MS}
    lease = fanout_lease.c
    free = (lease.holder == holder) | (lease.expires_at < now)
    insert = insert_into(tx, fanout_lease).values(**values)
    change = {"holder": holder, "expires_at": now + LEASE_MS}
    tx.execute(insert.on_conflict_do_update(index_elements=["name"], set_=change, where=free))
    return tx.execute(select(lease.holder).where(lease.name == _THE_ONE)).scalar_one() == holder


def waiting(tx: Connection) -> list[Waiting]:
    """Return the tenants with events that were not forwarded yet."""
    position = func.coalesce(fanout_positions.c.sequence, 0)
    joined = COUNTERS.outerjoin(fanout_positions, fanout_positions.c.tenant_id == COUNTERS.c.tenant_id)
    query = select(COUNTERS.c.tenant_id, position, COUNTERS.c.sequence).select_from(joined)
    return [Waiting(*row) for row in tx.execute(query.where(COUNTERS.c.sequence > position))]


def moved(tx: Connection, holder: str, tenant_id: str, sequence: int, now: int) -> bool:
    """Store the position of a tenant, unless a higher one is stored. Return False if another replica has the lease."""
    if not take_lease(tx, holder, now):
        return False
    known = insert_into(tx, fanout_positions).values(tenant_id=tenant_id, sequence=sequence)
    tx.execute(known.on_conflict_do_nothing())
    mine = (fanout_positions.c.tenant_id == tenant_id) & (fanout_positions.c.sequence < sequence)
    tx.execute(update(fanout_positions).where(mine).values(sequence=sequence))
    return True


def lag(tx: Connection, now: int) -> int:
    """Return the number of events that were not forwarded yet; 0 while no replica forwards."""
    alive = select(fanout_lease.c.name).where(fanout_lease.c.expires_at >= now)
    return sum(stream.head - stream.position for stream in waiting(tx)) if tx.execute(alive).first() else 0
