"""Sends the core's own spans (one per request) and log lines to any OTLP/HTTP endpoint (GPUAAS_CORE_OTLP_ENDPOINT).

A request only puts its span into a bounded queue: it never waits for the endpoint, and never fails because of it. Items
beyond the queue's limit, and items that the endpoint rejects or does not accept in time, are dropped and counted.
"""

import asyncio
import contextlib
import secrets
import urllib.error
import urllib.request
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import structlog
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from structlog.typing import EventDict

from ..http.request_log import Seen
from ..kit.clock import system_clock

log = structlog.get_logger("gpuaas.export")
MOST_WAITING = 10_000
BATCH = 500
EVERY_S = 1.0
TIMEOUT_S = 10.0
PATIENCE_S = (0.5, 1.0, 2.0, 4.0, 8.0)  # between attempts for one batch; then it is dropped
WORTH_REPEATING = {429, 502, 503, 504}  # per the protocol
RECEIVER = "/otlp/v1/"  # received telemetry is not exported: two cores would feed each other for ever
SEVERITY = {"debug": 5, "info": 9, "warning": 13, "error": 17, "critical": 21}

Item: TypeAlias = Span | LogRecord
Attributes: TypeAlias = RepeatedCompositeFieldContainer[KeyValue]


class Rejected(Exception):
    """Raised when the endpoint rejects a batch permanently, so that a retry is useless."""


class OtlpExport(Collector):
    def __init__(self, endpoint: str, headers: str = "") -> None:
        if urlsplit(endpoint).scheme not in ("http", "https"):
            raise ValueError("GPUAAS_CORE_OTLP_ENDPOINT must begin with http:// or https://")
        self._endpoint, self._headers = endpoint.rstrip("/"), _parsed(headers)
        self._waiting: dict[str, deque[Item]] = {"traces": deque(), "logs": deque()}
        self.sent = dict.fromkeys(self._waiting, 0)
        self.dropped = dict.fromkeys(self._waiting, 0)

    def __call__(self, seen: Seen) -> None:
        """Add the span of an answered request to the queue. Requests that deliver telemetry are left out."""
        if RECEIVER not in seen.path:
            self._put("traces", _span(seen))

    def line(self, _logger: object, _method: str, entry: EventDict) -> EventDict:
        """Add a log line to the queue. As a structlog processor, the method returns the entry unchanged."""
        if RECEIVER not in str(entry.get("path", "")):
            self._put("logs", _record(entry))
        return entry

    def _put(self, signal: str, item: Item) -> None:
        if len(self._waiting[signal]) >= MOST_WAITING:
            self.dropped[signal] += 1
        else:
            self._waiting[signal].append(item)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        tasks = [asyncio.create_task(self._loop(signal)) for signal in self._waiting]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(self._last(signal) for signal in self._waiting))

    async def _loop(self, signal: str) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            while batch := self._batch(signal):
                await self._deliver(signal, batch)

    def _batch(self, signal: str) -> list[Item]:
        waiting = self._waiting[signal]
        return [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]

    async def _deliver(self, signal: str, batch: list[Item]) -> None:
        body, kept = REQUESTS[signal](batch), False
        try:
            for pause in (*PATIENCE_S, None):
                try:
                    await asyncio.to_thread(self._post, signal, body, TIMEOUT_S)
                    kept = True
                    break
                except OSError as error:
                    if pause is None:
                        raise
                    log.debug("the OTLP endpoint does not respond", reason=str(error))
                    await asyncio.sleep(pause)
        except (OSError, Rejected) as error:
            log.warning("dropped telemetry", signal=signal, items=len(batch), reason=str(error))
        finally:
            (self.sent if kept else self.dropped)[signal] += len(batch)

    async def _last(self, signal: str) -> None:
        """Send one last batch of the waiting items at shutdown, with one short attempt. Errors are ignored."""
        batch = self._batch(signal)
        if batch:
            with contextlib.suppress(OSError, Rejected):
                await asyncio.to_thread(self._post, signal, REQUESTS[signal](batch), 2.0)

    def _post(self, signal: str, body: bytes, timeout: float) -> None:
        headers = {"Content-Type": "application/x-protobuf"} | self._headers
        request = urllib.request.Request(f"{self._endpoint}/v1/{signal}", body, headers)  # noqa: S310 - scheme checked
        try:
            with urllib.request.urlopen(request, timeout=timeout):  # noqa: S310
                pass
        except urllib.error.HTTPError as error:
            error.close()
            if error.code not in WORTH_REPEATING:
                raise Rejected(f"answered {error.code}") from None
            raise

    def collect(self) -> Iterator[Metric]:
        for name, counted in (("sent", self.sent), ("dropped", self.dropped)):
            family = CounterMetricFamily(f"gpuaas_otlp_{name}", f"Spans and lines {name}", labels=["signal"])
            for signal, count in counted.items():
                family.add_metric([signal], count)
            yield family


