"""HTTP routes for events (list, long poll, SSE)."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from ..authz.context import Context
from ..http.call import Call, Caller, needs
from ..kit.wire import View
from . import event_log
from .stream import follow

router = APIRouter(prefix="/v1", tags=["events and audit"])
After = Annotated[str | None, Query(max_length=60, description="a sequence number, or the `id:` of a stream event")]
Wait = Annotated[int, Query(ge=0, le=30, description="how long to wait for the first event")]
Most = Annotated[int, Query(ge=1, le=1000)]
Subject = Annotated[
    str | None, Query(max_length=80, pattern=r"^[A-Za-z0-9._:-]+$", description="only events of this resource")
]


class EventView(BaseModel):
    """A CloudEvent. `sequence` has no gaps within a tenant."""

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


@router.get("/tenants/{tenant_id}/events", **needs("ledger.event.read", "tenant"))
async def list_tenant_events(
    call: Caller, tenant_id: str, after: After = None, limit: Most = 200, wait_s: Wait = 0, subject: Subject = None
) -> EventList:
    return await _list(call, after, limit, wait_s, subject)


@router.get("/projects/{project_id}/events", **needs("ledger.event.read", "project"))
async def list_project_events(
    call: Caller, project_id: str, after: After = None, limit: Most = 200, wait_s: Wait = 0, subject: Subject = None
) -> EventList:
    """List the events of the project. Their sequence numbers are those of the tenant, so they have gaps."""
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


async def _list(call: Call, after: str | None, limit: int, wait_s: int, subject: str | None) -> EventList:
    tenant_id = str(call.scope.tenant_id)
    deadline = call.now + wait_s * 1000
    start = await call.read(lambda ctx: event_log.read_cursor(ctx.tx, tenant_id, after))
    while True:
        listed = await call.read(lambda ctx: _page(ctx, tenant_id, start, limit, subject), deliver=wait_s > 0)
        left = (deadline - call.platform.clock()) / 1000
        if listed.items or left <= 0 or await call.request.is_disconnected():
            return listed
        await call.wait(f"events:{tenant_id}", left)


def _page(ctx: Context, tenant_id: str, start: int, limit: int, subject: str | None) -> EventList:
    head = event_log.head(ctx.tx, tenant_id)
    rows = event_log.after(ctx.tx, tenant_id, start, project_id=ctx.scope.project_id, limit=limit, subject=subject)
    last = rows[-1]["sequence"] if rows else start
    items = [EventView.model_validate(row) for row in rows]
    return EventList(items=items, next_after=f"{event_log.store_epoch(ctx.tx)}.{last}", head=head)


async def _stream(call: Call, after: str | None) -> StreamingResponse:
    tenant_id = str(call.scope.tenant_id)
    start = await call.read(lambda ctx: event_log.read_cursor(ctx.tx, tenant_id, after))
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(follow(call, tenant_id, start), media_type="text/event-stream", headers=headers)
