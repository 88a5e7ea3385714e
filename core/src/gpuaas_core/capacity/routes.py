"""HTTP routes for nodes, regions, SKUs, pools and quotas."""

from collections.abc import Callable

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import node_admin, offers, quotas, reads, schemas
from .rows import SeenNodeRow
from .tables import nodes, pools, regions, skus

router = APIRouter(prefix="/v1", tags=["capacity"])


@router.get("/tenants/{tenant_id}/nodes", **needs("capacity.node.read", "tenant"))
async def list_nodes(call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.NodeView]:
    query = reads.nodes_of(tenant_id)
    return await call.read(lambda ctx: page(ctx, query, nodes.c.id, limit, cursor, lambda row: _node(ctx, row)))


@router.get("/nodes/{node_id}", **needs("capacity.node.read", "node"))
async def get_node(call: Caller, node_id: str) -> schemas.NodeView:
    return await call.read(lambda ctx: _node(ctx, reads.seen_node(ctx.tx, node_id)))


@router.post("/nodes/{node_id}/cordon", response_model=schemas.NodeView, **needs("capacity.node.cordon", "node"))
async def cordon_node(call: Caller, node_id: str, body: schemas.Decide) -> Response:
    """Block new allocations of the node. Existing allocations are not affected."""
    return await _decide(call, node_id, lambda ctx: node_admin.decide(ctx, node_id, "cordon", body.reason))


@router.post("/nodes/{node_id}/uncordon", response_model=schemas.NodeView, **needs("capacity.node.uncordon", "node"))
async def uncordon_node(call: Caller, node_id: str, body: schemas.Decide) -> Response:
    return await _decide(call, node_id, lambda ctx: node_admin.decide(ctx, node_id, "uncordon", body.reason))


@router.post("/nodes/{node_id}/drain", response_model=schemas.NodeView, **needs("capacity.node.drain", "node"))
async def drain_node(call: Caller, node_id: str, body: schemas.Decide) -> Response:
    """Block new allocations of the node. Existing allocations must be released before the node can be retired."""
    return await _decide(call, node_id, lambda ctx: node_admin.decide(ctx, node_id, "drain", body.reason))


@router.post("/nodes/{node_id}/retire", response_model=schemas.NodeView, **needs("capacity.node.retire", "node"))
async def retire_node(call: Caller, node_id: str, body: schemas.Decide) -> Response:
    """Retire the node permanently: its tokens and keys stop working at once,
    and its name can be used for another node."""
    return await _decide(call, node_id, lambda ctx: node_admin.retire(ctx, node_id, body.reason))


@router.post("/nodes/{node_id}/pool", response_model=schemas.NodeView, **needs("capacity.pool.assign", "node"))
async def put_node_into_pool(call: Caller, node_id: str, body: schemas.PutIntoPool) -> Response:
    return await _decide(call, node_id, lambda ctx: offers.put_into_pool(ctx, node_id, body.pool))


@router.post("/regions", status_code=201, response_model=schemas.RegionView, **needs("capacity.region.create"))
async def create_region(call: Caller, body: schemas.CreateRegion) -> Response:
    return await call.write(lambda ctx: offers.create_region(ctx, body), status=201)


@router.post("/regions/delete", response_model=schemas.RegionView, **needs("capacity.region.delete"))
async def delete_region(call: Caller, body: schemas.NameOffer) -> Response:
    """Delete a region that has no nodes."""
    return await call.write(lambda ctx: offers.delete_region(ctx, body.name))


@router.get("/regions", **needs("capacity.region.read"))
async def list_regions(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.RegionView]:
    view = schemas.RegionView.model_validate
    return await call.read(lambda ctx: page(ctx, offers.REGIONS, regions.c.name, limit, cursor, view))


@router.post("/skus", status_code=201, response_model=schemas.SkuView, **needs("capacity.sku.create"))
async def create_sku(call: Caller, body: schemas.CreateSku) -> Response:
    """Create a SKU: a kind of node with its price. New allocations of its nodes count the number of GPUs of the SKU."""
    return await call.write(lambda ctx: offers.create_sku(ctx, body), status=201)


@router.post("/skus/delete", response_model=schemas.SkuView, **needs("capacity.sku.delete"))
async def delete_sku(call: Caller, body: schemas.NameOffer) -> Response:
    """Delete a SKU that has no nodes. Allocations keep the number of GPUs that was counted for them."""
    return await call.write(lambda ctx: offers.delete_sku(ctx, body.name))


@router.get("/skus", **needs("capacity.sku.read"))
async def list_skus(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.SkuView]:
    view = schemas.SkuView.model_validate
    return await call.read(lambda ctx: page(ctx, offers.SKUS, skus.c.name, limit, cursor, view))


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
    """Delete a pool that has no nodes."""
    return await call.write(lambda ctx: offers.delete_pool(ctx, tenant_id, body.name))


@router.get("/tenants/{tenant_id}/pools", **needs("capacity.pool.read", "tenant"))
async def list_pools(call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.PoolView]:
    query = offers.POOLS.where(pools.c.tenant_id == tenant_id)
    return await call.read(lambda ctx: page(ctx, query, pools.c.name, limit, cursor, schemas.PoolView.model_validate))


@router.get("/projects/{project_id}/quota", **needs("capacity.quota.read", "project"))
async def get_quota(call: Caller, project_id: str) -> schemas.QuotaView:
    """Get the quota of the project and the current usage."""
    return await call.read(lambda ctx: quotas.quota_view(ctx.tx, project_id))


@router.post("/projects/{project_id}/quota", response_model=schemas.QuotaView, **needs("capacity.quota.set", "project"))
async def set_quota(call: Caller, project_id: str, body: schemas.SetQuota) -> Response:
    return await call.write(lambda ctx: quotas.set_quota(ctx, project_id, body))


async def _decide(call: Caller, node_id: str, act: Callable[[Context], None]) -> Response:
    def decide(ctx: Context) -> schemas.NodeView:
        act(ctx)
        return _node(ctx, reads.seen_node(ctx.tx, node_id))

    return await call.write(decide)


def _node(ctx: Context, row: SeenNodeRow) -> schemas.NodeView:
    return schemas.NodeView.model_validate(vars(row) | {"available_actions": node_admin.actions(ctx.tx, row)})
