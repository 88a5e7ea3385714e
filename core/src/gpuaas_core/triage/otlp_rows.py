"""Converts OTLP messages to rows of `spans` and `log_lines`. What does not fit is truncated or counted as rejected.

A row is found by its correlation id (`gpuaas.correlation_id`, on itself or its resource), otherwise by its trace
id, if another row of the same trace that the reader may see has the correlation id.
"""

import base64
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..kit.wire import canonical
from .schemas import MOST_FIELDS, MOST_MESSAGE

MOST_ROWS = 1000  # in one request; exporters send 512 by default
NO_CORRELATION = ""  # the correlation id of a row without one
_CORRELATION = re.compile(r"[A-Za-z0-9._:-]{8,128}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_PLAUSIBLE = range(946_684_800_000, 4_102_444_800_000)  # milliseconds: this century
_ERROR = 2  # of trace.v1.Status
_LEVELS = ((17, "error"), (13, "warning"), (9, "info"), (1, "debug"))


@dataclass
class Received:
    rows: list[dict[str, Any]] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def rejected(self) -> int:
        return sum(self.reasons.values())

    @property
    def why(self) -> str:
        return "; ".join(f"{count} rejected: {reason}" for reason, count in self.reasons.items())

    def take(self, row: dict[str, Any] | str) -> None:
        """A row, or the reason for its rejection."""
        reason = row if isinstance(row, str) else ""
        if not reason and len(self.rows) >= MOST_ROWS:
            reason = f"more than {MOST_ROWS} in one request"
        if reason:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        elif isinstance(row, dict):
            self.rows.append(row)


def spans_of(request: Any) -> Received:
    received = Received()
    for group in request.resource_spans:
        shared = _attributes(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                received.take(_span(span, shared))
    return received


def lines_of(request: Any, now: int) -> Received:
    received = Received()
    for group in request.resource_logs:
        shared = _attributes(group.resource.attributes)
        for scope in group.scope_logs:
            for record in scope.log_records:
                received.take(_line(record, shared, now))
    return received


def _span(span: Any, shared: dict[str, Any]) -> dict[str, Any] | str:
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
    } | _ids(own, shared)


def _line(record: Any, shared: dict[str, Any], now: int) -> dict[str, Any] | str:
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
    } | ids


def _body(record: Any) -> str:
    body = _value(record.body)
    return body if isinstance(body, str) else "" if body is None else canonical(body)


def _ids(own: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    correlation, operation = (_attribute(name, own, shared) for name in ("correlation_id", "operation_id"))
    return {
        "correlation_id": correlation if _CORRELATION.fullmatch(correlation) else NO_CORRELATION,
        "operation_id": operation if _ID.fullmatch(operation) else None,
    }


def _attribute(name: str, *places: dict[str, Any]) -> str:
    values = (place.get(spelled) for place in places for spelled in (f"gpuaas.{name}", name))
    return next((value for value in values if isinstance(value, str)), "")


def _identity(shared: dict[str, Any]) -> dict[str, Any]:
    """The identity of the resource; its other attributes are the same on every row."""
    return {name: shared[name] for name in ("service.name", "host.name") if name in shared}


def _attributes(pairs: Any) -> dict[str, Any]:
    return {_text(pair.key): _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
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
    return getattr(value, kind) if kind in ("bool_value", "int_value") else None


def _text(text: str) -> str:
    """Databases cannot store a NUL in text."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _cut(text: str) -> str:
    return text.encode()[:MOST_MESSAGE].decode(errors="ignore")


def _fitting(attributes: dict[str, Any]) -> dict[str, Any]:
    """As many attributes as fit, and how many were dropped."""
    kept, room = {}, MOST_FIELDS - 40
    for name, value in attributes.items():
        room -= len(canonical({name: value}).encode())
        if room < 0:
            break
        kept[name] = value
    return kept | dict(_left_out(len(attributes) - len(kept)))


def _left_out(count: int) -> Iterator[tuple[str, int]]:
    if count:
        yield "attributes_left_out", count
