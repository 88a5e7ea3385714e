"""Follows the event stream without losing events: `follow` (blocking) and `afollow` (asyncio). Used by `gpuaas watch`
and apps.

After a lost connection or a restart of the platform, the follower reconnects with Last-Event-ID and continues where it
was. In a tenant's stream the sequence numbers have no gaps: if the next number is not last + 1, the missing events are
listed and delivered first. A project's stream is a selection, so its numbers have gaps.

    page = client.list_instances(project)                                    # the current state
    for event in follow(client, project_id=project, after=page.event_sequence):   # every later change
        ...
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator

import httpx2
import msgspec

from .backoff import Backoff
from .calls import Calls
from .clients import AsyncClient, Client
from .errors import BadAnswer, ConnectionFailed, GpuaasError, RateLimited, Unavailable
from .models import EventList, EventView
from .request import Request, get

SILENCE_S = 45.0  # the platform sends a ping every 15 s: three missed ones are a dead connection
PASSING = (ConnectionFailed, Unavailable, RateLimited)
Notice = Callable[[GpuaasError | None], None]


class Position:
    """The position of a follower in the event stream. It decides how an arriving event is handled, without input or
    output."""

    def __init__(self, tenant_id: str | None, project_id: str | None, after: int | str | None) -> None:
        if bool(tenant_id) == bool(project_id):
            raise ValueError("follow one tenant or one project")
        self._dense = bool(tenant_id)
        self._where = tenant_id or project_id or ""
        self._kind = "tenants" if tenant_id else "projects"
        self._cursor = str(after) if after is not None else None
        self._last = int(after) if after is not None and str(after).isdigit() else None

    def stream(self) -> Request[EventView]:
        path = f"/v1/{self._kind}/{{}}/events/stream"
        return get(EventView, path, self._where, after=self._cursor).within(SILENCE_S)

    def headers(self) -> dict[str, str]:
        resume = {"Last-Event-ID": self._cursor} if self._cursor is not None else {}
        return {"Accept": "text/event-stream", "Cache-Control": "no-store", **resume}

    def is_known(self, event: EventView) -> bool:
        """Return True if the event was already delivered before a reconnect."""
        return self._last is not None and event.sequence <= self._last

    def leaves_hole(self, event: EventView) -> bool:
        return self._dense and self._last is not None and event.sequence > self._last + 1

    def missing(self) -> Request[EventList]:
        return Calls.list_tenant_events.request(self._where, after=str(self._last), limit=200)

    def filled(self, page: EventList, until: EventView) -> list[EventView]:
        """Return the listed events that fill the gap before `until`. Raises BadAnswer if the platform does not return
        them."""
        fresh = [e for e in page.items if not self.is_known(e) and e.sequence < until.sequence]
        if not fresh or fresh[0].sequence != (self._last or 0) + 1:
            raise BadAnswer(f"The events between {self._last} and {until.sequence} cannot be had: list again.")
        return fresh

    def passed(self, event: EventView, cursor: str = "") -> EventView:
        self._last, self._cursor = event.sequence, cursor or str(event.sequence)
        return event


def _read(sse: httpx2.ServerSentEvent) -> EventView | None:
    if not sse.data:
        return None
    try:
        return msgspec.json.decode(sse.data, type=EventView)
    except msgspec.MsgspecError as error:
        raise BadAnswer(f"An event could not be read: {error}.") from error


def _tell(on_line: Notice | None, error: GpuaasError | None) -> None:
    if on_line:
        on_line(error)


def follow(
    client: Client,
    *,
    tenant_id: str | None = None,
    project_id: str | None = None,
    after: int | str | None = None,
    on_line: Notice | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[EventView]:
    """Yield every event after `after` (a sequence number or cursor), in order and once, without end.

    `on_line` is called with the reason when the connection is lost, and with None when it is restored.

    Raises Gone if `after` is too old (list again), and the usual errors for a wrong address, token or permission.
    """
    at, backoff = Position(tenant_id, project_id, after), Backoff()
    while True:
        try:
            with client.transport.stream(at.stream(), at.headers()) as response:
                _tell(on_line, None)
                for sse in httpx2.EventSource(response):
                    backoff.reset()
                    if (event := _read(sse)) is None or at.is_known(event):
                        continue
                    while at.leaves_hole(event):
                        for found in at.filled(client.send(at.missing()), event):
                            yield at.passed(found)
                    yield at.passed(event, sse.id)
        except PASSING as error:
            _tell(on_line, error)
        sleep(backoff.next())


async def afollow(
    client: AsyncClient,
    *,
    tenant_id: str | None = None,
    project_id: str | None = None,
    after: int | str | None = None,
    on_line: Notice | None = None,
) -> AsyncIterator[EventView]:
    """Yield events like `follow`, for asyncio."""
    import asyncio

    at, backoff = Position(tenant_id, project_id, after), Backoff()
    while True:
        try:
            async with client.transport.stream(at.stream(), at.headers()) as response:
                _tell(on_line, None)
                async for sse in httpx2.EventSource(response):
                    backoff.reset()
                    if (event := _read(sse)) is None or at.is_known(event):
                        continue
                    while at.leaves_hole(event):
                        for found in at.filled(await client.send(at.missing()), event):
                            yield at.passed(found)
                    yield at.passed(event, sse.id)
        except PASSING as error:
            _tell(on_line, error)
        await asyncio.sleep(backoff.next())
