"""HTTP in, HTTP out: instances and operations as people ask for them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..edge.call import Caller, needs
from ..edge.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import reads, schemas, service
from .tables import instances, operations

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["instances"])


@router.post(
    "/instances",
    status_code=202,
    response_model=schemas.AcceptedView,
    responses={200: {"model": schemas.PlannedView, "description": "the plan, when `validate_only` is true"}},
    **needs("apps.instance.create", "project"),
)
async def create_instance(call: Caller, project_id: str, body: schemas.CreateInstance) -> Response:
    """Deploys an app on allocations the caller chose; with `validate_only` the same checks, nothing written."""
    if body.validate_only:
        planned = await call.read(lambda ctx: service.plan(ctx, project_id, body))
        return Response(planned.model_dump_json(), media_type="application/json")
    return await call.write(lambda ctx: service.deploy(ctx, project_id, body), status=202, location=_where(project_id))


@router.get("/instances", **needs("apps.instance.read", "project"))
async def list_instances(
    call: Caller, project_id: str, deleted: bool = False, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.InstanceView]:
    """Current instances; with `deleted` the history too."""
    query = reads.instances_of(project_id, deleted=deleted)
    return await call.read(
        lambda ctx: page(ctx, query, instances.c.id, limit, cursor, lambda row: reads.instance_view(ctx.tx, row))
    )


@router.get("/instances/{instance_id}", **needs("apps.instance.read", "project"))
async def get_instance(call: Caller, project_id: str, instance_id: str) -> schemas.InstanceView:
    return await call.read(lambda ctx: reads.instance_view(ctx.tx, reads.instance_row(ctx.tx, project_id, instance_id)))


@router.get("/instances/{instance_id}/members", **needs("apps.instance.read", "project"))
async def list_members(call: Caller, project_id: str, instance_id: str) -> Page[schemas.MemberView]:
    instance = await get_instance(call, project_id, instance_id)
    return Page(items=instance.members)


@router.post(
    "/instances/{instance_id}/decommission",
    status_code=202,
    response_model=schemas.AcceptedView,
    **needs("apps.instance.decommission", "project"),
)
async def decommission_instance(
    call: Caller, project_id: str, instance_id: str, body: schemas.Decommission | None = None
) -> Response:
    """Tears the instance down on its hosts; `deleted` only with evidence."""
    return await call.write(
        lambda ctx: service.decommission(ctx, project_id, instance_id), status=202, location=_where(project_id)
    )


@router.get("/operations", **needs("apps.instance.read", "project"))
async def list_operations(
    call: Caller,
    project_id: str,
    instance_id: Annotated[str | None, Query(max_length=40)] = None,
    status: Annotated[str | None, Query(max_length=20)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[schemas.OperationView]:
    query = reads.operations_of(project_id, instance_id, status)
    return await call.read(
        lambda ctx: page(ctx, query, operations.c.id, limit, cursor, lambda row: reads.operation_view(ctx.tx, row))
    )


@router.get("/operations/{operation_id}", **needs("apps.instance.read", "project"))
async def get_operation(call: Caller, project_id: str, operation_id: str) -> schemas.OperationView:
    return await call.read(
        lambda ctx: reads.operation_view(ctx.tx, reads.operation_row(ctx.tx, project_id, operation_id))
    )


@router.post(
    "/operations/{operation_id}/retry",
    status_code=202,
    response_model=schemas.AcceptedView,
    **needs("apps.operation.retry", "project"),
)
async def retry_operation(call: Caller, project_id: str, operation_id: str) -> Response:
    """A new operation of the same kind; the failed one stays as it ended."""
    return await call.write(
        lambda ctx: service.retry(ctx, project_id, operation_id), status=202, location=_where(project_id)
    )


@router.post(
    "/operations/{operation_id}/cancel",
    response_model=schemas.OperationView,
    **needs("apps.operation.cancel", "project"),
)
async def cancel_operation(call: Caller, project_id: str, operation_id: str) -> Response:
    return await call.write(lambda ctx: service.cancel(ctx, project_id, operation_id))


def _where(project_id: str):
    return lambda view: f"/v1/projects/{project_id}/operations/{view.operation.id}"
