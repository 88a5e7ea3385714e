"""Picks nodes for a project that requested a kind instead of names: free, ready, allowed by policy, in name order.

All or nothing. Nodes locked by other requests are skipped; if too few remain, we wait for those locks and query again.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, exists, select, tuple_

from ..authz.context import Context
from ..kit.problems import NotFound
from ..kit.wire import counted
from ..policy.reads import judge, overlays_for, require
from .errors import CapacityShort
from .schemas import Want
from .tables import allocations, nodes, pools

_HELD = exists().where(allocations.c.node_id == nodes.c.id, allocations.c.state != "released")


def pick(ctx: Context, want: Want) -> Sequence[Row[Any]]:
    """Locked, and free while the lock is held: every allocation locks its node's row."""
    kinds = _allowed_kinds(ctx, want)
    with ctx.tx.begin_nested() as quick:
        picked = _locked(ctx, want, kinds, limit=want.count, skip_locked=True)
        if len(picked) == want.count:
            return picked
        quick.rollback()  # releases its locks, so that all waiters lock in the same order
    picked = _locked(ctx, want, kinds, limit=None, skip_locked=False)
    if len(picked) < want.count:
        figures = {"wanted": want.count, "free": len(picked)}
        sentence = f"{counted(want.count, 'node')} requested; {len(picked)} of this kind available now."
        raise CapacityShort(sentence, extra={"capacity": figures})
    return picked[: want.count]


def _locked(ctx: Context, want: Want, kinds: list[Any], *, limit: int | None, skip_locked: bool) -> Sequence[Row[Any]]:
    query = _candidates(ctx, want).where(tuple_(nodes.c.region, nodes.c.sku).in_(kinds)).limit(limit)
    locked = ctx.tx.execute(query.with_for_update(key_share=True, of=nodes, skip_locked=skip_locked)).all()
    return _still_free(ctx.tx, [row.id for row in locked])


def _still_free(tx: Connection, ids: list[str]) -> Sequence[Row[Any]]:
    """A second query: the first may have run before a concurrent allocation was committed."""
    return tx.execute(_in_order(select(nodes).where(nodes.c.id.in_(ids), nodes.c.state == "ready", ~_HELD))).all()


def _candidates(ctx: Context, want: Want) -> Any:
    n = nodes.c
    named = {n.region: want.region, n.sku: want.sku, n.pool: want.pool}
    wanted = [column == value for column, value in named.items() if value is not None]
    return _in_order(select(nodes).where(n.tenant_id == ctx.scope.tenant_id, n.state == "ready", ~_HELD, *wanted))


def _in_order(query: Any) -> Any:
    return query.order_by(nodes.c.name, nodes.c.id)


def _allowed_kinds(ctx: Context, want: Want) -> list[Any]:
    """A requested value must be allowed; where none was requested, only allowed values are considered."""
    overlays = overlays_for(ctx.tx, ctx.scope)
    for field, value in (("regions", want.region), ("skus", want.sku)):
        if value is not None:
            require(overlays, field, value, of="These nodes cannot be held")
    if want.pool is not None:
        pool_row(ctx.tx, str(ctx.scope.tenant_id), want.pool)
    rows = ctx.tx.execute(_candidates(ctx, want).with_only_columns(nodes.c.region, nodes.c.sku))
    pairs = sorted({(row.region, row.sku) for row in rows})
    return [p for p in pairs if judge(overlays, "regions", p[0]).allowed and judge(overlays, "skus", p[1]).allowed]


def pool_row(tx: Connection, tenant_id: str, name: str, *, lock: bool = False) -> Row[Any]:
    """`lock`: the pool cannot be deleted until a node is in it."""
    query = select(pools).where(pools.c.tenant_id == tenant_id, pools.c.name == name)
    row = tx.execute(query.with_for_update(read=True) if lock else query).first()
    if row is None:
        raise NotFound(f"The tenant has no pool named {name!r}.")
    return row
