"""Routes: events (list, long poll, SSE) and audit rows."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from ..access.context import Context
from ..edge.call import Call, Caller, needs
from ..kit.wire import Moment, View
from ..ledger import audit, events
from .stream import follow
from .verify import verify

router = APIRouter(prefix="/v1", tags=["events and audit"])
After = Annotated[str | None, Query(max_length=60, description="a sequence number, or the `id:` of a stream event")]
Wait = Annotated[int, Query(ge=0, le=30, description="how long to wait for the first event")]
Most = Annotated[int, Query(ge=1, le=1000)]
Subject = Annotated[
    str | None, Query(max_length=80, pattern=r"^[A-Za-z0-9._:-]+$", description="only events of this resource")
]
NAME = r"^[A-Za-z0-9._:-]{1,128}$"
KEY_START = r"^[a-z][a-z_.]{0,79}$"


class EventView(BaseModel):
    """A CloudEvent. `sequence` is dense per tenant."""

    specversion: str
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str
    sequence: int
    correlationid: str
    traceid: str
    data: dict[str, Any]


class EventList(View):
    items: list[EventView]
    next_after: str = Field(description="continue with this as `after`")
    head: int = Field(description="the newest sequence of the tenant when this was read")


class AuditView(View):
    sequence: int
    at: str
    actor_id: str
    actor_kind: str
    permission: str
    outcome: str
    reason: str
    project_id: str | None
    resource_id: str | None
    correlation_id: str
    trace_id: str
    via: str | None = Field(default=None, description="the delegation or break-glass that granted the permission")
    on_behalf_of: str | None = Field(default=None, description="who granted it")
    hash: str = Field(description="covers this row and the hash of the previous row")


class AuditList(View):
    items: list[AuditView]
    next_after: int


class AuditBreak(View):
    """The first break of the trail."""

    sequence: int = Field(description="0 if the checkpoints themselves are invalid")
    sentence: str
    way_out: str


class AuditVerdict(View):
    ok: bool
    sentence: str
    rows: int = Field(description="number of valid rows; also the sequence of the last valid row")
    hash: str = Field(description="of the last valid row")
    checkpoints: int = Field(description="signed checkpoints that agree with the rows")
    anchored: int = Field(description="sequence of the newest of them: up to here nothing was removed or rewritten")
    anchored_at: Moment | None
    broken: AuditBreak | None


@router.get("/tenants/{tenant_id}/events", **needs("ledger.event.read", "tenant"))
async def list_tenant_events(
    call: Caller, tenant_id: str, after: After = None, limit: Most = 200, wait_s: Wait = 0, subject: Subject = None
) -> EventList:
    return await _list(call, after, limit, wait_s, subject)


@router.get("/projects/{project_id}/events", **needs("ledger.event.read", "project"))
async def list_project_events(
    call: Caller, project_id: str, after: After = None, limit: Most = 200, wait_s: Wait = 0, subject: Subject = None
) -> EventList:
    """Only this project's events: the tenant's sequence numbers then have gaps."""
    return await _list(call, after, limit, wait_s, subject)


@router.get(
    "/tenants/{tenant_id}/events/stream", response_class=StreamingResponse, **needs("ledger.event.read", "tenant")
)
async def stream_tenant_events(
    call: Caller, tenant_id: str, after: After = None, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    return await _stream(call, last_event_id or after)


@router.get(
    "/projects/{project_id}/events/stream", response_class=StreamingResponse, **needs("ledger.event.read", "project")
)
async def stream_project_events(
    call: Caller, project_id: str, after: After = None, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    return await _stream(call, last_event_id or after)


@router.get("/tenants/{tenant_id}/audit", **needs("ledger.audit.read", "tenant"))
async def list_audit(
    call: Caller,
    tenant_id: str,
    after: Annotated[int, Query(ge=0)] = 0,
    limit: Most = 200,
    actor: Annotated[str | None, Query(pattern=NAME, description="id of the actor")] = None,
    permission: Annotated[str | None, Query(pattern=KEY_START, description="prefix of the permission key")] = None,
    outcome: Annotated[Literal["allowed", "denied"] | None, Query()] = None,
    correlation_id: Annotated[str | None, Query(pattern=NAME)] = None,
    project: Annotated[str | None, Query(pattern=NAME, description="id of a project")] = None,
    before: Annotated[
        int | None, Query(ge=0, description="newest first, from before this sequence; 0: from the end of the trail")
    ] = None,
) -> AuditList:
    only = audit.Filter(actor, permission, outcome, correlation_id, project)
    if before is None:
        rows = await call.read(lambda ctx: audit.after(ctx.tx, tenant_id, after, limit=limit, only=only))
    else:
        rows = await call.read(lambda ctx: audit.before(ctx.tx, tenant_id, before, limit=limit, only=only))
    views = [AuditView.model_validate(row) for row in rows]
    return AuditList(items=views, next_after=views[-1].sequence if views else after)


@router.get("/tenants/{tenant_id}/audit/verify", **needs("ledger.audit.verify", "tenant"))
async def verify_audit(call: Caller, tenant_id: str) -> AuditVerdict:
    """Verify every row against the hash chain, and the chain against the signed checkpoints outside the database.

    A broken trail is reported in the answer (`ok` is false), not as an error.
    """
    db, checkpoints = call.platform.db, call.platform.checkpoints
    verdict = await asyncio.to_thread(verify, db.read_now, checkpoints, tenant_id)  # may take long
    return AuditVerdict.model_validate(verdict)


async def _list(call: Call, after: str | None, limit: int, wait_s: int, subject: str | None) -> EventList:
    tenant_id = str(call.scope.tenant_id)
    deadline = call.now + wait_s * 1000
    start = await call.read(lambda ctx: events.read_cursor(ctx.tx, tenant_id, after))
    while True:
        listed = await call.read(lambda ctx: _page(ctx, tenant_id, start, limit, subject), deliver=wait_s > 0)
        left = (deadline - call.platform.clock()) / 1000
        if listed.items or left <= 0 or await call.request.is_disconnected():
            return listed
        await call.wait(f"events:{tenant_id}", left)


def _page(ctx: Context, tenant_id: str, start: int, limit: int, subject: str | None) -> EventList:
    head = events.head(ctx.tx, tenant_id)
    rows = events.after(ctx.tx, tenant_id, start, project_id=ctx.scope.project_id, limit=limit, subject=subject)
    last = rows[-1]["sequence"] if rows else start
    items = [EventView.model_validate(row) for row in rows]
    return EventList(items=items, next_after=f"{events.store_epoch(ctx.tx)}.{last}", head=head)


async def _stream(call: Call, after: str | None) -> StreamingResponse:
    tenant_id = str(call.scope.tenant_id)
    start = await call.read(lambda ctx: events.read_cursor(ctx.tx, tenant_id, after))
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(follow(call, tenant_id, start), media_type="text/event-stream", headers=headers)
