"""HTTP routes for the allocations of a project, and the list of the allocations of all projects of a tenant."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.rows import Query as RowQuery
from ..kit.wire import Page
from . import allocation_service, holds, reads, schemas
from .rows import PlacedAllocationRow
from .tables import allocations

router = APIRouter(prefix="/v1/projects/{project_id}/allocations", tags=["capacity"])
wide = APIRouter(prefix="/v1", tags=["capacity"])  # routes outside the path of one project's allocations
Word = Annotated[str | None, Query(max_length=63)]


@router.post(
    "", status_code=201, response_model=schemas.AllocationView, **needs("capacity.allocation.create", "project")
)
async def create_allocation(call: Caller, project_id: str, body: schemas.CreateAllocation) -> Response:
    """Allocate a node to the project. The allocation becomes `active` when
    the node has applied its new trust configuration."""
    return await call.write(
        lambda ctx: reads.allocation_view(ctx.tx, allocation_service.create_allocation(ctx, project_id, body)),
        status=201,
        location=lambda view: f"/v1/projects/{project_id}/allocations/{view.id}",
    )


@router.get("", **needs("capacity.allocation.read", "project"))
async def list_allocations(
    call: Caller,
    project_id: str,
    state: Annotated[str | None, Query(max_length=20, description="default: all but released")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[schemas.AllocationView]:
    query = reads.allocations_of(project_id, state)
    return await call.read(lambda ctx: _page(ctx, query, limit, cursor))


@router.get("/{allocation_id}", **needs("capacity.allocation.read", "project"))
async def get_allocation(call: Caller, project_id: str, allocation_id: str) -> schemas.AllocationView:
    return await call.read(
        lambda ctx: reads.allocation_view(ctx.tx, reads.allocation_row(ctx.tx, project_id, allocation_id))
    )


@router.post(
    "/{allocation_id}/release",
    response_model=schemas.AllocationView,
    **needs("capacity.allocation.release", "project"),
)
async def release_allocation(call: Caller, project_id: str, allocation_id: str) -> Response:
    def release(ctx: Context) -> schemas.AllocationView:
        row = allocation_service.lock_allocation(ctx.tx, project_id, allocation_id)
        holds.check_unused(ctx.tx, row.id)
        return reads.allocation_view(ctx.tx, allocation_service.release_allocation(ctx, project_id, row.id))

    return await call.write(release)


@router.post(
    "/{allocation_id}/extend",
    response_model=schemas.AllocationView,
    **needs("capacity.allocation.extend", "project"),
)
async def extend_allocation(
    call: Caller, project_id: str, allocation_id: str, body: schemas.ExtendAllocation
) -> Response:
    """Change the end of an allocation's lease.
    This is possible even after the lease has ended, while the allocation is in use."""
    return await call.write(
        lambda ctx: reads.allocation_view(
            ctx.tx, allocation_service.extend_allocation(ctx, project_id, allocation_id, body.expires_in_s)
        )
    )


@wide.post(
    "/projects/{project_id}/allocation-requests",
    status_code=201,
    response_model=schemas.AllocationsView,
    **needs("capacity.allocation.create", "project"),
)
async def request_allocations(call: Caller, project_id: str, body: schemas.RequestAllocations) -> Response:
    """Allocate the requested number of nodes of one kind, chosen by the platform.
    If too few are free, none is allocated."""

    def request(ctx: Context) -> schemas.AllocationsView:
        rows = allocation_service.request_allocations(ctx, project_id, body)
        return schemas.AllocationsView(items=reads.allocation_views(ctx.tx, rows))

    return await call.write(request, status=201)


@wide.get("/tenants/{tenant_id}/allocations", **needs("capacity.allocation.read", "tenant"))
async def list_tenant_allocations(
    call: Caller,
    tenant_id: str,
    project_id: Word = None,
    region: Word = None,
    sku: Word = None,
    state: Annotated[str | None, Query(max_length=20, description="default: all but released")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[schemas.AllocationView]:
    """List the allocations of all projects of the tenant."""
    query = reads.allocations_in(tenant_id, project_id=project_id, region=region, sku=sku, state=state)
    return await call.read(lambda ctx: _page(ctx, query, limit, cursor))


def _page(
    ctx: Context, query: RowQuery[PlacedAllocationRow], limit: int, cursor: str | None
) -> Page[schemas.AllocationView]:
    """Return a page of allocations. The instances that use them are read once for the whole page."""
    found = page(ctx, query, allocations.c.id, limit, cursor, lambda row: row)
    views = reads.allocation_views(ctx.tx, found.items)
    return Page(items=views, next_cursor=found.next_cursor, event_sequence=found.event_sequence)
