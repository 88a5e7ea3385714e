"""Every request gets its correlation and trace id, every answer carries them, every request leaves a log line."""

import time
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders

from ..ledger.correlation import correlate, current

log = structlog.get_logger("gpuaas.request")


class Correlate:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        seen = correlate(headers.get("x-correlation-id"), headers.get("traceparent"))
        token = current.set(seen)
        structlog.contextvars.bind_contextvars(correlation_id=seen.correlation_id, trace_id=seen.trace_id)
        started, status = time.perf_counter(), 0

        async def send_marked(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                marked = MutableHeaders(scope=message)
                marked["X-Correlation-Id"] = seen.correlation_id
                marked["X-Trace-Id"] = seen.trace_id
            await send(message)

        try:
            await self.app(scope, receive, send_marked)
        finally:
            took = round((time.perf_counter() - started) * 1000, 1)
            log.info("request", method=scope["method"], path=scope["path"], status=status, ms=took)
            structlog.contextvars.clear_contextvars()
            current.reset(token)
