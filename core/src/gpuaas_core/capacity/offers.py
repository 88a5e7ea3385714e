"""What there is to hold: regions and SKUs as records of the platform, and a tenant's pools of machines."""

from typing import Any

from sqlalchemy import Table, insert, update
from sqlalchemy.exc import IntegrityError

from ..access.context import Context
from ..ledger.events import declare
from . import schemas
from .errors import NameTaken
from .picking import pool_row
from .reads import node_row
from .tables import nodes, pools, regions, skus

declare(
    {
        "capacity.region.created": "The platform has a new region.",
        "capacity.sku.created": "The platform has a new kind of machine.",
        "capacity.pool.created": "A tenant has a new pool of machines.",
        "capacity.node.pooled": "A machine was put into a pool, or taken out of one.",
    }
)


def create_region(ctx: Context, body: schemas.CreateRegion) -> schemas.RegionView:
    return schemas.RegionView.model_validate(_add(ctx, regions, "region", body.model_dump()))


def create_sku(ctx: Context, body: schemas.CreateSku) -> schemas.SkuView:
    return schemas.SkuView.model_validate(_add(ctx, skus, "sku", body.model_dump()))


def create_pool(ctx: Context, tenant_id: str, body: schemas.CreatePool) -> schemas.PoolView:
    row = body.model_dump() | {"tenant_id": tenant_id}
    return schemas.PoolView.model_validate(_add(ctx, pools, "pool", row))


def put_into_pool(ctx: Context, node_id: str, pool: str | None) -> None:
    node = node_row(ctx.tx, node_id, lock=True)
    if pool is not None:
        pool_row(ctx.tx, node.tenant_id, pool)
    ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(pool=pool))
    ctx.resource_id = node_id
    ctx.emit("capacity.node.pooled", node_id, {"node_name": node.name, "pool": pool})


def _add(ctx: Context, table: Table, noun: str, row: dict[str, Any]) -> dict[str, Any]:
    row = row | {"created_at": ctx.now}
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(table).values(**row))
    except IntegrityError as error:
        raise NameTaken(f"There is a {noun} named {row['name']!r} already.") from error
    ctx.resource_id = row["name"]
    ctx.emit(f"capacity.{noun}.created", row["name"], {"name": row["name"]})
    return row
