"""HTTP in, HTTP out: a project's allocations. They live here because only this room knows what runs on them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..capacity import allocation_service, schemas
from ..capacity import reads as capacity
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from ..node_tasks import wipe
from . import holds, integration, reads
from .schemas import NoteIntegration

router = APIRouter(prefix="/v1/projects/{project_id}/allocations", tags=["capacity"])
wide = APIRouter(prefix="/v1", tags=["capacity"])  # beside the allocations of one project
Word = Annotated[str | None, Query(max_length=63)]


@router.post(
    "", status_code=201, response_model=schemas.AllocationView, **needs("capacity.allocation.create", "project")
)
async def create_allocation(call: Caller, project_id: str, body: schemas.CreateAllocation) -> Response:
    """Holds a machine for the project; `active` once the machine itself trusts the allocation."""
    return await call.write(
        lambda ctx: _view(ctx, allocation_service.create_allocation(ctx, project_id, body)),
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
    query = capacity.allocations_of(project_id, state)
    return await call.read(
        lambda ctx: page(ctx, query, query.selected_columns.id, limit, cursor, lambda row: _view(ctx, row))
    )


@router.get("/{allocation_id}", **needs("capacity.allocation.read", "project"))
async def get_allocation(call: Caller, project_id: str, allocation_id: str) -> schemas.AllocationView:
    return await call.read(lambda ctx: _view(ctx, capacity.allocation_row(ctx.tx, project_id, allocation_id)))


@router.post(
    "/{allocation_id}/release",
    response_model=schemas.AllocationView,
    **needs("capacity.allocation.release", "project"),
)
async def release_allocation(call: Caller, project_id: str, allocation_id: str) -> Response:
    def release(ctx: Context) -> schemas.AllocationView:
        allocation_service.hold_allocation(ctx, project_id, allocation_id)
        holds.check_not_in_use(ctx, allocation_id)
        return _view(ctx, wipe.release(ctx, project_id, allocation_id))

    return await call.write(release)


@router.post(
    "/{allocation_id}/extend",
    response_model=schemas.AllocationView,
    **needs("capacity.allocation.extend", "project"),
)
async def extend_allocation(
    call: Caller, project_id: str, allocation_id: str, body: schemas.ExtendAllocation
) -> Response:
    """Moves the end of the lease; also of one that is overdue."""
    return await call.write(
        lambda ctx: _view(ctx, allocation_service.extend_allocation(ctx, project_id, allocation_id, body.expires_in_s))
    )


@wide.post(
    "/projects/{project_id}/allocation-requests",
    status_code=201,
    response_model=schemas.AllocationsView,
    **needs("capacity.allocation.create", "project"),
)
async def request_allocations(call: Caller, project_id: str, body: schemas.RequestAllocations) -> Response:
    """Holds machines of a kind, chosen by the platform: as many as asked for, or none."""

    def request(ctx: Context) -> schemas.AllocationsView:
        rows = allocation_service.request_allocations(ctx, project_id, body)
        return schemas.AllocationsView(items=[_view(ctx, row) for row in rows])

    return await call.write(request, status=201)


@wide.post(
    "/projects/{project_id}/operations/{operation_id}/integration",
    response_model=schemas.AllocationView,
    **needs("apps.operation.work", "project"),
)
async def note_integration(call: Caller, project_id: str, operation_id: str, body: NoteIntegration) -> Response:
    """What the app's controller wants to remember about an allocation of the claimed operation's instance."""
    return await call.write(lambda ctx: _view(ctx, integration.note(ctx, project_id, operation_id, body)))


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
    """Those of all projects of the tenant."""
    query = capacity.allocations_in(tenant_id, project_id=project_id, region=region, sku=sku, state=state)
    return await call.read(
        lambda ctx: page(ctx, query, query.selected_columns.id, limit, cursor, lambda row: _view(ctx, row))
    )


def _view(ctx: Context, row: Any) -> schemas.AllocationView:
    return capacity.allocation_view(row, reads.used_by(ctx.tx, [row.id]))
