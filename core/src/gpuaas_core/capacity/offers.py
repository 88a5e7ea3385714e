"""Regions and SKUs of the platform, and node pools of a tenant."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.problems import NotFound
from ..kit.rows import Dataclass, Query
from . import schemas
from .errors import NameTaken, StillUsed
from .node_selection import pool_row
from .reads import node_row
from .rows import PoolRow, RegionRow, SkuRow
from .tables import nodes, pools, regions, skus

R = TypeVar("R", bound=Dataclass)
# Returns the name of an invited node that will use a region, SKU or pool, or None. Arguments: connection, noun,
# tenant (of a pool), name and time.
ExpectedNode = Callable[[Connection, str, str | None, str, int], str | None]
_EXPECTED: list[ExpectedNode] = []
REGIONS = Query(select(regions), RegionRow)
SKUS = Query(select(skus), SkuRow)
POOLS = Query(select(pools), PoolRow)

declare(
    {
        "capacity.region.created": "A region was created.",
        "capacity.sku.created": "A SKU was created.",
        "capacity.region.deleted": "A region without nodes was deleted.",
        "capacity.sku.deleted": "A SKU without nodes was deleted.",
        "capacity.pool.deleted": "An empty pool was deleted.",
        "capacity.pool.created": "A tenant's pool of nodes was created.",
        "capacity.node.pooled": "A node was added to a pool, or removed from its pool.",
    }
)


def register(expected: ExpectedNode) -> None:
    """Register the function that finds a pending enrolment for a region, SKU or pool.
    Enrolments belong to a room above this one."""
    _EXPECTED[:] = [expected]


def create_region(ctx: Context, body: schemas.CreateRegion) -> schemas.RegionView:
    return schemas.RegionView.model_validate(_add(ctx, regions, "region", body.model_dump()))


def create_sku(ctx: Context, body: schemas.CreateSku) -> schemas.SkuView:
    return schemas.SkuView.model_validate(_add(ctx, skus, "sku", body.model_dump()))


def create_pool(ctx: Context, tenant_id: str, body: schemas.CreatePool) -> schemas.PoolView:
    row = body.model_dump() | {"tenant_id": tenant_id}
    return schemas.PoolView.model_validate(_add(ctx, pools, "pool", row))


def delete_region(ctx: Context, name: str) -> schemas.RegionView:
    row = _remove(ctx, REGIONS, regions, "region", name, nodes.c.region == name)
    return schemas.RegionView.model_validate(row)


def delete_sku(ctx: Context, name: str) -> schemas.SkuView:
    row = _remove(ctx, SKUS, skus, "sku", name, nodes.c.sku == name)
    return schemas.SkuView.model_validate(row)


def delete_pool(ctx: Context, tenant_id: str, name: str) -> schemas.PoolView:
    inside = (nodes.c.tenant_id == tenant_id) & (nodes.c.pool == name)
    row = _remove(ctx, POOLS, pools, "pool", name, inside, tenant_id)
    return schemas.PoolView.model_validate(row)


def put_into_pool(ctx: Context, node_id: str, pool: str | None) -> None:
    node = node_row(ctx.tx, node_id, lock=True)
    if pool is not None:
        pool_row(ctx.tx, node.tenant_id, pool, lock=True)
    ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(pool=pool))
    ctx.resource_id = node_id
    ctx.emit("capacity.node.pooled", node_id, {"node_name": node.name, "pool": pool})


def _remove(
    ctx: Context,
    query: Query[R],
    table: Table,
    noun: str,
    name: str,
    used: ColumnElement[bool],
    tenant_id: str | None = None,
) -> R:
    """Delete a region, SKU or pool and return its row. Raises StillUsed if a node or a pending enrolment uses it."""
    matches = [table.c.name == name] + ([] if tenant_id is None else [table.c.tenant_id == tenant_id])
    row = query.where(*matches).locked().first(ctx.tx)
    if row is None:
        raise NotFound(f"No {noun} is named {name!r}.")
    living = select(nodes.c.name).where(used, nodes.c.state != "retired").order_by(nodes.c.name).limit(1)
    expected = _EXPECTED[0](ctx.tx, noun, tenant_id, name, ctx.now) if _EXPECTED else None
    if machine := ctx.tx.execute(living).scalar() or expected:
        raise StillUsed(f"The node {machine!r} uses the {noun} {name!r}.")
    ctx.tx.execute(delete(table).where(*matches))
    ctx.resource_id = name
    ctx.emit(f"capacity.{noun}.deleted", name, {"name": name})
    return row


def _add(ctx: Context, table: Table, noun: str, values: Mapping[str, str | int]) -> Mapping[str, str | int]:
    row = dict(values) | {"created_at": ctx.now}
    name = str(row["name"])
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(table).values(**row))
    except IntegrityError as error:
        raise NameTaken(f"A {noun} named {name!r} exists already.") from error
    ctx.resource_id = name
    ctx.emit(f"capacity.{noun}.created", name, {"name": name})
    return row
