"""Everything recorded under one correlation id that this caller may see, as entries in time order.

A row is shown to callers who may read its project's (or tenant's) events, and to the caller that caused it. Audit rows
need the permission to read the audit trail, unless the caller is their actor.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from sqlalchemy import Row, or_, select

from ..audit.audit_log import NOT_VISIBLE
from ..audit.tables import audit
from ..authz.context import Context
from ..authz.evaluate import Scope
from ..events.event_log import PLATFORM
from ..events.tables import events
from ..instances.tables import instances
from ..kit.problems import UNSEEN, NotFound, Problem
from ..operations.tables import operations
from ..tenancy.reads import project_scope, tenant_scope
from . import schemas, verdict
from .otlp_rows import NO_CORRELATION
from .tables import log_lines, spans

MOST = 500  # of each kind
MOST_TRACES = 50
ORDER = ("request", "decision", "operation", "event", "span", "step", "command", "log", "ended")
REPORTS = "apps.operation.work"  # allowed reports of controllers are left out: their events have the same content


def timeline(ctx: Context, correlation_id: str) -> schemas.TriageView:
    sight = _Sight(ctx)
    operations = sight.only(_operations(ctx, correlation_id), "apps.instance.read", "requested_by")
    lines, truncated = _newest(ctx, log_lines, log_lines.c.at, correlation_id)
    lines = sight.only(lines, "ledger.event.read", "principal_id")
    decisions = sight.only(_decisions(ctx, correlation_id), "ledger.audit.read", "actor_id", hidden=_hidden)
    happened = sight.only(_events(ctx, correlation_id, operations), "ledger.event.read")
    stretches = sight.only(_newest(ctx, spans, spans.c.started_at, correlation_id)[0], "ledger.event.read")
    traces = _traces([*lines, *decisions, *happened, *stretches])
    lines += sight.only(_traced(ctx, log_lines, log_lines.c.at, traces), "ledger.event.read")
    stretches += sight.only(_traced(ctx, spans, spans.c.started_at, traces), "ledger.event.read")
    entries = [_line_entry(row) for row in lines] + [_decision_entry(row) for row in decisions]
    entries += [_event_entry(row) for row in happened] + [_span_entry(row) for row in stretches]
    entries += [entry for row in operations for entry in _operation_entries(row)]
    if not entries:
        raise NotFound(UNSEEN)
    entries.sort(key=lambda entry: (entry[0], ORDER.index(entry[1])))
    return schemas.TriageView(
        correlation_id=correlation_id,
        trace_ids=traces,
        verdict=verdict.of(operations, lines, decisions),
        timeline=[entry[2] for entry in entries],
        truncated=truncated,
    )


class _Sight:
    """What the caller may see; each scope and permission is checked once."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._may = cache(self._ask)

    def only(
        self,
        rows: Iterable[Row[Any]],
        key: str,
        cause: str | None = None,
        hidden: Callable[[Row[Any]], bool] = lambda _row: False,
    ) -> list[Row[Any]]:
        """`hidden`: rows shown only to holders of the permission, not to the caller that caused them."""

        def shown(row: Row[Any]) -> bool:
            own = self._own(row, cause) and not hidden(row)
            return own or self._may(key, _tenant(row), row.project_id)

        return [row for row in rows if shown(row)]

    def _own(self, row: Row[Any], cause: str | None) -> bool:
        return cause is not None and row._mapping[cause] == self._ctx.principal.id

    def _ask(self, key: str, tenant_id: str | None, project_id: str | None) -> bool:
        try:
            self._ctx.allow(key, self._scope(tenant_id, project_id))
        except Problem:
            return False
        return True

    def _scope(self, tenant_id: str | None, project_id: str | None) -> Scope:
        if project_id:
            return project_scope(self._ctx.tx, project_id)
        return tenant_scope(self._ctx.tx, tenant_id) if tenant_id else Scope()


def _hidden(row: Row[Any]) -> bool:
    """The caller got a 404: showing it the row would reveal that the resource exists."""
    return row.reason.startswith(NOT_VISIBLE)


def _tenant(row: Row[Any]) -> str | None:
    return None if row.tenant_id == PLATFORM else row.tenant_id


def _operations(ctx: Context, correlation_id: str) -> list[Row[Any]]:
    o = operations.c
    query = select(operations, o.scope_id.label("project_id"), instances.c.name.label("instance_name")).join(
        instances, instances.c.id == o.lock_key
    )
    query = query.where(operations.c.correlation_id == correlation_id)
    return list(ctx.tx.execute(query.order_by(operations.c.id.desc()).limit(MOST)))[::-1]


def _newest(ctx: Context, table: Any, moment: Any, correlation_id: str) -> tuple[list[Row[Any]], bool]:
    query = select(table).where(table.c.correlation_id == correlation_id)
    rows = list(ctx.tx.execute(query.order_by(moment.desc(), table.c.id.desc()).limit(MOST + 1)))
    return rows[:MOST][::-1], len(rows) > MOST


def _traces(rows: list[Row[Any]]) -> list[str]:
    return list(dict.fromkeys(row.trace_id for row in rows if row.trace_id))[:MOST_TRACES]


