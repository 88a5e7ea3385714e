"""HTTP in, HTTP out: events (list, long poll, SSE) and audit rows."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from ..access.context import Context
from ..edge.call import Call, Caller, needs
from ..kit.wire import View
from ..ledger import audit, events
from .stream import follow

router = APIRouter(prefix="/v1", tags=["events and audit"])
After = Annotated[str | None, Query(max_length=60, description="a sequence number, or the `id:` of a stream event")]
Wait = Annotated[int, Query(ge=0, le=30, description="wait so long for the first event")]
Most = Annotated[int, Query(ge=1, le=1000)]


class EventView(BaseModel):
    """A CloudEvent. `sequence` is dense per tenant: the next one is this one plus one."""

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


class AuditList(View):
    items: list[AuditView]
    next_after: int


@router.get("/tenants/{tenant_id}/events", **needs("ledger.event.read", "tenant"))
async def list_tenant_events(
    call: Caller, tenant_id: str, after: After = None, limit: Most = 200, wait_s: Wait = 0
) -> EventList:
    return await _list(call, after, limit, wait_s)


@router.get("/projects/{project_id}/events", **needs("ledger.event.read", "project"))
async def list_project_events(
    call: Caller, project_id: str, after: After = None, limit: Most = 200, wait_s: Wait = 0
) -> EventList:
    """Only this project's events: the tenant's sequence numbers then have gaps."""
    return await _list(call, after, limit, wait_s)


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
    call: Caller, tenant_id: str, after: Annotated[int, Query(ge=0)] = 0, limit: Most = 200
) -> AuditList:
    rows = await call.read(lambda ctx: audit.after(ctx.tx, tenant_id, after, limit=limit))
    views = [AuditView.model_validate(row) for row in rows]
    return AuditList(items=views, next_after=views[-1].sequence if views else after)


async def _list(call: Call, after: str | None, limit: int, wait_s: int) -> EventList:
    tenant_id = str(call.scope.tenant_id)
    deadline = call.now + wait_s * 1000
    start = await call.read(lambda ctx: events.read_cursor(ctx.tx, tenant_id, after))
    while True:
        found = await call.read(lambda ctx: _page(ctx, tenant_id, start, limit))
        left = (deadline - call.platform.clock()) / 1000
        if found.items or left <= 0 or await call.request.is_disconnected():
            return found
        await call.wait(f"events:{tenant_id}", left)


def _page(ctx: Context, tenant_id: str, start: int, limit: int) -> EventList:
    head = events.head(ctx.tx, tenant_id)
    rows = events.after(ctx.tx, tenant_id, start, project_id=ctx.scope.project_id, limit=limit)
    last = rows[-1]["sequence"] if rows else start
    items = [EventView.model_validate(row) for row in rows]
    return EventList(items=items, next_after=f"{events.store_epoch(ctx.tx)}.{last}", head=head)


async def _stream(call: Call, after: str | None) -> StreamingResponse:
    tenant_id = str(call.scope.tenant_id)
    start = await call.read(lambda ctx: events.read_cursor(ctx.tx, tenant_id, after))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(follow(call, tenant_id, start), media_type="text/event-stream", headers=headers)
