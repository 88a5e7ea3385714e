"""Metrics of this process: the duration of requests by route, and the duration of write transactions."""

from prometheus_client import CollectorRegistry, Histogram

from ..http.request_log import Seen
from ..kit.db import Database

REQUEST_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
WRITE_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class RequestMetrics:
    """Counts and times requests in one histogram, whose `_count` is the number of requests. The label `route` is the
    template of the route, never the path of a request."""

    def __init__(self, registry: CollectorRegistry, db: Database) -> None:
        labels = ("method", "route", "status")
        self._requests = Histogram(
            "gpuaas_request_seconds", "Requests by route and status", labels, buckets=REQUEST_S, registry=registry
        )
        writes = Histogram(
            "gpuaas_store_write_seconds",
            "Duration of a write transaction, without the wait for the writer",
            buckets=WRITE_S,
            registry=registry,
        )
        db.on_write = writes.observe
        self._known: dict[tuple[str, str, int], Histogram] = {}

    def __call__(self, seen: Seen) -> None:
        route = seen.route or "none"  # one series for unmatched paths, or a scanner would create thousands
        method = seen.method if seen.method in ("GET", "POST") else "other"
        series = (method, route, seen.status)
        if series not in self._known:
            self._known[series] = self._requests.labels(method, route, str(seen.status))
        self._known[series].observe(seen.ms / 1000)
