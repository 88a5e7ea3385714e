"""Every request gets a correlation and trace id, every answer carries them, every request is logged.

API responses are never cached and never sniffed for another content type. The console's files are served before this
middleware, with caching headers of their own.
"""

import time
from collections.abc import Sequence
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders

from ..kit.clock import Clock, system_clock
from ..kit.correlation import correlate, current
from .request_log import IN_SCOPE, Seen, Watcher

log = structlog.get_logger("gpuaas.request")


class Correlate:
    def __init__(self, app: Any, watchers: Sequence[Watcher] = (), clock: Clock = system_clock) -> None:
        self.app, self.watchers, self.clock = app, watchers, clock

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        ids = correlate(headers.get("x-correlation-id"), headers.get("traceparent"))
        token = current.set(ids)
        structlog.contextvars.bind_contextvars(correlation_id=ids.correlation_id, trace_id=ids.trace_id)
        seen = scope[IN_SCOPE] = Seen(scope["method"], scope["path"], self.clock(), ids)
        started = time.perf_counter()

        async def send_marked(message: Any) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                marked = MutableHeaders(scope=message)
                marked["X-Correlation-Id"] = ids.correlation_id
                marked["X-Trace-Id"] = ids.trace_id
                marked["Cache-Control"] = "no-store"
                marked["X-Content-Type-Options"] = "nosniff"
            await send(message)

        try:
            await self.app(scope, receive, send_marked)
        finally:
            seen.ms = round((time.perf_counter() - started) * 1000, 1)
            log.info("request", method=seen.method, path=seen.path, status=seen.status, ms=seen.ms)
            self._tell(seen)
            await _do(seen)
            structlog.contextvars.clear_contextvars()
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
