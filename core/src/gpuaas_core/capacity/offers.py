"""What can be held: regions and SKUs of the platform, and a tenant's pools of nodes."""

from typing import Any

from sqlalchemy import Row, Table, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.problems import NotFound
from . import schemas
from .errors import NameTaken, StillUsed
from .node_selection import pool_row
from .reads import node_row
from .tables import enrolments, nodes, pools, regions, skus

declare(
    {
        "capacity.region.created": "A region was created.",
        "capacity.sku.created": "A SKU was created.",
        "capacity.region.deleted": "A region without nodes was deleted.",
        "capacity.sku.deleted": "A SKU without nodes was deleted.",
        "capacity.pool.deleted": "An empty pool was deleted.",
        "capacity.pool.created": "A tenant's pool of nodes was created.",
        "capacity.node.pooled": "A node was added to a pool, or removed from one.",
    }
)


def create_region(ctx: Context, body: schemas.CreateRegion) -> schemas.RegionView:
    return schemas.RegionView.model_validate(_add(ctx, regions, "region", body.model_dump()))


def create_sku(ctx: Context, body: schemas.CreateSku) -> schemas.SkuView:
    return schemas.SkuView.model_validate(_add(ctx, skus, "sku", body.model_dump()))


def create_pool(ctx: Context, tenant_id: str, body: schemas.CreatePool) -> schemas.PoolView:
    row = body.model_dump() | {"tenant_id": tenant_id}
    return schemas.PoolView.model_validate(_add(ctx, pools, "pool", row))


def delete_region(ctx: Context, name: str) -> schemas.RegionView:
    row = _remove(ctx, regions, "region", name, nodes.c.region == name, enrolments.c.region == name)
    return schemas.RegionView.model_validate(row)


def delete_sku(ctx: Context, name: str) -> schemas.SkuView:
    row = _remove(ctx, skus, "sku", name, nodes.c.sku == name, enrolments.c.sku == name)
    return schemas.SkuView.model_validate(row)


def delete_pool(ctx: Context, tenant_id: str, name: str) -> schemas.PoolView:
    inside = (nodes.c.tenant_id == tenant_id) & (nodes.c.pool == name)
    invited = (enrolments.c.tenant_id == tenant_id) & (enrolments.c.pool == name)
    row = _remove(ctx, pools, "pool", name, inside, invited, pools.c.tenant_id == tenant_id)
    return schemas.PoolView.model_validate(row)


def put_into_pool(ctx: Context, node_id: str, pool: str | None) -> None:
    node = node_row(ctx.tx, node_id, lock=True)
    if pool is not None:
        pool_row(ctx.tx, node.tenant_id, pool, lock=True)
    ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(pool=pool))
    ctx.resource_id = node_id
    ctx.emit("capacity.node.pooled", node_id, {"node_name": node.name, "pool": pool})


def _remove(ctx: Context, table: Table, noun: str, name: str, used: Any, invited: Any, *where: Any) -> Row[Any]:
    """Delete unless a node uses it, or a pending enrolment will."""
    matches = (table.c.name == name, *where)
    row = ctx.tx.execute(select(table).where(*matches).with_for_update()).first()
    if row is None:
        raise NotFound(f"No {noun} is named {name!r}.")
    living = select(nodes.c.name).where(used, nodes.c.state != "retired").order_by(nodes.c.name).limit(1)
    coming = select(enrolments.c.node_name).where(
        invited, enrolments.c.used_by_node.is_(None), enrolments.c.expires_at > ctx.now
    )
    if machine := ctx.tx.execute(living).scalar() or ctx.tx.execute(coming.order_by(enrolments.c.id).limit(1)).scalar():
        raise StillUsed(f"The node {machine!r} uses the {noun} {name!r}.")
    ctx.tx.execute(delete(table).where(*matches))
    ctx.resource_id = name
    ctx.emit(f"capacity.{noun}.deleted", name, {"name": name})
    return row


def _add(ctx: Context, table: Table, noun: str, row: dict[str, Any]) -> dict[str, Any]:
    row = row | {"created_at": ctx.now}
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(table).values(**row))
    except IntegrityError as error:
        raise NameTaken(f"A {noun} named {row['name']!r} exists already.") from error
    ctx.resource_id = row["name"]
    ctx.emit(f"capacity.{noun}.created", row["name"], {"name": row["name"]})
    return row
