"""Wire models of telemetry and triage."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from ..kit.wire import Id, Input, Moment, View, canonical, describe_pattern

MOST_MESSAGE = 8 * 1024
MOST_FIELDS = 4 * 1024
MOST_ROWS = 200

_MOMENT = describe_pattern(
    r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][0-2][0-9]:[0-5][0-9])$",
    "a moment like 2026-11-15T12:00:00.000Z",
)
_CORRELATION = describe_pattern(r"^[A-Za-z0-9._:-]{8,128}$", "8 to 128 letters, digits and ._:-")
_TRACE = describe_pattern(r"^[0-9a-f]{32}$", "32 lower-case hexadecimal digits")
_SPAN = describe_pattern(r"^[0-9a-f]{16}$", "16 lower-case hexadecimal digits")


Fields = dict[str, Any]  # any JSON object, within the bounds below


def _real_moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def _small(fields: Fields) -> Fields:
    if len(canonical(fields).encode()) > MOST_FIELDS:
        raise ValueError(f"more than {MOST_FIELDS} bytes as JSON")
    return fields


def _short(text: str) -> str:
    if len(text.encode()) > MOST_MESSAGE:
        raise ValueError(f"more than {MOST_MESSAGE} bytes")
    return text


When = Annotated[str, StringConstraints(pattern=_MOMENT), AfterValidator(_real_moment)]
CorrelationId = Annotated[str, StringConstraints(pattern=_CORRELATION)]
TraceId = Annotated[str, StringConstraints(pattern=_TRACE)]
SpanId = Annotated[str, StringConstraints(pattern=_SPAN)]
Message = Annotated[str, StringConstraints(min_length=1, max_length=MOST_MESSAGE), AfterValidator(_short)]
Small = Annotated[Fields, AfterValidator(_small)]


class Line(Input):
    """One log line. `fields.kind` may be `step` (of a controller) or `command` (on a host)."""

    at: When
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: Message
    correlation_id: CorrelationId
    trace_id: TraceId | None = None
    operation_id: Id | None = None
    fields: Small = Field(default_factory=dict)


class Span(Input):
    """A span, as in OpenTelemetry."""

    trace_id: TraceId
    span_id: SpanId
    parent_id: SpanId | None = None
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    status: Literal["ok", "error"] = "ok"
    started_at: When
    ended_at: When
    correlation_id: CorrelationId
    operation_id: Id | None = None
    attributes: Small = Field(default_factory=dict)


class Telemetry(Input):
    lines: list[Line] = Field(default_factory=list[Line], max_length=MOST_ROWS)
    spans: list[Span] = Field(default_factory=list[Span], max_length=MOST_ROWS)


class KeptView(View):
    lines: int
    spans: int


class EntryView(View):
    at: Moment
    source: str = Field(description="core, controller or host")
    kind: str = Field(description="request, decision, operation, event, step, command, log or span")
    level: str
    sentence: str
    operation_id: str | None = None
    detail: dict[str, Any] = Field(default_factory=dict)


class VerdictView(View):
    what: str
    why: str
    way_out: str
    code: str | None = None
    operation_id: str | None = None


class TriageView(View):
    correlation_id: str
    trace_ids: list[str]
    verdict: VerdictView
    timeline: list[EntryView]
    truncated: bool = Field(description="older log lines were omitted")
