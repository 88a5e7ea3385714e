"""Serves `GET /metrics` on a separate address, because metrics of all tenants are for the operator of the platform and
not for callers of the API."""

from typing import Protocol

import prometheus_client
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from ..http.call import Platform
from .requests import RequestMetrics
from .store import StoreMetrics


class _Library(Protocol):
    """The type of the one function of `prometheus_client` that is used here, because the library does not annotate its
    result."""

    def make_asgi_app(self, registry: CollectorRegistry) -> ASGIApp: ...


_LIBRARY: _Library = prometheus_client


class Metrics:
    def __init__(self, platform: Platform) -> None:
        self.registry = CollectorRegistry()
        self.requests = RequestMetrics(self.registry, platform.db)
        self.registry.register(StoreMetrics(platform.db, platform.clock))
        self._pages = _LIBRARY.make_asgi_app(self.registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/metrics" and scope["method"] in ("GET", "HEAD"):
            await self._pages(scope, receive, send)
        elif scope["type"] == "http":
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            await send({"type": "http.response.body", "body": b"Only GET /metrics is served here.\n"})
