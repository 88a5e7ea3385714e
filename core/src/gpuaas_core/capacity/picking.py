"""Which machines a project gets that asked for a kind, not for one: free, ready, allowed by policy, in order of name.

All or nothing. What others are just taking is passed by; if that leaves too few, we wait for them and look again.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, exists, select, tuple_

from ..access.context import Context
from ..kit.problems import NotFound
from ..kit.wire import counted
from ..policy.reads import judge, overlays_for, require
from .errors import CapacityShort
from .schemas import Want
from .tables import allocations, nodes, pools

_HELD = exists().where(allocations.c.node_id == nodes.c.id, allocations.c.state != "released")


def pick(ctx: Context, want: Want) -> Sequence[Row[Any]]:
    """Locked, and free while we hold the lock: whoever allocates a machine holds its row."""
    kinds = _allowed_kinds(ctx, want)
    with ctx.tx.begin_nested() as quick:
        found = _locked(ctx, want, kinds, limit=want.count, skip_locked=True)
        if len(found) == want.count:
            return found
        quick.rollback()  # its locks go, so that those who wait for each other wait in the same order
    found = _locked(ctx, want, kinds, limit=None, skip_locked=False)
    if len(found) < want.count:
        told = {"wanted": want.count, "free": len(found)}
        sentence = f"{counted(want.count, 'machine')} asked for; {len(found)} of this kind can be had now."
        raise CapacityShort(sentence, extra={"capacity": told})
    return found[: want.count]


def _locked(ctx: Context, want: Want, kinds: list[Any], *, limit: int | None, skip_locked: bool) -> Sequence[Row[Any]]:
    query = _candidates(ctx, want).where(tuple_(nodes.c.region, nodes.c.sku).in_(kinds)).limit(limit)
    locked = ctx.tx.execute(query.with_for_update(key_share=True, of=nodes, skip_locked=skip_locked)).all()
    return _still_free(ctx.tx, [row.id for row in locked])


def _still_free(tx: Connection, ids: list[str]) -> Sequence[Row[Any]]:
    """A new look: the first one may have seen the moment before somebody else had finished taking one."""
    return tx.execute(_in_order(select(nodes).where(nodes.c.id.in_(ids), nodes.c.state == "ready", ~_HELD))).all()


def _candidates(ctx: Context, want: Want) -> Any:
    n = nodes.c
    named = {n.region: want.region, n.sku: want.sku, n.pool: want.pool}
    wanted = [column == value for column, value in named.items() if value is not None]
    return _in_order(select(nodes).where(n.tenant_id == ctx.scope.tenant_id, n.state == "ready", ~_HELD, *wanted))


def _in_order(query: Any) -> Any:
    return query.order_by(nodes.c.name, nodes.c.id)


def _allowed_kinds(ctx: Context, want: Want) -> list[Any]:
    """What was named must be allowed; of what was left open, only what is allowed counts."""
    overlays = overlays_for(ctx.tx, ctx.scope)
    for field, value in (("regions", want.region), ("skus", want.sku)):
        if value is not None:
            require(overlays, field, value, of="These machines cannot be held")
    if want.pool is not None:
        pool_row(ctx.tx, str(ctx.scope.tenant_id), want.pool)
    found = ctx.tx.execute(_candidates(ctx, want).with_only_columns(nodes.c.region, nodes.c.sku))
    pairs = sorted({(row.region, row.sku) for row in found})
    return [p for p in pairs if judge(overlays, "regions", p[0]).allowed and judge(overlays, "skus", p[1]).allowed]


def pool_row(tx: Connection, tenant_id: str, name: str, *, lock: bool = False) -> Row[Any]:
    """`lock`: it stays there until a machine is in it."""
    query = select(pools).where(pools.c.tenant_id == tenant_id, pools.c.name == name)
    row = tx.execute(query.with_for_update(read=True) if lock else query).first()
    if row is None:
        raise NotFound(f"The tenant has no pool named {name!r}.")
    return row
