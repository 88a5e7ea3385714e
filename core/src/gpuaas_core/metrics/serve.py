"""`GET /metrics` on an address of its own: metrics of all tenants are for the operator, not for the API's callers."""

from typing import Any

from prometheus_client import CollectorRegistry, make_asgi_app

from ..http.call import Platform
from .requests import RequestMetrics
from .store import StoreMetrics


class Metrics:
    def __init__(self, platform: Platform) -> None:
        self.registry = CollectorRegistry()
        self.requests = RequestMetrics(self.registry, platform.db)
        self.registry.register(StoreMetrics(platform.db, platform.clock))
        self._pages = make_asgi_app(self.registry)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/metrics" and scope["method"] in ("GET", "HEAD"):
            await self._pages(scope, receive, send)
        elif scope["type"] == "http":
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            await send({"type": "http.response.body", "body": b"Only GET /metrics is served here.\n"})