def _parsed(headers: str) -> dict[str, str]:
    """Parse headers in the format of OTEL_EXPORTER_OTLP_HEADERS: `name=value,name=value`, percent-encoded."""
    pairs = (pair.partition("=") for pair in headers.split(",") if pair.strip())
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def _span(seen: Seen) -> Span:
    ids = seen.correlation
    span = Span(
        trace_id=bytes.fromhex(ids.trace_id),
        span_id=secrets.token_bytes(8),
        parent_span_id=bytes.fromhex(ids.parent_id or ""),
        name=f"{seen.method} {seen.route or 'unknown'}",
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=seen.at * 1_000_000,
        end_time_unix_nano=seen.at * 1_000_000 + int(seen.ms * 1_000_000),
    )
    _add(span.attributes, {"gpuaas.correlation_id": ids.correlation_id, "http.request.method": seen.method})
    _add(span.attributes, {"url.path": seen.path[:300], "http.response.status_code": seen.status})
    _add(span.attributes, {"gpuaas.tenant_id": seen.tenant_id, "gpuaas.project_id": seen.project_id})
    if seen.status >= 500:
        span.status.code = Status.STATUS_CODE_ERROR
    if seen.problem:
        _add(span.attributes, {"error.type": seen.problem["code"]})
    return span


def _record(entry: EventDict) -> LogRecord:
    level = str(entry.get("level", "info"))
    record = LogRecord(time_unix_nano=system_clock() * 1_000_000, severity_number=SEVERITY.get(level, 9))  # type: ignore[arg-type] - numbers are fine
    record.severity_text = level
    record.body.string_value = str(entry.get("event", ""))
    trace = str(entry.get("trace_id", ""))
    record.trace_id = bytes.fromhex(trace) if len(trace) == 32 else b""
    _add(record.attributes, {"gpuaas.correlation_id": entry.get("correlation_id")})
    left = {
        name: value for name, value in entry.items() if name not in ("event", "level", "trace_id", "correlation_id")
    }
    _add(record.attributes, {name: value if isinstance(value, int) else str(value) for name, value in left.items()})
    return record


def _add(attributes: Attributes, values: Mapping[str, str | int | None]) -> None:
    for name, value in values.items():
        if value is None:
            continue
        attribute = attributes.add(key=name)
        if isinstance(value, int):
            attribute.value.int_value = value
        else:
            attribute.value.string_value = value.encode(errors="replace").decode()[:8192]


def _traces(batch: list[Item]) -> bytes:
    message = ExportTraceServiceRequest()
    group = message.resource_spans.add()
    _add(group.resource.attributes, {"service.name": "gpuaas-core"})
    group.scope_spans.add().spans.extend(item for item in batch if isinstance(item, Span))
    return message.SerializeToString()


def _logs(batch: list[Item]) -> bytes:
    message = ExportLogsServiceRequest()
    group = message.resource_logs.add()
    _add(group.resource.attributes, {"service.name": "gpuaas-core"})
    group.scope_logs.add().log_records.extend(item for item in batch if isinstance(item, LogRecord))
    return message.SerializeToString()


REQUESTS: dict[str, Callable[[list[Item]], bytes]] = {"traces": _traces, "logs": _logs}
