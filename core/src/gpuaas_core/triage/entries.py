"""Entries of a timeline: one sentence each for a log line, an access decision, an event, a span or an operation."""

from dataclasses import dataclass

from ..audit.by_correlation import RecordedDecision
from ..events.by_correlation import RecordedEvent
from ..kit.json_types import Json, JsonValue, is_object
from ..operations.rows import OperationRow
from . import verdict
from .rows import LogLineRow, SpanRow
from .schemas import EntryView

ORDER = ("request", "decision", "operation", "event", "span", "step", "command", "log", "ended")


@dataclass(frozen=True)
class Entry:
    at: int
    kind: str  # of ORDER
    view: EntryView

    @property
    def position(self) -> tuple[int, int]:
        return self.at, ORDER.index(self.kind)


def of_line(row: LogLineRow) -> Entry:
    fields = row.fields
    if row.source == "core":
        problem = fields.get("problem")
        sentence = f"{row.message}: {problem['detail']}" if is_object(problem) and problem else row.message
        sentence = f"{sentence} (by {row.principal_id})"
        return _entry(row.at, "request", "core", sentence, row.level, row.operation_id, fields)
    kind = "step" if fields.get("kind") == "step" else "command" if fields.get("kind") == "command" else "log"
    source = "host" if kind == "command" else "controller"
    return _entry(row.at, kind, source, row.message, row.level, row.operation_id, fields)


def of_decision(row: RecordedDecision) -> Entry:
    sentence = f"{row.actor_id} was {row.outcome} {row.permission}: {row.reason or 'no reason given'}"
    level = "info" if row.outcome == "allowed" else "warning"
    detail = {"permission": row.permission, "outcome": row.outcome, "resource_id": row.resource_id}
    return _entry(row.at, "decision", "core", sentence, level, detail=detail)


def of_event(row: RecordedEvent) -> Entry:
    data = row.data
    name = data.get("instance_name") or data.get("name") or row.subject
    count = f" {data['step']}/{data['of']}" if data.get("of") else ""
    summary = _summary(row.type, data)
    detail = {"type": row.type, "sequence": row.sequence, "subject": row.subject}
    level = "error" if row.type.endswith((".failed", ".needs_attention")) else "info"
    sentence = f"{row.type} {name}{count}" + (f": {summary}" if summary else "")
    return _entry(row.at, "event", "core", sentence, level, data.get("operation_id"), detail)


def of_span(row: SpanRow) -> Entry:
    took = row.ended_at - row.started_at
    detail = {"trace_id": row.trace_id, "span_id": row.span_id, "parent_id": row.parent_id, **row.attributes}
    level = "error" if row.status == "error" else "info"
    sentence = f"{row.name} took {took} ms" + (", with an error" if level == "error" else "")
    return _entry(row.started_at, "span", "controller", sentence, level, row.operation_id, detail)


def of_operation(row: OperationRow, target: str) -> list[Entry]:
    """Build the entry for the request of an operation and, if the operation has ended, the entry for its end. `target`
    is the name of the operation's target."""
    again = f", a retry of {row.retry_of}" if row.retry_of else ""
    requested = f"Operation {row.id} was requested: {row.kind} of {target} ({row.app_slug} {row.version}){again}"
    entries = [_entry(row.created_at, "operation", "core", requested, operation_id=row.id)]
    if row.finished_at:
        error = row.error or {}
        sentence = f"Operation {row.id} {verdict.ended(row.status)}"
        sentence += f": {error['message']} ({error['code']}) What to do: {error['way_out']}" if error else ""
        level = "info" if row.status in ("succeeded", "superseded") else "error"
        entries.append(_entry(row.finished_at, "ended", "core", sentence, level, row.id, error))
    return entries


def _summary(type: str, data: Json) -> JsonValue:
    if type == "apps.operation.claimed":  # its message still describes the time before the claim
        return f"claimed by a controller (claim epoch {data.get('claim_epoch')})"
    if type.startswith("apps.member."):
        return f"{data.get('component_key')} is {data.get('state') or 'planned'}"
    return data.get("message") or data.get("state") or data.get("component_key") or ""


def _entry(
    at: int,
    kind: str,
    source: str,
    sentence: str,
    level: str = "info",
    operation_id: JsonValue = None,
    detail: Json | None = None,
) -> Entry:
    shown = {
        "at": at,
        "source": source,
        "kind": "operation" if kind == "ended" else kind,
        "level": level,
        "sentence": sentence,
        "operation_id": operation_id,
        "detail": detail or {},
    }
    return Entry(at, kind, EntryView.model_validate(shown))
