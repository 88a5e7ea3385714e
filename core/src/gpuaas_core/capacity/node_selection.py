"""Selects nodes for a project that requested a kind of node instead of certain nodes: they are free, ready and allowed
by policy, in the order of their names.

Either all requested nodes are selected, or none. Nodes locked by other requests are skipped; if too few remain, the
query is repeated and waits for the locks.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, exists, select, tuple_

from ..authz.context import Context
from ..kit.problems import NotFound
from ..kit.rows import Query
from ..kit.wire import counted
from ..policy.reads import judge, overlays_for, require
from .errors import CapacityShort
from .reads import NODES
from .rows import NodeRow, PoolRow
from .schemas import Want
from .tables import allocations, nodes, pools

Kind = tuple[str, str]  # region and SKU
_HELD = exists().where(allocations.c.node_id == nodes.c.id, allocations.c.state != "released")
# A second query: the first may have run before a concurrent allocation was committed.
_STILL_FREE = NODES.where(nodes.c.id.in_(bindparam("ids", expanding=True)), nodes.c.state == "ready", ~_HELD).order_by(
    nodes.c.name, nodes.c.id
)
_POOL = select(pools).where(pools.c.tenant_id == bindparam("tenant"), pools.c.name == bindparam("name"))
_POOLS = {False: Query(_POOL, PoolRow), True: Query(_POOL.with_for_update(read=True), PoolRow)}


def pick(ctx: Context, want: Want) -> Sequence[NodeRow]:
    """Lock and return the wanted number of free nodes, or raise CapacityShort. Locked nodes stay free, because every
    allocation locks its node's row."""
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


def _locked(ctx: Context, want: Want, kinds: list[Kind], *, limit: int | None, skip_locked: bool) -> Sequence[NodeRow]:
    query = NODES.where(*_wanted(ctx, want), tuple_(nodes.c.region, nodes.c.sku).in_(kinds))
    query = query.order_by(nodes.c.name, nodes.c.id).locked(nodes, skip_locked=skip_locked)
    locked = (query if limit is None else query.limit(limit)).all(ctx.tx)
    return _STILL_FREE.all(ctx.tx, ids=[row.id for row in locked])


def _wanted(ctx: Context, want: Want) -> list[ColumnElement[bool]]:
    n = nodes.c
    named = ((n.region, want.region), (n.sku, want.sku), (n.pool, want.pool))
    wanted = [column == value for column, value in named if value is not None]
    return [n.tenant_id == ctx.scope.tenant_id, n.state == "ready", ~_HELD, *wanted]


def _allowed_kinds(ctx: Context, want: Want) -> list[Kind]:
    """Return the regions and SKUs of free nodes that policy allows. Raises an error if the requested region or SKU is
    not allowed, or the requested pool does not exist."""
    overlays = overlays_for(ctx.tx, ctx.scope)
    for field, value in (("regions", want.region), ("skus", want.sku)):
        if value is not None:
            require(overlays, field, value, of="These nodes cannot be held")
    if want.pool is not None:
        pool_row(ctx.tx, str(ctx.scope.tenant_id), want.pool)
    kinds = select(nodes.c.region, nodes.c.sku).where(*_wanted(ctx, want)).distinct()
    pairs = sorted((region, sku) for region, sku in ctx.tx.execute(kinds))
    return [p for p in pairs if judge(overlays, "regions", p[0]).allowed and judge(overlays, "skus", p[1]).allowed]


def pool_row(tx: Connection, tenant_id: str, name: str, *, lock: bool = False) -> PoolRow:
    """Return the pool, or raise NotFound. `lock`: the pool cannot be deleted until the transaction ends."""
    row = _POOLS[lock].first(tx, tenant=tenant_id, name=name)
    if row is None:
        raise NotFound(f"The tenant has no pool named {name!r}.")
    return row
