"""Converts OTLP messages to rows of `spans` and `log_lines`. Values that are too long are truncated; invalid rows are
rejected and counted.

Triage finds a row by its correlation id (the attribute `gpuaas.correlation_id` of the row or of its resource). A row
without a correlation id is found by its trace id, if another row of the same trace that the reader may see has the
correlation id.
"""

import base64
import math
import re
from collections.abc import Iterable, Iterator
from typing import Generic, TypedDict, TypeVar

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ..kit.json_types import Json, JsonValue
from ..kit.wire import canonical
from .rows import NewLine, NewSpan
from .schemas import MOST_FIELDS, MOST_MESSAGE

MOST_ROWS = 1000  # in one request; exporters send 512 by default
NO_CORRELATION = ""  # the correlation id of a row without one
_CORRELATION = re.compile(r"[A-Za-z0-9._:-]{8,128}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_PLAUSIBLE = range(946_684_800_000, 4_102_444_800_000)  # milliseconds: this century
_ERROR = 2  # of trace.v1.Status
_LEVELS = ((17, "error"), (13, "warning"), (9, "info"), (1, "debug"))


R = TypeVar("R", NewLine, NewSpan)


class Ids(TypedDict):
    correlation_id: str
    operation_id: str | None


class Received(Generic[R]):
    """The accepted rows of one request, and the number of rejected rows per reason."""

    def __init__(self) -> None:
        self.rows: list[R] = []
        self.reasons: dict[str, int] = {}

    @property
    def rejected(self) -> int:
        return sum(self.reasons.values())

    @property
    def why(self) -> str:
        return "; ".join(f"{count} rejected: {reason}" for reason, count in self.reasons.items())

    def take(self, row: R | str) -> None:
        """Add a row to the accepted rows. If `row` is a text, it is the reason for a rejection and is counted."""
        if isinstance(row, str):
            self._reject(row)
        elif len(self.rows) >= MOST_ROWS:
            self._reject(f"more than {MOST_ROWS} in one request")
        else:
            self.rows.append(row)

    def _reject(self, reason: str) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


def spans_of(request: ExportTraceServiceRequest) -> Received[NewSpan]:
    received = Received[NewSpan]()
    for group in request.resource_spans:
        shared = _attributes(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                received.take(_span(span, shared))
    return received


def lines_of(request: ExportLogsServiceRequest, now: int) -> Received[NewLine]:
    received = Received[NewLine]()
    for group in request.resource_logs:
        shared = _attributes(group.resource.attributes)
        for scope in group.scope_logs:
            for record in scope.log_records:
                received.take(_line(record, shared, now))
    return received


def _span(span: Span, shared: Json) -> NewSpan | str:
    if len(span.trace_id) != 16 or len(span.span_id) != 8 or not any(span.trace_id) or not any(span.span_id):
        return "no valid trace and span id"
    started, ended = span.start_time_unix_nano // 1_000_000, span.end_time_unix_nano // 1_000_000
    if started not in _PLAUSIBLE or ended not in _PLAUSIBLE:
        return "no plausible start and end"
    own = _attributes(span.attributes)
    error = span.status.code == _ERROR
    if error and span.status.message:
        own["error"] = _text(span.status.message)
    return {
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_id": span.parent_span_id.hex() if len(span.parent_span_id) == 8 else None,
        "name": (_text(span.name) or "(no name)")[:200],
        "status": "error" if error else "ok",
        "started_at": started,
        "ended_at": max(started, ended),
        "attributes": _fitting(_identity(shared) | own),
        **_ids(own, shared),
    }


def _line(record: LogRecord, shared: Json, now: int) -> NewLine | str:
    own = _attributes(record.attributes)
    ids = _ids(own, shared)
    trace_id = record.trace_id.hex() if len(record.trace_id) == 16 and any(record.trace_id) else None
    if ids["correlation_id"] == NO_CORRELATION and trace_id is None:
        return "neither gpuaas.correlation_id nor a trace id"
    at = (record.time_unix_nano or record.observed_time_unix_nano) // 1_000_000
    return {
        "at": at if at in _PLAUSIBLE else now,
        "level": next((level for least, level in _LEVELS if record.severity_number >= least), "info"),
        "source": "controller",
        "message": _cut(_body(record) or _text(record.severity_text) or "(no message)"),
        "trace_id": trace_id,
        "fields": _fitting(_identity(shared) | own),
        **ids,
    }


def _body(record: LogRecord) -> str:
    body = _value(record.body)
    return body if isinstance(body, str) else "" if body is None else canonical(body)


def _ids(own: Json, shared: Json) -> Ids:
    correlation, operation = (_attribute(name, own, shared) for name in ("correlation_id", "operation_id"))
    return {
        "correlation_id": correlation if _CORRELATION.fullmatch(correlation) else NO_CORRELATION,
        "operation_id": operation if _ID.fullmatch(operation) else None,
    }


def _attribute(name: str, *places: Json) -> str:
    values = (place.get(spelled) for place in places for spelled in (f"gpuaas.{name}", name))
    return next((value for value in values if isinstance(value, str)), "")


def _identity(shared: Json) -> dict[str, JsonValue]:
    """Return the attributes that identify the resource. Its other attributes are left out, because they would be
    repeated in every row."""
    return {name: shared[name] for name in ("service.name", "host.name") if name in shared}


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, JsonValue]:
    return {_text(pair.key): _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> JsonValue:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return _text(value.string_value)
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "double_value":
        return value.double_value if math.isfinite(value.double_value) else str(value.double_value)
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    if kind == "bool_value":
        return value.bool_value
    return value.int_value if kind == "int_value" else None


def _text(text: str) -> str:
    """Replace NUL characters, which databases cannot store in text."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _cut(text: str) -> str:
    return text.encode()[:MOST_MESSAGE].decode(errors="ignore")


def _fitting(attributes: Json) -> Json:
    """Return as many attributes as fit into a row. If some are dropped, `attributes_left_out` has their number."""
    kept: dict[str, JsonValue] = {}
    room = MOST_FIELDS - 40
    for name, value in attributes.items():
        room -= len(canonical({name: value}).encode())
        if room < 0:
            break
        kept[name] = value
    return kept | dict(_left_out(len(attributes) - len(kept)))


def _left_out(count: int) -> Iterator[tuple[str, int]]:
    if count:
        yield "attributes_left_out", count
