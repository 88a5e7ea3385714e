"""Middleware that gives every request a correlation id and a trace id, adds both to the answer, and logs the request.

API responses are never cached and never sniffed for another content type. The console's files are served before this
middleware, with caching headers of their own.
"""

import time
from collections.abc import Sequence

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..kit.clock import Clock, system_clock
from ..kit.correlation import correlate, current
from .request_log import IN_SCOPE, Seen, Watcher, header_of

log = structlog.get_logger("gpuaas.request")
_CORRELATION, _TRACE = b"x-correlation-id", b"x-trace-id"
_FIXED = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_MARKS = {_CORRELATION, _TRACE, *(name for name, _ in _FIXED)}


class Correlate:
    def __init__(self, app: ASGIApp, watchers: Sequence[Watcher] = (), clock: Clock = system_clock) -> None:
        self.app, self.watchers, self.clock = app, watchers, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        ids = correlate(header_of(scope, _CORRELATION), header_of(scope, b"traceparent"))
        token = current.set(ids)
        seen = scope[IN_SCOPE] = Seen(scope["method"], scope["path"], self.clock(), ids)
        started = time.perf_counter()

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                sent = [header for header in message.get("headers", ()) if header[0].lower() not in _MARKS]
                own = ((_CORRELATION, ids.correlation_id.encode()), (_TRACE, ids.trace_id.encode()), *_FIXED)
                message = {**message, "headers": [*sent, *own]}
            await send(message)

        try:
            await self.app(scope, receive, send_marked)
        finally:
            seen.ms = round((time.perf_counter() - started) * 1000, 1)
            log.info("request", method=seen.method, path=seen.path, status=seen.status, ms=seen.ms)
            self._tell(seen)
            if seen.afterwards:
                await _do(seen)
            current.reset(token)

    def _tell(self, seen: Seen) -> None:
        for watcher in self.watchers:
            try:
                watcher(seen)
            except Exception as error:  # a failing watcher must not fail the request
                log.error("a watcher failed", exc_info=error)


async def _do(seen: Seen) -> None:
    for act in seen.afterwards:
        try:
            await act()
        except Exception as error:  # the answer was sent already, so only the log remains
            log.error("background task of a request failed", exc_info=error)
