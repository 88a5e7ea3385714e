"""HTTP routes for instances, and the list of operations of a project."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, as_response, page_together
from ..http.routing import Reader, Route
from ..kit.wire import Page
from ..machine_access.schemas import AskKeyAccess, GrantView
from ..operations.reads import OPERATION_ID, operations_in
from ..operations.schemas import Because, OperationView
from ..operations.views import operation_views
from . import observations, reads, schemas, service, views
from .schemas import Observation, ObservedView
from .states import OF_MEMBER
from .tables import instances

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["instances"], route_class=Route)
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
    """Deploy an app on allocations chosen by the caller. With `validate_only` the request is only checked, and the
    answer is the plan."""
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
    """List the instances of the project; with `deleted`, also the deleted ones."""
    query = reads.instances_of(project_id, deleted=deleted)

    def read(ctx: Context) -> Page[schemas.InstanceView]:
        return page_together(
            ctx,
            query,
            instances.c.id,
            limit,
            cursor,
            lambda rows: views.instance_views(ctx.tx, rows, most=members),
        )

    return await call.read(read)


@router.get("/instances/{instance_id}", response_model=schemas.InstanceView, **needs("apps.instance.read", "project"))
async def get_instance(
    call: Reader, project_id: str, instance_id: str, members: Embedded = views.MOST_MEMBERS
) -> Response:
    """Get an instance. The answer has a strong ETag, which an update sends as If-Match."""

    def read(ctx: Context) -> Response:
        return views.instance_response(ctx.tx, reads.shown_instance(ctx.tx, project_id, instance_id), members)

    return await call.read(read)


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
    """Tear the instance down on its machines. The instance becomes `deleted` only with evidence that the machines are
    clean."""
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
    """Rotate the secrets that the members of the instance share. Running work is not interrupted."""
    return await _ask(call, project_id, instance_id, "rotate_keys", body)


async def _ask(call: Caller, project_id: str, instance_id: str, kind: str, body: Because | None) -> Response:
    reason = body.reason if body else None
    return await call.write(
        lambda ctx: service.ask(ctx, project_id, instance_id, kind, reason=reason),
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
    """Replace all inputs of the instance, as a new generation. The answer is 428 without If-Match, and 412 if the
    instance has changed since it was read.

    With `validate_only` the answer is the plan, which shows each changed input with its effect. Nothing is written, and
    If-Match is optional.
    """
    if body.validate_only:
        planned = await call.read(lambda ctx: service.plan_update(ctx, project_id, instance_id, body, if_match))
        return Response(planned.model_dump_json(), media_type="application/json")
    return await call.write(
        lambda ctx: service.change_inputs(ctx, project_id, instance_id, body, if_match),
        status=202,
        location=_where(project_id),
    )


@router.post("/instances/{instance_id}/upgrade", **_ACCEPTED, **needs("apps.instance.upgrade", "project"))
async def upgrade_instance(call: Caller, project_id: str, instance_id: str, body: schemas.UpgradeInstance) -> Response:
    """Upgrade the instance to another published version of its app. The instance has the new version once the operation
    succeeds."""
    return await call.write(
        lambda ctx: service.upgrade(ctx, project_id, instance_id, body), status=202, location=_where(project_id)
    )


@router.post("/instances/{instance_id}/rollback", **_ACCEPTED, **needs("apps.instance.upgrade", "project"))
async def roll_back_instance(call: Caller, project_id: str, instance_id: str, body: Because | None = None) -> Response:
    """Roll the instance back to the version before its last upgrade. If that upgrade failed, return to the version from
    which it started."""
    reason = body.reason if body else None
    return await call.write(
        lambda ctx: service.roll_back(ctx, project_id, instance_id, reason=reason),
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
    target = (OF_MEMBER, member_id) if member_id else None
    query = operations_in(
        project_id, lock_key=instance_id, target=target, batch_id=batch_id, status=status, history=history
    )

    def read(ctx: Context) -> Page[OperationView]:
        return page_together(
            ctx,
            query,
            OPERATION_ID,
            limit,
            cursor,
            lambda rows: operation_views(ctx.tx, rows),
            newest_first=newest_first,
        )

    return as_response(await call.read(read))


def _where(project_id: str) -> Callable[[schemas.AcceptedView], str]:
    return lambda view: f"/v1/projects/{project_id}/operations/{view.operation.id}"


observing = APIRouter(prefix="/v1/projects/{project_id}/instances/{instance_id}/observation", tags=["controllers"])


@observing.post(
    "",
    response_model=ObservedView,
    responses={204: {"description": "nothing new: nothing was written"}},
    **needs("apps.operation.work", "project"),
)
async def observe_instance(call: Caller, project_id: str, instance_id: str, body: Observation) -> Response:
    """Report what the app's controller observes of a running instance. The report is rejected while an operation
    changes the whole instance."""
    if not await call.read(lambda ctx: observations.anything_new(ctx, project_id, instance_id, body)):
        return Response(status_code=204)
    return await call.write(lambda ctx: observations.observe(ctx, project_id, instance_id, body), repeats=False)


@observing.post(
    "/access-grants",
    status_code=201,
    response_model=GrantView,
    **needs("apps.access.grant", "project"),
)
async def grant_observation_access(call: Caller, project_id: str, instance_id: str, body: AskKeyAccess) -> Response:
    """Issue an SSH certificate to observe one machine of a running instance. It is valid for one hour, and ends early
    when an operation begins on the instance or on this machine."""

    def grant(ctx: Context) -> GrantView:
        return observations.grant_access(ctx, call.vault, project_id, instance_id, body)

    return await call.write(grant, status=201, repeats=False, audited=False)
