"""Routes: regions, SKUs, pools and quotas."""

from fastapi import APIRouter, Response
from sqlalchemy import select

from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import offers, quotas, schemas
from .tables import pools, regions, skus

router = APIRouter(prefix="/v1", tags=["capacity"])


@router.post("/regions", status_code=201, response_model=schemas.RegionView, **needs("capacity.region.create"))
async def create_region(call: Caller, body: schemas.CreateRegion) -> Response:
    return await call.write(lambda ctx: offers.create_region(ctx, body), status=201)


@router.post("/regions/delete", response_model=schemas.RegionView, **needs("capacity.region.delete"))
async def delete_region(call: Caller, body: schemas.NameOffer) -> Response:
    """Only a region without nodes can be deleted."""
    return await call.write(lambda ctx: offers.delete_region(ctx, body.name))


@router.get("/regions", **needs("capacity.region.read"))
async def list_regions(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.RegionView]:
    view = schemas.RegionView.model_validate
    return await call.read(lambda ctx: page(ctx, select(regions), regions.c.name, limit, cursor, view))


@router.post("/skus", status_code=201, response_model=schemas.SkuView, **needs("capacity.sku.create"))
async def create_sku(call: Caller, body: schemas.CreateSku) -> Response:
    """Create a kind of node with its price. Allocations made from now on count its GPUs."""
    return await call.write(lambda ctx: offers.create_sku(ctx, body), status=201)


@router.post("/skus/delete", response_model=schemas.SkuView, **needs("capacity.sku.delete"))
async def delete_sku(call: Caller, body: schemas.NameOffer) -> Response:
    """Only a SKU without nodes can be deleted. Existing allocations keep their counted GPUs."""
    return await call.write(lambda ctx: offers.delete_sku(ctx, body.name))


@router.get("/skus", **needs("capacity.sku.read"))
async def list_skus(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.SkuView]:
    view = schemas.SkuView.model_validate
    return await call.read(lambda ctx: page(ctx, select(skus), skus.c.name, limit, cursor, view))


@router.post(
    "/tenants/{tenant_id}/pools",
    status_code=201,
    response_model=schemas.PoolView,
    **needs("capacity.pool.create", "tenant"),
)
async def create_pool(call: Caller, tenant_id: str, body: schemas.CreatePool) -> Response:
    return await call.write(lambda ctx: offers.create_pool(ctx, tenant_id, body), status=201)


@router.post(
    "/tenants/{tenant_id}/pools/delete", response_model=schemas.PoolView, **needs("capacity.pool.delete", "tenant")
)
async def delete_pool(call: Caller, tenant_id: str, body: schemas.NameOffer) -> Response:
    """Only an empty pool can be deleted."""
    return await call.write(lambda ctx: offers.delete_pool(ctx, tenant_id, body.name))


@router.get("/tenants/{tenant_id}/pools", **needs("capacity.pool.read", "tenant"))
async def list_pools(call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.PoolView]:
    query = select(pools).where(pools.c.tenant_id == tenant_id)
    return await call.read(lambda ctx: page(ctx, query, pools.c.name, limit, cursor, schemas.PoolView.model_validate))


@router.get("/projects/{project_id}/quota", **needs("capacity.quota.read", "project"))
async def get_quota(call: Caller, project_id: str) -> schemas.QuotaView:
    """What the project may hold, and what it holds."""
    return await call.read(lambda ctx: quotas.quota_view(ctx.tx, project_id))


@router.post("/projects/{project_id}/quota", response_model=schemas.QuotaView, **needs("capacity.quota.set", "project"))
async def set_quota(call: Caller, project_id: str, body: schemas.SetQuota) -> Response:
    return await call.write(lambda ctx: quotas.set_quota(ctx, project_id, body))
