"""HTTP routes of break-glass, for platform administrators and for the tenants concerned."""

from fastapi import APIRouter, Response

from ..http.call import Caller, Returns, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import break_glass, schemas
from .tables import break_glass as table

router = APIRouter(prefix="/v1", tags=["access"])
_ONE: Returns = {"response_model": schemas.BreakGlassView}


@router.post("/platform/break-glass", status_code=201, **_ONE, **needs("platform.break_glass.open"))
async def open_break_glass(call: Caller, body: schemas.OpenBreakGlass) -> Response:
    """Open a break-glass on a tenant. Mode `look` starts at once; mode `operate` permits changes, and starts when a
    second administrator approves it. The tenant gets an event."""
    return await call.write(lambda ctx: break_glass.view(break_glass.open_glass(ctx, body)), status=201)


@router.get("/platform/break-glass", **needs("platform.break_glass.read"))
async def list_break_glass(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.BreakGlassView]:
    query = break_glass.list_query()
    return await call.read(lambda ctx: page(ctx, query, table.c.id, limit, cursor, break_glass.view))


@router.post("/platform/break-glass/{break_glass_id}/approve", **_ONE, **needs("platform.break_glass.approve"))
async def approve_break_glass(call: Caller, break_glass_id: str) -> Response:
    """Approve a break-glass that another administrator opened. Access starts now and lasts for the requested
    minutes."""
    return await call.write(lambda ctx: break_glass.view(break_glass.approve(ctx, break_glass_id)))


@router.post("/platform/break-glass/{break_glass_id}/close", **_ONE, **needs("platform.break_glass.close"))
async def close_break_glass(call: Caller, break_glass_id: str) -> Response:
    """Close a break-glass before it expires, effective on the administrator's next request. The tenant gets an
    event."""
    return await call.write(lambda ctx: break_glass.view(break_glass.close(ctx, break_glass_id)))


@router.get("/tenants/{tenant_id}/break-glass", **needs("tenancy.break_glass.read", "tenant"))
async def list_break_glass_of_tenant(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.BreakGlassView]:
    """List which platform administrators had access to this tenant, when and why."""
    query = break_glass.list_query(tenant_id)
    return await call.read(lambda ctx: page(ctx, query, table.c.id, limit, cursor, break_glass.view))
