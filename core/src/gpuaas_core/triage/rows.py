"""Rows of log lines and spans, both as they are stored and before they are stored."""

from dataclasses import dataclass
from typing import NewType, TypedDict

from ..kit.json_types import Json

LogLineId = NewType("LogLineId", str)
SpanRowId = NewType("SpanRowId", str)


@dataclass(frozen=True)
class LogLineRow:
    """The columns of `tables.log_lines`, in their order."""

    id: LogLineId
    at: int
    received_at: int
    level: str
    source: str
    message: str
    correlation_id: str
    trace_id: str | None
    tenant_id: str | None
    project_id: str | None
    operation_id: str | None
    principal_id: str
    fields: Json


@dataclass(frozen=True)
class SpanRow:
    """The columns of `tables.spans`, in their order."""

    id: SpanRowId
    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    status: str
    started_at: int
    ended_at: int
    received_at: int
    correlation_id: str
    tenant_id: str | None
    project_id: str | None
    operation_id: str | None
    principal_id: str
    attributes: Json


class NewLine(TypedDict):
    at: int
    level: str
    source: str
    message: str
    correlation_id: str
    trace_id: str | None
    operation_id: str | None
    fields: Json


class NewSpan(TypedDict):
    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    status: str
    started_at: int
    ended_at: int
    correlation_id: str
    operation_id: str | None
    attributes: Json


class Owner(TypedDict):
    """The project that a log line or span was sent for, its sender, and the time of receipt."""

    tenant_id: str | None
    project_id: str | None
    principal_id: str
    received_at: int


class OwnedLine(NewLine, Owner):
    """A log line with its owner, which has no id yet because it is not stored yet."""
