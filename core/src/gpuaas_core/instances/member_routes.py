"""HTTP routes for the members of an instance, one at a time or in batches."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..events.event_log import head
from ..http.call import Caller, needs
from ..http.etags import tagged
from ..http.lists import Cursor, Limit, PlainPage
from ..http.routing import Reader, Route
from ..kit.json_types import Json
from ..kit.paging import page_of
from ..kit.wire import Page
from ..operations.schemas import Because, Justified, Retry
from . import access, membership, outcomes, reads, schemas, views
from .schemas import OpenSshSession, SshSessionView
from .states import REMOVE
from .tables import members

router = APIRouter(
    prefix="/v1/projects/{project_id}/instances/{instance_id}/members", tags=["members"], route_class=Route
)
_ACCEPTED: dict[str, Any] = {"status_code": 202, "response_model": schemas.AcceptedView}
_PLAN: dict[int | str, dict[str, Any]] = {
    200: {"model": schemas.PlannedView, "description": "the plan, when `validate_only` is true"}
}


@router.get("", response_model=Page[schemas.MemberView], **needs("apps.instance.read", "project"))
async def list_members(
    call: Reader,
    project_id: str,
    instance_id: str,
    history: Annotated[bool, Query(description="those that were removed")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    def read(ctx: Context) -> PlainPage:
        instance = reads.instance_summary(ctx.tx, project_id, instance_id)
        query = reads.listed_members(instance_id, removed=history)
        rows, following = page_of(ctx.tx, query, members.c.id, limit=limit, cursor=cursor)
        complete = cursor is None and following is None and not history
        items = views.listed_members(ctx.tx, instance, rows, all_of_them=complete)
        return PlainPage(items, following, head(ctx.tx, instance.tenant_id))

    return (await call.read(read)).response()


@router.post(
    "",
    status_code=202,
    response_model=schemas.BatchView,
    responses=_PLAN,
    **needs("apps.member.add", "project"),
)
async def add_members(call: Caller, project_id: str, instance_id: str, body: schemas.AddMembers) -> Response:
    """Add members to an instance, one per allocation. Each member has its own operation in a common batch. Either all
    operations are accepted, or none."""
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
async def drain_members(call: Caller, project_id: str, instance_id: str, body: schemas.EmptyMembers) -> Response:
    """Drain several members. Each member has its own operation in a common batch, which can be canceled as a whole.
    Either all operations are accepted, or none."""
    return await _ask_many(call, project_id, instance_id, "drain_member", body)


@router.post("/undrain", **_BATCH, **needs("apps.member.operate", "project"))
async def undrain_members(call: Caller, project_id: str, instance_id: str, body: schemas.AskMembers) -> Response:
    return await _ask_many(call, project_id, instance_id, "undrain_member", body)


@router.post("/restart", **_BATCH, **needs("apps.member.operate", "project"))
async def restart_members(call: Caller, project_id: str, instance_id: str, body: schemas.AskMembers) -> Response:
    return await _ask_many(call, project_id, instance_id, "restart_member", body)


@router.post("/remove", **_BATCH, **needs("apps.member.remove", "project"))
async def remove_members(call: Caller, project_id: str, instance_id: str, body: schemas.EmptyMembers) -> Response:
    """Remove several members. Each removal needs evidence that the member's machine is clean. A member whose machine is
    lost must be removed with a request of its own."""
    return await _ask_many(call, project_id, instance_id, REMOVE, body)


@router.get("/{member_id}", response_model=schemas.MemberView, **needs("apps.instance.read", "project"))
async def get_member(call: Caller, project_id: str, instance_id: str, member_id: str) -> Response:
    def read(ctx: Context) -> schemas.MemberView:
        instance = reads.instance_row(ctx.tx, project_id, instance_id)
        return views.member_view(ctx.tx, instance, reads.member_row(ctx.tx, instance_id, member_id))

    return tagged(await call.read(read))


async def _ask_many(call: Caller, project_id: str, instance_id: str, kind: str, body: schemas.NamedMembers) -> Response:
    return await call.write(
        lambda ctx: membership.ask_many(ctx, project_id, instance_id, body.member_ids, kind, body.params),
        status=202,
        location=lambda view: f"/v1/projects/{project_id}/operations?batch_id={view.batch_id}",
    )


@router.post("/{member_id}/drain", **_ACCEPTED, **needs("apps.member.operate", "project"))
async def drain_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: schemas.DrainMember | None = None
) -> Response:
    """Drain a member: no new work starts on it. The app waits up to `deadline_s` seconds for running work to end, then
    applies `at_deadline`."""
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
    call: Caller, project_id: str, instance_id: str, member_id: str, body: schemas.RemoveMember | None = None
) -> Response:
    """Remove a member, with evidence that its machine is clean, and free its allocation. With `host_is_gone` the
    machine is not proven clean: it is fenced and gets an orphan record. This also needs the permission
    `apps.operation.abandon`."""
    wanted = body or schemas.RemoveMember()
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
    call: Caller, project_id: str, instance_id: str, member_id: str, body: schemas.ReplaceMember
) -> Response:
    """Add a member on the new allocation, then remove the old member, in one operation. With `host_is_gone` the old
    member is removed first; its machine is fenced and gets an orphan record. This also needs the permission
    `apps.operation.abandon`."""
    return await call.write(
        lambda ctx: membership.replace(ctx, project_id, instance_id, member_id, body),
        status=202,
        location=_where(project_id),
    )


@router.post("/{member_id}/retry", **_ACCEPTED, **needs("apps.member.operate", "project"))
async def retry_member(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: Retry | None = None
) -> Response:
    """Retry the newest operation of the member, which must have ended without success."""
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
    """Mark a failed member as removed, although nothing proves that its machine is clean. The machine gets an orphan
    record."""
    return await call.write(lambda ctx: outcomes.tombstone(ctx, project_id, instance_id, member_id, body.reason))


async def _ask(call: Caller, project_id: str, instance_id: str, member_id: str, kind: str, params: Json) -> Response:
    return await call.write(
        lambda ctx: membership.ask(ctx, project_id, instance_id, member_id, kind, params),
        status=202,
        location=_where(project_id),
    )


def _where(project_id: str) -> Callable[[schemas.AcceptedView], str]:
    return lambda view: f"/v1/projects/{project_id}/operations/{view.operation.id}"


sessions = APIRouter(
    prefix="/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}/ssh-sessions", tags=["machine access"]
)


@sessions.post("", status_code=201, response_model=SshSessionView, **needs("apps.access.enter", "project"))
async def open_ssh_session(
    call: Caller, project_id: str, instance_id: str, member_id: str, body: OpenSshSession
) -> Response:
    """Issue an SSH certificate for the machine of a member. It is valid for five minutes, for a user without privileges
    on the machine. The certificate and its sessions end when the caller loses the permission, the removal of the member
    begins, or the grant is revoked."""

    def opened(ctx: Context) -> SshSessionView:
        return access.open_session(ctx, call.vault, project_id, instance_id, member_id, body)

    return await call.write(opened, status=201)
