"""Reads everything that was recorded with one correlation id and that the caller may see, as entries in time order.

A row is shown to callers who may read the events of its project (or tenant), and to the caller that caused it. Audit
rows need the permission to read the audit trail, unless the caller is their actor.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Protocol, TypeVar

from sqlalchemy import bindparam, select

from ..audit.audit_log import NOT_VISIBLE
from ..audit.by_correlation import RecordedDecision, decisions
from ..authz.context import Context
from ..authz.evaluate import Scope
from ..events import by_correlation as events
from ..events.event_log import PLATFORM
from ..instances.reads import instance_names
from ..kit.problems import UNSEEN, NotFound, Problem
from ..kit.rows import Query
from ..operations.reads import with_correlation
from ..operations.rows import OperationRow
from ..tenancy.reads import project_scope, tenant_scope
from . import entries, schemas, verdict
from .otlp_rows import NO_CORRELATION
from .rows import LogLineRow, SpanRow
from .tables import log_lines, spans

MOST = 500  # of each kind
MOST_TRACES = 50
REPORTS = "apps.operation.work"  # allowed reports of controllers are left out: their events have the same content

_LINES = Query(select(log_lines), LogLineRow).order_by(log_lines.c.at.desc(), log_lines.c.id.desc())
_LINES_WITH_ID = _LINES.where(log_lines.c.correlation_id == bindparam("correlation")).limit(MOST + 1)
_LINES_OF_TRACES = _LINES.where(
    log_lines.c.trace_id.in_(bindparam("traces", expanding=True)), log_lines.c.correlation_id == NO_CORRELATION
).limit(MOST)
_SPANS = Query(select(spans), SpanRow).order_by(spans.c.started_at.desc(), spans.c.id.desc())
_SPANS_WITH_ID = _SPANS.where(spans.c.correlation_id == bindparam("correlation")).limit(MOST)
_SPANS_OF_TRACES = _SPANS.where(
    spans.c.trace_id.in_(bindparam("traces", expanding=True)), spans.c.correlation_id == NO_CORRELATION
).limit(MOST)


class Recorded(Protocol):
    """A row recorded in a project, in a tenant, or by the platform itself."""

    @property
    def tenant_id(self) -> str | None: ...
    @property
    def project_id(self) -> str | None: ...


class Traced(Protocol):
    @property
    def trace_id(self) -> str | None: ...


R = TypeVar("R", bound=Recorded)


def timeline(ctx: Context, correlation_id: str) -> schemas.TriageView:
    sight, tx = _Sight(ctx), ctx.tx
    found = with_correlation(tx, correlation_id, limit=MOST)
    operations = sight.only(found, "apps.instance.read", lambda row: row.requested_by)
    newest_lines = _LINES_WITH_ID.all(tx, correlation=correlation_id)
    lines = sight.only(newest_lines[:MOST][::-1], "ledger.event.read", lambda row: row.principal_id)
    known = decisions(tx, correlation_id, left_out=REPORTS, limit=MOST)
    decided = sight.only(known, "ledger.audit.read", lambda row: row.actor_id, hidden=_hidden)
    # A claim has the correlation id of its controller, so events about the operations are read as well.
    subjects = [(row.tenant_id or PLATFORM, row.id) for row in operations]
    happened = sight.only(events.newest(tx, correlation_id, subjects, limit=MOST), "ledger.event.read")
    stretches = sight.only(_SPANS_WITH_ID.all(tx, correlation=correlation_id)[::-1], "ledger.event.read")
    traces = _traces([*lines, *decided, *happened, *stretches])
    if traces:
        lines += sight.only(_LINES_OF_TRACES.all(tx, traces=traces)[::-1], "ledger.event.read")
        stretches += sight.only(_SPANS_OF_TRACES.all(tx, traces=traces)[::-1], "ledger.event.read")
    named = _named(ctx, operations)
    shown = [entries.of_line(row) for row in lines] + [entries.of_decision(row) for row in decided]
    shown += [entries.of_event(row) for row in happened] + [entries.of_span(row) for row in stretches]
    shown += [entry for row, target in named for entry in entries.of_operation(row, target)]
    if not shown:
        raise NotFound(UNSEEN)
    shown.sort(key=lambda entry: entry.position)
    return schemas.TriageView(
        correlation_id=correlation_id,
        trace_ids=traces,
        verdict=verdict.of(named, lines, decided),
        timeline=[entry.view for entry in shown],
        truncated=len(newest_lines) > MOST,
    )


class _Sight:
    """Decides which rows the caller may see. Each pair of permission and scope is checked once."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._may = cache(self._ask)

    def only(
        self,
        rows: Iterable[R],
        key: str,
        cause: Callable[[R], str] | None = None,
        hidden: Callable[[R], bool] = lambda _row: False,
    ) -> list[R]:
        """Return the rows that the caller may see.

        `cause` returns the principal that caused a row. This principal sees the row too, unless `hidden` returns True
        for it.
        """

        def shown(row: R) -> bool:
            own = cause is not None and cause(row) == self._ctx.principal.id and not hidden(row)
            tenant_id = None if row.tenant_id == PLATFORM else row.tenant_id
            return own or self._may(key, tenant_id, row.project_id)

        return [row for row in rows if shown(row)]

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


def _hidden(row: RecordedDecision) -> bool:
    """Return True if the row is an audited 404: showing it to the caller would reveal that the resource exists."""
    return row.reason.startswith(NOT_VISIBLE)


def _traces(rows: Sequence[Traced]) -> list[str]:
    return list(dict.fromkeys(row.trace_id for row in rows if row.trace_id))[:MOST_TRACES]


def _named(ctx: Context, operations: list[OperationRow]) -> list[tuple[OperationRow, str]]:
    """Return each operation with the name of its instance, or with the id of its target if the target is not an
    instance."""
    found = instance_names(ctx.tx, sorted({row.lock_key for row in operations}))
    names: dict[str, str] = {instance_id: name for instance_id, name in found}
    return [(row, names.get(row.lock_key, row.target_id)) for row in operations]
