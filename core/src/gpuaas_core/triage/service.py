"""Stores received telemetry, and deletes it after a week."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, insert

from ..authz.context import Context
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.rows import Command
from . import schemas
from .rows import NewLine, NewSpan, OwnedLine, Owner
from .tables import log_lines, spans

KEPT_MS = 7 * 24 * 3600 * 1000
_ADD_LINES = Command(insert(log_lines), log_lines.c.keys())
_ADD_SPANS = Command(insert(spans), spans.c.keys())


def keep(ctx: Context, body: schemas.Telemetry) -> schemas.KeptView:
    keep_lines(ctx, [_line(line) for line in body.lines])
    keep_spans(ctx, [_span(span) for span in body.spans])
    return schemas.KeptView(lines=len(body.lines), spans=len(body.spans))


def keep_lines(ctx: Context, rows: list[NewLine]) -> None:
    owner = _owner(ctx)
    add_lines(ctx.tx, [{**row, **owner} for row in rows])


def keep_spans(ctx: Context, rows: list[NewSpan]) -> None:
    owner = _owner(ctx)
    if rows:
        _ADD_SPANS.many(ctx.tx, [{"id": new_id("span"), **row, **owner} for row in rows])


def _owner(ctx: Context) -> Owner:
    """Return the owner of received rows: the project they were sent for, the sender and the time of receipt. The owner
    decides which callers may see the rows."""
    return {
        "tenant_id": ctx.scope.tenant_id,
        "project_id": ctx.scope.project_id,
        "principal_id": ctx.principal.id,
        "received_at": ctx.now,
    }


def add_lines(tx: Connection, rows: Sequence[OwnedLine]) -> None:
    """Insert the log lines in the given order."""
    if rows:
        _ADD_LINES.many(tx, [{"id": new_id("log"), **row} for row in rows])


def forget_old(tx: Connection, now: int) -> int:
    return max(delete_some(tx, table, table.c.received_at < now - KEPT_MS) for table in (log_lines, spans))


def _line(line: schemas.Line) -> NewLine:
    return {
        "at": _milliseconds(line.at),
        "level": line.level,
        "source": "controller",
        "message": line.message,
        "correlation_id": line.correlation_id,
        "trace_id": line.trace_id,
        "operation_id": line.operation_id,
        "fields": line.fields,
    }


def _span(span: schemas.Span) -> NewSpan:
    return {
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "name": span.name,
        "status": span.status,
        "started_at": _milliseconds(span.started_at),
        "ended_at": _milliseconds(span.ended_at),
        "correlation_id": span.correlation_id,
        "operation_id": span.operation_id,
        "attributes": span.attributes,
    }


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