def _traced(ctx: Context, table: Any, moment: Any, traces: list[str]) -> list[Row[Any]]:
    """Rows without a correlation id, of a trace that has one."""
    query = select(table).where(table.c.trace_id.in_(traces), table.c.correlation_id == NO_CORRELATION)
    return list(ctx.tx.execute(query.order_by(moment.desc(), table.c.id.desc()).limit(MOST)))[::-1] if traces else []


def _decisions(ctx: Context, correlation_id: str) -> list[Row[Any]]:
    """All denials, and what was allowed, except reports of controllers."""
    telling = or_(audit.c.outcome != "allowed", audit.c.permission != REPORTS)
    query = select(audit).where(audit.c.correlation_id == correlation_id, telling)
    return list(
        ctx.tx.execute(query.order_by(audit.c.at.desc(), audit.c.sequence.desc(), audit.c.tenant_id).limit(MOST))
    )[::-1]


def _events(ctx: Context, correlation_id: str, operations: list[Row[Any]]) -> list[Row[Any]]:
    """Events with the correlation id, and events of its operations: a claim has the claiming controller's own id."""
    matches = [events.c.correlation_id == correlation_id]
    for row in operations:
        matches.append((events.c.project_id == row.project_id) & (events.c.subject == row.id))
    query = select(events).where(or_(*matches))
    return list(
        ctx.tx.execute(query.order_by(events.c.at.desc(), events.c.sequence.desc(), events.c.tenant_id).limit(MOST))
    )[::-1]


Entry = tuple[int, str, schemas.EntryView]


def _entry(at: int, kind: str, source: str, sentence: str, level: str = "info", **more: Any) -> Entry:
    shown = "operation" if kind == "ended" else kind
    return at, kind, schemas.EntryView(at=at, source=source, kind=shown, level=level, sentence=sentence, **more)  # type: ignore[arg-type] - Moment takes milliseconds


def _line_entry(row: Row[Any]) -> Entry:
    more = {"operation_id": row.operation_id, "detail": row.fields}
    if row.source == "core":
        problem = row.fields.get("problem") or {}
        sentence = f"{row.message}: {problem['detail']}" if problem else row.message
        return _entry(row.at, "request", "core", f"{sentence} (by {row.principal_id})", row.level, **more)
    kind = row.fields.get("kind")
    kind = kind if kind in ("step", "command") else "log"
    return _entry(row.at, kind, "host" if kind == "command" else "controller", row.message, row.level, **more)


def _decision_entry(row: Row[Any]) -> Entry:
    sentence = f"{row.actor_id} was {row.outcome} {row.permission}: {row.reason or 'no reason given'}"
    level = "info" if row.outcome == "allowed" else "warning"
    detail = {"permission": row.permission, "outcome": row.outcome, "resource_id": row.resource_id}
    return _entry(row.at, "decision", "core", sentence, level, detail=detail)


def _event_entry(row: Row[Any]) -> Entry:
    data = row.data
    name = data.get("instance_name") or data.get("name") or row.subject
    count = f" {data['step']}/{data['of']}" if data.get("of") else ""
    summary = _summary(row.type, data)
    detail = {"type": row.type, "sequence": row.sequence, "subject": row.subject}
    level = "error" if row.type.endswith((".failed", ".needs_attention")) else "info"
    sentence = f"{row.type} {name}{count}" + (f": {summary}" if summary else "")
    return _entry(row.at, "event", "core", sentence, level, operation_id=data.get("operation_id"), detail=detail)


def _summary(type: str, data: dict[str, Any]) -> str:
    if type == "apps.operation.claimed":  # its message still describes the time before the claim
        return f"claimed by a controller (claim epoch {data.get('claim_epoch')})"
    if type.startswith("apps.member."):
        return f"{data.get('component_key')} is {data.get('state') or 'planned'}"
    return data.get("message") or data.get("state") or data.get("component_key") or ""


def _span_entry(row: Row[Any]) -> Entry:
    took = row.ended_at - row.started_at
    detail = {"trace_id": row.trace_id, "span_id": row.span_id, "parent_id": row.parent_id} | row.attributes
    level = "error" if row.status == "error" else "info"
    sentence = f"{row.name} took {took} ms" + (", with an error" if level == "error" else "")
    return _entry(row.started_at, "span", "controller", sentence, level, operation_id=row.operation_id, detail=detail)


def _operation_entries(row: Row[Any]) -> list[Entry]:
    about = f"{row.kind} of {row.instance_name} ({row.app_slug} {row.version})"
    again = f", a retry of {row.retry_of}" if row.retry_of else ""
    requested = f"Operation {row.id} was requested: {about}{again}"
    entries = [_entry(row.created_at, "operation", "core", requested, operation_id=row.id)]
    if row.finished_at:
        error = row.error or {}
        sentence = f"Operation {row.id} {verdict.ended(row.status)}"
        sentence += f": {error['message']} ({error['code']}) What to do: {error['way_out']}" if error else ""
        level = "info" if row.status in ("succeeded", "superseded") else "error"
        entries.append(_entry(row.finished_at, "ended", "core", sentence, level, operation_id=row.id, detail=error))
    return entries
