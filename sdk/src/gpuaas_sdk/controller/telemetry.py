"""Sends log lines and spans to the platform, for `gpuaas triage`. A controller creates one sender per project.

    async with TelemetrySender(client) as telemetry:
        telemetry.line("munge runs on node-a", correlation_id=work.operation.correlation_id, kind="step", ms=120)

`line` and `span` never wait and never raise: they add to a bounded queue that a separate task sends in batches. If the
platform is unavailable and the queue is full, entries are dropped and counted; the count is logged later. Everyone in
the project can read the entries: send no secrets and no input of commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
from collections import deque
from datetime import UTC, datetime
from typing import Self

from ..client.backoff import Backoff
from ..client.calls import Calls
from ..client.clients import AsyncClient
from ..client.correlation import current_correlation_id, new_correlation_id
from ..client.errors import ConnectionFailed, GpuaasError, RateLimited, Unavailable

log = logging.getLogger("gpuaas_sdk.telemetry")
MESSAGE_BYTES, FIELDS_BYTES = 8 * 1024, 4 * 1024  # of the wire contract
LEVELS = {"debug", "info", "warning", "error"}
Row = dict[str, object]


class TelemetrySender:
    def __init__(
        self, client: AsyncClient, project_id: str = "", *, most: int = 2000, batch: int = 100, every_s: float = 1.0
    ) -> None:
        self._client, self._project_id = client, project_id or client.project_id
        self._most, self._batch, self._every_s = most, min(batch, 200), every_s
        self._lines: deque[Row] = deque()
        self._spans: deque[Row] = deque()
        self._task: asyncio.Task[None] | None = None
        self._leaving = asyncio.Event()
        self._backoff = Backoff(base=every_s, cap=30.0)
        self.dropped = 0
        self._untold = 0

    def line(
        self,
        message: str,
        *,
        level: str = "info",
        correlation_id: str = "",
        operation_id: str | None = None,
        trace_id: str | None = None,
        **fields: object,
    ) -> None:
        """Queue a log line. `kind="step"` marks a step of the controller, `kind="command"` a command on a host."""
        row: Row = {"at": moment(), "level": level if level in LEVELS else "error", "message": _short(message or "-")}
        row |= {"correlation_id": correlation_id or current_correlation_id() or new_correlation_id()}
        row |= _given(operation_id=operation_id, trace_id=trace_id) | {"fields": _plain(fields)}
        self._put(self._lines, row)

    def span(
        self,
        name: str,
        *,
        started_at: str,
        ended_at: str,
        trace_id: str,
        correlation_id: str = "",
        span_id: str = "",
        parent_id: str | None = None,
        operation_id: str | None = None,
        status: str = "ok",
        **attributes: object,
    ) -> None:
        row: Row = {"name": name[:200] or "-", "started_at": started_at, "ended_at": ended_at, "status": status}
        row |= {"trace_id": trace_id, "span_id": span_id or secrets.token_hex(8), "attributes": _plain(attributes)}
        row |= {"correlation_id": correlation_id or current_correlation_id() or new_correlation_id()}
        self._put(self._spans, row | _given(operation_id=operation_id, parent_id=parent_id))

    def _put(self, queue: deque[Row], row: Row) -> None:
        if len(self._lines) + len(self._spans) >= self._most:
            self._drop(1)
        else:
            queue.append(row)

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._untold += count

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the sender: wait briefly for the current batch, then try once to send the queued entries."""
        self._leaving.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3.0):
                if self._task:
                    await self._task
                await self.flush()

    async def _run(self) -> None:
        while not self._leaving.is_set():
            await self._rest(self._every_s)
            if not await self.flush():
                await self._rest(self._backoff.next())

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._leaving.wait()

    async def flush(self) -> bool:
        """Send the queued entries in batches. Returns True if all were sent, False if the platform cannot be reached.
        If the call is cancelled, unsent entries stay queued."""
        while self._lines or self._spans:
            lines, spans = list(self._lines)[: self._batch], list(self._spans)[: self._batch]
            if not await self._send(lines, spans):
                return False
            for queue, sent in ((self._lines, lines), (self._spans, spans)):
                for _ in sent:
                    queue.popleft()
            self._tell_dropped()
        return True

    async def _send(self, lines: list[Row], spans: list[Row]) -> bool:
        try:
            await self._client.send(Calls.send_telemetry.request(self._project_id, lines=lines, spans=spans))
        except (ConnectionFailed, Unavailable, RateLimited) as error:
            log.warning("telemetry waits, the platform is away: %s", error)
            return False
        except GpuaasError as error:  # refused: sending it again would be refused again
            self._drop(len(lines) + len(spans))
            log.warning("telemetry was refused and dropped: %s", error)
        self._backoff.reset()
        return True

    def _tell_dropped(self) -> None:
        if self._untold and not self._lines:
            untold, self._untold = self._untold, 0
            log.warning("%s lines or spans of telemetry were dropped", untold)


def moment() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _given(**fields: object) -> Row:
    return {name: value for name, value in fields.items() if value}


def _short(text: str) -> str:
    data = text.encode(errors="replace")
    return data.decode() if len(data) <= MESSAGE_BYTES else data[: MESSAGE_BYTES - 3].decode(errors="ignore") + "…"


def _plain(fields: Row) -> Row:
    """Return the fields as JSON values; fields that are too large or not JSON are replaced by a note."""
    try:
        text = json.dumps(fields, default=str, ensure_ascii=False).encode(errors="replace")
    except (TypeError, ValueError):
        return {"left_out": "the fields were not JSON"}
    if len(text) <= FIELDS_BYTES:
        return json.loads(text)
    return {"left_out": "the fields were too large", **_given(kind=str(fields.get("kind", ""))[:40])}
