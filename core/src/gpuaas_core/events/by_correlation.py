"""Finds events with one correlation id, and events about the same subjects. The caller decides who may see which event.

There are two queries, each with its own index; a combined query would read every event of the project.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from ..kit.json_types import Json
from ..kit.rows import Query
from .tables import events


@dataclass(frozen=True)
class RecordedEvent:
    tenant_id: str
    sequence: int
    type: str
    project_id: str | None
    subject: str
    trace_id: str
    at: int
    data: Json


_e = events.c
_NEWEST = Query(
    select(_e.tenant_id, _e.sequence, _e.type, _e.project_id, _e.subject, _e.trace_id, _e.at, _e.data).limit(
        bindparam("most")
    ),
    RecordedEvent,
).order_by(_e.at.desc(), _e.sequence.desc(), _e.tenant_id)
_WITH_CORRELATION = _NEWEST.where(_e.correlation_id == bindparam("correlation"))
_ABOUT = _NEWEST.where(_e.tenant_id == bindparam("tenant"), _e.subject.in_(bindparam("subjects", expanding=True)))


def newest(
    tx: Connection, correlation_id: str, subjects: Collection[tuple[str, str]], *, limit: int
) -> list[RecordedEvent]:
    """Return the last `limit` events with this correlation id, in chronological order. `subjects`: pairs of tenant and
    subject whose events are included as well."""
    rows = _WITH_CORRELATION.all(tx, correlation=correlation_id, most=limit)
    for tenant_id in sorted({tenant_id for tenant_id, _ in subjects}):
        named = [subject for tenant, subject in subjects if tenant == tenant_id]
        rows += _ABOUT.all(tx, tenant=tenant_id, subjects=named, most=limit)
    each_once = {(row.tenant_id, row.sequence): row for row in rows}.values()
    return sorted(each_once, key=lambda row: (-row.at, -row.sequence, row.tenant_id))[:limit][::-1]
