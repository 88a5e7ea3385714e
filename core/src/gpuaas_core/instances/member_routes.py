"""HTTP in, HTTP out: the members of an instance, one by one or many at once."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.etags import tagged
from ..http.lists import Cursor, Limit, as_response, page
from ..kit.wire import Page
from ..operations.schemas import Because, Justified, Retry
from . import abandonment, member_schemas, membership, reads, schemas, views
from .states import REMOVE
from .tables import members

router = APIRouter(prefix="/v1/projects/{project_id}/instances/{instance_id}/members", tags=["members"])
_ACCEPTED: dict[str, Any] = {"status_code": 202, "response_model": schemas.AcceptedView}
_PLAN: dict[int | str, dict[str, Any]] = {
    200: {"model": schemas.PlannedView, "description": "the plan, when `validate_only` is true"}
}


@router.get("", response_model=Page[schemas.MemberView], **needs("apps.instance.read", "project"))
async def list_members(
    call: Caller,
    project_id: str,
    instance_id: str,
    history: Annotated[bool, Query(description="those that were removed")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    def read(ctx: Context) -> Page[schemas.MemberView]:
        instance = reads.instance_row(ctx.tx, project_id, instance_id)
        query = reads.members_query(instance_id, removed=history)
        return page(ctx, query, members.c.id, limit, cursor, views.member_views(ctx.tx, instance))

    return as_response(await call.read(read))


@router.post(
    "",
    status_code=202,
    response_model=schemas.BatchView,
    responses=_PLAN,
    **needs("apps.member.add", "project"),
)
async def add_members(call: Caller, project_id: str, instance_id: str, body: member_schemas.AddMembers) -> Response:
    """One operation per allocation under one batch id; all of them are accepted, or none."""
    if body.validate_only:
        planned = await call.read(lambda ctx: membership.plan_add(ctx, project_id, instance_id, body))
        return Response(planned.model_dump_json(), media_type="application/json")
    return await call.write(
        lambda ctx: membership.add(ctx, project_id, instance_id, body),
        status=202,
        location=lambda view: f"/v1/projects/{project_id}/operations?batch_id={view.batch_id}",
    )


_BATCH: dict[str, Any] = {"status_code": 202, "response_model": schemas.BatchView}


@router.post("/drain", **_BATCH, **needs("apps.member.operate", "project"))
async def drain_members(call: Caller, project_id: str, instance_id: str, body: member_schemas.EmptyMembers) -> Response:
    """Many at once: one operation each under one batch id, which can be canceled as one; all of them, or none."""
    return await _ask_many(call, project_id, instance_id, "drain_member", body)


@router.post("/undrain", **_BATCH, **needs("apps.member.operate", "project"))
async def undrain_members(call: Caller, project_id: str, instance_id: str, body: member_schemas.AskMembers) -> Response:
    return await _ask_many(call, project_id, instance_id, "undrain_member", body)


@router.post("/restart", **_BATCH, **needs("apps.member.operate", "project"))
async def restart_members(call: Caller, project_id: str, instance_id: str, body: member_schemas.AskMembers) -> Response:
    return await _ask_many(call, project_id, instance_id, "restart_member", body)


@router.post("/remove", **_BATCH, **needs("apps.member.remove", "project"))
async def remove_members(
    call: Caller, project_id: str, instance_id: str, body: member_schemas.EmptyMembers
) -> Response:
    """Each is gone only with evidence for its machine. A member whose machine is gone is removed by itself."""
    return await _ask_many(call, project_id, instance_id, REMOVE, body)


@router.get("/{member_id}", response_model=schemas.MemberView, **needs("apps.instance.read", "project"))
async def get_member(call: Caller, project_id: str, instance_id: str, member_id: str) -> Response:
    def read(ctx: Context) -> schemas.MemberView:
        instance = reads.instance_row(ctx.tx, project_id, instance_id)
        return views.member_views(ctx.tx, instance)(reads.member_row(ctx.tx, instance_id, member_id))

    return tagged(await call.read(read))


async def _ask_many(
    call: Caller, project_id: str, instance_id: str, kind: str, body: member_schemas.NamedMembers
) -> Response:
    return await call.write(
        lambda ctx: membership.ask_many(ctx, project_id, instance_id, body.member_ids, kind, body.params),
        status=202,
        location=lambda view: f"/v1/projects/{project_id}/operations?batch_id={view.batch_id}",
    )


@router.post("/{member_id}/drain", **_ACCEPTED, **needs("apps.member.operate", "project"))
async def drain_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: member_schemas.DrainMember | None = None
) -> Response:
    """Nothing new begins there; `deadline_s`: how long the app may wait for what goes on, `at_deadline` what then."""
    params = body.model_dump() if body else {}
    return await _ask(call, project_id, instance_id, member_id, "drain_member", params)


@router.post("/{member_id}/undrain", **_ACCEPTED, **needs("apps.member.operate", "project"))
async def undrain_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: Because | None = None
) -> Response:
    return await _ask(call, project_id, instance_id, member_id, "undrain_member", body.model_dump() if body else {})


@router.post("/{member_id}/restart", **_ACCEPTED, **needs("apps.member.operate", "project"))
async def restart_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: Because | None = None
) -> Response:
    return await _ask(call, project_id, instance_id, member_id, "restart_member", body.model_dump() if body else {})


@router.post("/{member_id}/remove", responses=_PLAN, **_ACCEPTED, **needs("apps.member.remove", "project"))
async def remove_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: member_schemas.RemoveMember | None = None
) -> Response:
    """Gone only with evidence for its machine; then the allocation is free again. With `host_is_gone` the machine is
    fenced instead, and gets an orphan record (`apps.operation.abandon` is needed, too)."""
    wanted = body or member_schemas.RemoveMember()
    if wanted.validate_only:
        planned = await call.read(lambda ctx: membership.plan_remove(ctx, project_id, instance_id, member_id, wanted))
        return Response(planned.model_dump_json(), media_type="application/json")
    return await call.write(
        lambda ctx: membership.remove(ctx, project_id, instance_id, member_id, wanted),
        status=202,
        location=_where(project_id),
    )


@router.post("/{member_id}/replace", **_ACCEPTED, **needs("apps.member.remove", "project"))
async def replace_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: member_schemas.ReplaceMember
) -> Response:
    """One operation: a new member on the new allocation, then the old one goes. With `host_is_gone` the old one goes
    first, its machine is fenced and gets an orphan record (`apps.operation.abandon` is needed, too)."""
    return await call.write(
        lambda ctx: membership.replace(ctx, project_id, instance_id, member_id, body),
        status=202,
        location=_where(project_id),
    )


@router.post("/{member_id}/retry", **_ACCEPTED, **needs("apps.member.operate", "project"))
async def retry_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: Retry | None = None
) -> Response:
    """What failed on it, again."""
    anyway = body is not None and body.try_anyway
    return await call.write(
        lambda ctx: membership.retry(ctx, project_id, instance_id, member_id, anyway=anyway),
        status=202,
        location=_where(project_id),
    )


@router.post(
    "/{member_id}/tombstone",
    response_model=schemas.MemberRemovedView,
    **needs("apps.operation.abandon", "project"),
)
async def tombstone_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: Justified
) -> Response:
    """Counts a failed member as removed without evidence; its machine gets an orphan record."""
    return await call.write(lambda ctx: abandonment.tombstone(ctx, project_id, instance_id, member_id, body.reason))


async def _ask(
    call: Caller, project_id: str, instance_id: str, member_id: str, kind: str, params: dict[str, Any]
) -> Response:
    return await call.write(
        lambda ctx: membership.ask(ctx, project_id, instance_id, member_id, kind, params),
        status=202,
        location=_where(project_id),
    )


def _where(project_id: str):
    return lambda view: f"/v1/projects/{project_id}/operations/{view.operation.id}"
