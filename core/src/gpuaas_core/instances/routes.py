"""HTTP in, HTTP out: instances as people ask for them, and the list of operations of a project."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.etags import tagged
from ..http.lists import Cursor, Limit, as_response, page
from ..kit.wire import Page
from ..operations.rows import OperationRow
from ..operations.schemas import Because, Justified, OperationView
from ..operations.tables import operations
from ..operations.views import operation_view
from . import abandonment, day2, departures, reads, schemas, service, views
from .departure_schemas import DepartureCertificateView
from .tables import departure_certificates, instances, orphans

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["instances"])
Embedded = Annotated[
    int, Query(ge=0, le=views.MOST_MEMBERS, description="members inside an instance; their own list has them in pages")
]
Newest = Annotated[bool, Query(description="the newest first; a cursor goes on in the order it came from")]
_ACCEPTED: dict[str, Any] = {"status_code": 202, "response_model": schemas.AcceptedView}


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
    call: Caller,
    project_id: str,
    deleted: bool = False,
    members: Embedded = views.MOST_MEMBERS,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[schemas.InstanceView]:
    """Current instances; with `deleted` the history too."""
    query = reads.instances_of(project_id, deleted=deleted)

    def read(ctx: Context) -> Page[schemas.InstanceView]:
        return page(ctx, query, instances.c.id, limit, cursor, partial(views.instance_view, ctx.tx, most=members))

    return await call.read(read)


@router.get("/instances/{instance_id}", response_model=schemas.InstanceView, **needs("apps.instance.read", "project"))
async def get_instance(
    call: Caller, project_id: str, instance_id: str, members: Embedded = views.MOST_MEMBERS
) -> Response:
    """With a strong ETag, which an update sends back as If-Match."""

    def read(ctx: Context) -> schemas.InstanceView:
        return views.instance_view(ctx.tx, reads.instance_row(ctx.tx, project_id, instance_id), most=members)

    return tagged(await call.read(read))


@router.post(
    "/instances/{instance_id}/decommission",
    status_code=202,
    response_model=schemas.AcceptedView,
    responses={200: {"model": schemas.PlannedView, "description": "the plan, when `validate_only` is true"}},
    **needs("apps.instance.decommission", "project"),
)
async def decommission_instance(
    call: Caller, project_id: str, instance_id: str, body: schemas.Decommission | None = None
) -> Response:
    """Tears the instance down on its hosts; `deleted` only with evidence."""
    if body and body.validate_only:
        planned = await call.read(lambda ctx: service.plan_decommission(ctx, project_id, instance_id))
        return Response(planned.model_dump_json(), media_type="application/json")
    return await call.write(
        lambda ctx: service.decommission(ctx, project_id, instance_id, body), status=202, location=_where(project_id)
    )


@router.post("/instances/{instance_id}/stop", **_ACCEPTED, **needs("apps.instance.operate", "project"))
async def stop_instance(call: Caller, project_id: str, instance_id: str, body: Because | None = None) -> Response:
    return await _ask(call, project_id, instance_id, "stop", body)


@router.post("/instances/{instance_id}/start", **_ACCEPTED, **needs("apps.instance.operate", "project"))
async def start_instance(call: Caller, project_id: str, instance_id: str, body: Because | None = None) -> Response:
    return await _ask(call, project_id, instance_id, "start", body)


@router.post("/instances/{instance_id}/restart", **_ACCEPTED, **needs("apps.instance.operate", "project"))
async def restart_instance(call: Caller, project_id: str, instance_id: str, body: Because | None = None) -> Response:
    return await _ask(call, project_id, instance_id, "restart", body)


@router.post("/instances/{instance_id}/rotate-keys", **_ACCEPTED, **needs("apps.instance.rotate", "project"))
async def rotate_instance_keys(
    call: Caller, project_id: str, instance_id: str, body: Because | None = None
) -> Response:
    """Rotate the secrets that the members share. Running work is not interrupted."""
    return await _ask(call, project_id, instance_id, "rotate_keys", body)


async def _ask(call: Caller, project_id: str, instance_id: str, kind: str, body: Because | None) -> Response:
    reason = body.reason if body else None
    return await call.write(
        lambda ctx: day2.ask(ctx, project_id, instance_id, kind, reason=reason),
        status=202,
        location=_where(project_id),
    )


@router.post(
    "/instances/{instance_id}/update",
    **_ACCEPTED,
    responses={200: {"model": schemas.PlannedView, "description": "the plan, when `validate_only` is true"}},
    **needs("apps.instance.update", "project"),
)
async def update_instance(
    call: Caller,
    project_id: str,
    instance_id: str,
    body: schemas.UpdateInstance,
    if_match: Annotated[str | None, Header(max_length=200, description="the ETag the change is based on")] = None,
) -> Response:
    """All inputs anew: a new generation. 428 without If-Match, 412 if the instance has changed since.

    With `validate_only`: each changed input with its effect; nothing is written, and If-Match may be left out."""
    if body.validate_only:
        planned = await call.read(lambda ctx: day2.plan_update(ctx, project_id, instance_id, body, if_match))
        return Response(planned.model_dump_json(), media_type="application/json")
    return await call.write(
        lambda ctx: day2.change_inputs(ctx, project_id, instance_id, body, if_match),
        status=202,
        location=_where(project_id),
    )


@router.post("/instances/{instance_id}/upgrade", **_ACCEPTED, **needs("apps.instance.upgrade", "project"))
async def upgrade_instance(call: Caller, project_id: str, instance_id: str, body: schemas.UpgradeInstance) -> Response:
    """To another published version of the same app; the instance has it once the operation succeeds."""
    return await call.write(
        lambda ctx: day2.upgrade(ctx, project_id, instance_id, body), status=202, location=_where(project_id)
    )


@router.post("/instances/{instance_id}/rollback", **_ACCEPTED, **needs("apps.instance.upgrade", "project"))
async def roll_back_instance(call: Caller, project_id: str, instance_id: str, body: Because | None = None) -> Response:
    """To the version before the last upgrade, or out of an upgrade that failed."""
    reason = body.reason if body else None
    return await call.write(
        lambda ctx: day2.roll_back(ctx, project_id, instance_id, reason=reason),
        status=202,
        location=_where(project_id),
    )


@router.get("/operations", response_model=Page[schemas.OperationView], **needs("apps.instance.read", "project"))
async def list_operations(
    call: Caller,
    project_id: str,
    instance_id: Annotated[str | None, Query(max_length=40)] = None,
    member_id: Annotated[str | None, Query(max_length=40)] = None,
    batch_id: Annotated[str | None, Query(max_length=40)] = None,
    status: Annotated[str | None, Query(max_length=20)] = None,
    history: Annotated[bool | None, Query(description="only what has ended, or only what is under way")] = None,
    newest_first: Newest = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    wanted: dict[str, Any] = {"instance_id": instance_id, "member_id": member_id, "batch_id": batch_id}
    query = reads.operations_of(project_id, **wanted, status=status, history=history)

    def read(ctx: Context) -> Page[OperationView]:
        return page(
            ctx,
            query,
            operations.c.id,
            limit,
            cursor,
            lambda row: operation_view(ctx.tx, OperationRow.of(row)),
            newest_first=newest_first,
        )

    return as_response(await call.read(read))


@router.get("/departure-certificates", **needs("apps.instance.read", "project"))
async def list_departure_certificates(
    call: Caller,
    project_id: str,
    instance_id: Annotated[str | None, Query(max_length=40)] = None,
    operation_id: Annotated[str | None, Query(max_length=40)] = None,
    allocation_id: Annotated[str | None, Query(max_length=40)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[DepartureCertificateView]:
    """What was proven of machines when instances and members left them."""
    wanted = {"instance_id": instance_id, "operation_id": operation_id, "allocation_id": allocation_id}
    query = departures.certificates_of(project_id, **wanted)
    return await call.read(
        lambda ctx: page(
            ctx, query, departure_certificates.c.id, limit, cursor, lambda row: departures.view(ctx.tx, row, ctx.now)
        )
    )


@router.get("/orphans", **needs("apps.orphan.read", "project"))
async def list_orphans(
    call: Caller, project_id: str, resolved: bool = False, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.OrphanView]:
    """What was given up without evidence and nobody has looked at; with `resolved` the others."""
    query = reads.orphans_of(project_id, resolved=resolved)
    return await call.read(lambda ctx: page(ctx, query, orphans.c.id, limit, cursor, schemas.OrphanView.model_validate))


@router.post(
    "/orphans/{orphan_id}/resolve", response_model=schemas.OrphanView, **needs("apps.orphan.resolve", "project")
)
async def resolve_orphan(call: Caller, project_id: str, orphan_id: str, body: Justified) -> Response:
    """Somebody has looked at the machine; until then nothing new is placed on it."""
    return await call.write(lambda ctx: abandonment.resolve_orphan(ctx, project_id, orphan_id, body.reason))


def _where(project_id: str):
    return lambda view: f"/v1/projects/{project_id}/operations/{view.operation.id}"
