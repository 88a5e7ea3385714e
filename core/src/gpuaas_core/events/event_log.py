"""The event log. Sequence numbers have no gaps within a tenant, because they are assigned under the lock of the
tenant's counter row, as the last write of the transaction.

Events are only emitted this way: `Context.emit` collects, `append` writes, both inside the caller's transaction.
`contracts/asyncapi.json` is generated from the table of types below.
"""

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, Integer, bindparam, insert, select, update

from ..counters.reads import head
from ..counters.service import PLATFORM, Advanced, advance
from ..kit.clock import rfc3339
from ..kit.ids import new_id
from ..kit.json_types import Json, JsonValue
from ..kit.problems import Problem
from ..kit.rows import Command, Query
from ..kit.store_facts import store_facts
from .rows import CloudEvent, EventId, EventRow
from .tables import events

__all__ = ["PLATFORM", "head"]  # re-exported from the counters

TYPES: dict[str, str] = {}

# In every event, null where it does not apply: enough to attribute an incident without another query.
IDENTIFIERS = (
    "correlation_id",
    "org_id",
    "project_id",
    "app_slug",
    "app_instance_id",
    "operating_mode",
    "control_plane_scope",
    "runtime_backend",
)
_NO_IDENTIFIERS: dict[str, JsonValue] = dict.fromkeys(IDENTIFIERS)

_ADD = Command(insert(events), [column.name for column in events.columns])
_OLDEST = (
    select(events.c.sequence).where(events.c.tenant_id == bindparam("tenant")).order_by(events.c.sequence).limit(1)
)
_AFTER = (
    Query(select(events), EventRow)
    .where(events.c.tenant_id == bindparam("tenant"), events.c.sequence > bindparam("after"))
    .order_by(events.c.sequence)
    .limit(bindparam("most", type_=Integer))
)
_OF_SUBJECT = events.c.subject == bindparam("subject")
_OF_PROJECT = events.c.project_id == bindparam("project")
_AFTER_QUERIES = {  # by whether a subject and whether a project is given
    (False, False): _AFTER,
    (False, True): _AFTER.where(_OF_PROJECT),
    (True, False): _AFTER.where(_OF_SUBJECT),
    (True, True): _AFTER.where(_OF_SUBJECT, _OF_PROJECT),
}
_EPOCH = select(store_facts.c.value).where(store_facts.c.name == "epoch")


def declare(types: dict[str, str]) -> None:
    """Declare the event types of a room, when the room is imported. An undeclared type cannot be emitted."""
    TYPES.update(types)


@dataclass
class Pending:
    type: str
    tenant_id: str
    project_id: str | None
    subject: str
    data: Json


class CursorExpired(Problem):
    status, code, title = 410, "cursor_expired", "Event cursor expired"
    way_out = "List the resources again and continue the stream from the `event_sequence` of that list."


class CursorEpochChanged(Problem):
    status, code, title = 410, "cursor_epoch_changed", "The event cursor is older than the last restore"
    way_out = "List the resources again and continue the stream from the `event_sequence` of that list."


class CursorInvalid(Problem):
    status, code, title = 400, "event_cursor_invalid", "Invalid event cursor"
    way_out = "Use the `id:` of a stream event, a sequence number, or 0 for all stored events."


def append(
    tx: Connection,
    pending: list[Pending],
    *,
    correlation_id: str,
    trace_id: str,
    now: int,
    moved: Advanced | None = None,
) -> None:
    """Write the pending events. `moved`: the tenant's counters, if the caller has advanced them for these events
    already; then all events must belong to that tenant."""
    by_tenant: dict[str, list[Pending]] = {}
    for event in pending:
        if event.type not in TYPES:
            raise RuntimeError(f"event type {event.type!r} is not declared")
        by_tenant.setdefault(event.tenant_id, []).append(event)
    for tenant_id, batch in sorted(by_tenant.items()):
        last = (moved or advance(tx, tenant_id, events=len(batch))).sequence
        rows = [
            {
                "tenant_id": tenant_id,
                "sequence": last - len(batch) + 1 + position,
                "id": EventId(new_id("evt")),
                "type": event.type,
                "project_id": event.project_id,
                "subject": event.subject,
                "correlation_id": correlation_id,
                "trace_id": trace_id,
                "at": now,
                "data": event.data,
            }
            for position, event in enumerate(batch)
        ]
        _ADD.many(tx, rows)


def store_epoch(tx: Connection) -> str:
    return tx.execute(_EPOCH).scalar_one()


def renew_store_epoch(tx: Connection) -> None:
    """Renew the epoch of the database after a restore, so that cursors issued before the restore become invalid."""
    tx.execute(update(store_facts).where(store_facts.c.name == "epoch").values(value=secrets.token_hex(4)))


def ensure_store_epoch(tx: Connection) -> None:
    if tx.execute(_EPOCH).first() is None:
        tx.execute(insert(store_facts).values(name="epoch", value=secrets.token_hex(4)))


def read_cursor(tx: Connection, tenant_id: str, after: str | None) -> int:
    """Return the sequence number in a cursor (`sequence` or `epoch.sequence`), or 0 without a cursor. Raises an error
    if the cursor is malformed or cannot be continued without a gap."""
    if not after:
        return 0
    epoch, _, number = after.rpartition(".")
    if not (number.isascii() and number.isdigit()) or len(number) > 18:
        raise CursorInvalid(f"{after[:60]!r} is not an event cursor.")
    if epoch and epoch != store_epoch(tx):
        raise CursorEpochChanged("The cursor is from before the database was restored.")
    sequence = int(number)
    oldest: int | None = tx.execute(_OLDEST, {"tenant": tenant_id}).scalar()
    if sequence and oldest and sequence < oldest - 1:
        raise CursorExpired(f"Events up to {oldest - 1} are no longer stored; the cursor is at {sequence}.")
    if sequence > head(tx, tenant_id):
        raise CursorEpochChanged(f"The stream has not reached {sequence} yet; the cursor is from another database.")
    return sequence


def after(
    tx: Connection, tenant_id: str, sequence: int, *, project_id: str | None, limit: int, subject: str | None = None
) -> list[CloudEvent]:
    rows = rows_after(tx, tenant_id, sequence, project_id=project_id, limit=limit, subject=subject)
    return [cloud_event(row) for row in rows]


def rows_after(
    tx: Connection, tenant_id: str, sequence: int, *, project_id: str | None, limit: int, subject: str | None = None
) -> list[EventRow]:
    query = _AFTER_QUERIES[bool(subject), bool(project_id)]
    return query.all(tx, tenant=tenant_id, after=sequence, subject=subject, project=project_id, most=limit)


def cloud_event(row: EventRow) -> CloudEvent:
    return {
        "specversion": "1.0",
        "id": row.id,
        "source": f"/v1/tenants/{row.tenant_id}",
        "type": row.type,
        "subject": row.subject,
        "time": rfc3339(row.at),
        "datacontenttype": "application/json",
        "sequence": row.sequence,
        "correlationid": row.correlation_id,
        "traceid": row.trace_id,
        "data": {**_NO_IDENTIFIERS, **row.data, "correlation_id": row.correlation_id},
    }
