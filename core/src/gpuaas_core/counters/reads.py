"""Queries for the counters. `COUNTERS` is for statements that compare a counter with the rows it counts."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from ..kit.rows import Query, Scalar
from .tables import GENESIS, event_heads

__all__ = ["COUNTERS", "GENESIS", "CounterRow", "all_counters", "anchored", "head"]


@dataclass(frozen=True)
class CounterRow:
    tenant_id: str
    sequence: int
    audit_sequence: int
    audit_hash: str
    audit_anchored: int


COUNTERS = select(event_heads).subquery("counters")

_ALL = Query(select(event_heads).order_by(event_heads.c.tenant_id), CounterRow)
_HEAD = Scalar[int](select(event_heads.c.sequence).where(event_heads.c.tenant_id == bindparam("tenant")))
_ANCHORED = select(event_heads.c.audit_anchored).where(event_heads.c.tenant_id == bindparam("tenant"))


def all_counters(tx: Connection) -> list[CounterRow]:
    return _ALL.all(tx)


def head(tx: Connection, tenant_id: str) -> int:
    """Return the sequence number of the tenant's newest event; 0 before the first event."""
    return _HEAD.first(tx, tenant=tenant_id) or 0


def anchored(tx: Connection, tenant_id: str) -> int:
    """Return the sequence number of the newest audit row that a checkpoint covers; 0 before the first checkpoint."""
    return tx.execute(_ANCHORED, {"tenant": tenant_id}).scalar() or 0
