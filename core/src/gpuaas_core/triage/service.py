"""Stores received telemetry, and deletes it after a week."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert

from ..authz.context import Context
from ..kit.db import delete_some
from ..kit.ids import new_id
from . import schemas
from .tables import log_lines, spans

KEPT_MS = 7 * 24 * 3600 * 1000


def keep(ctx: Context, body: schemas.Telemetry) -> schemas.KeptView:
    keep_lines(ctx, [_line(line) for line in body.lines])
    keep_spans(ctx, [_span(span) for span in body.spans])
    return schemas.KeptView(lines=len(body.lines), spans=len(body.spans))


def keep_lines(ctx: Context, rows: list[dict[str, Any]]) -> None:
    add_lines(ctx.tx, [row | _owner(ctx) for row in rows])


def keep_spans(ctx: Context, rows: list[dict[str, Any]]) -> None:
    if rows:
        ctx.tx.execute(insert(spans), [{"id": new_id("span")} | row | _owner(ctx) for row in rows])


def _owner(ctx: Context) -> dict[str, Any]:
    """A row belongs to the project it was sent for: callers who may not see the project never see the row."""
    where = {"tenant_id": ctx.scope.tenant_id, "project_id": ctx.scope.project_id}
    return where | {"principal_id": ctx.principal.id, "received_at": ctx.now}


def add_lines(tx: Connection, rows: list[dict[str, Any]]) -> None:
    """In the given order."""
    if rows:
        tx.execute(insert(log_lines), [{"id": new_id("log")} | row for row in rows])


def forget_old(tx: Connection, now: int) -> int:
    return max(delete_some(tx, table, table.c.received_at < now - KEPT_MS) for table in (log_lines, spans))


def _line(line: schemas.Line) -> dict[str, Any]:
    return line.model_dump() | {"at": _milliseconds(line.at), "source": "controller"}


def _span(span: schemas.Span) -> dict[str, Any]:
    moments = {"started_at": _milliseconds(span.started_at), "ended_at": _milliseconds(span.ended_at)}
    return span.model_dump() | moments


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
