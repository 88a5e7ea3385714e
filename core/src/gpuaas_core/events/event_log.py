"""Events: the row is the record. The sequence is dense per tenant, taken under the tenant's counter row as the last
write.

Events are only emitted this way: `Context.emit` collects, `append` writes, both inside the caller's transaction. The
table of types below is what `contracts/asyncapi.json` is generated from.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from ..kit.clock import rfc3339
from ..kit.ids import new_id
from ..kit.problems import Problem
from ..kit.store_facts import store_facts
from .heads import advance
from .tables import event_heads, events

PLATFORM = "platform"  # the stream of events without a tenant

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
_HEAD = select(event_heads.c.sequence).where(event_heads.c.tenant_id == bindparam("tenant"))
_NONE_SAID = dict.fromkeys(IDENTIFIERS)


def declare(types: dict[str, str]) -> None:
    """Rooms declare their event types at import; an undeclared type cannot be emitted."""
    TYPES.update(types)


@dataclass
class Pending:
    type: str
    tenant_id: str
    project_id: str | None
    subject: str
    data: dict[str, Any]


class CursorExpired(Problem):
    status, code, title = 410, "cursor_expired", "Event cursor expired"
    way_out = "List the resources again and continue the stream from the `event_sequence` of that list."


class CursorEpochChanged(Problem):
    status, code, title = 410, "cursor_epoch_changed", "Event cursor is from before a restore"
    way_out = "List the resources again and continue the stream from the `event_sequence` of that list."


class CursorInvalid(Problem):
    status, code, title = 400, "event_cursor_invalid", "Invalid event cursor"
    way_out = "Use the `id:` of a stream event, a sequence number, or 0 for all stored events."


def append(tx: Connection, pending: list[Pending], *, correlation_id: str, trace_id: str, now: int) -> None:
    by_tenant: dict[str, list[Pending]] = {}
    for event in pending:
        if event.type not in TYPES:
            raise RuntimeError(f"event type {event.type!r} is not declared")
        by_tenant.setdefault(event.tenant_id, []).append(event)
    for tenant_id, batch in sorted(by_tenant.items()):
        last, *_ = advance(tx, tenant_id, events=len(batch))
        rows = [
            {
                "tenant_id": tenant_id,
                "sequence": last - len(batch) + 1 + position,
                "id": new_id("evt"),
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
        tx.execute(insert(events), rows)


def head(tx: Connection, tenant_id: str) -> int:
    return tx.execute(_HEAD, {"tenant": tenant_id}).scalar() or 0


def store_epoch(tx: Connection) -> str:
    return tx.execute(select(store_facts.c.value).where(store_facts.c.name == "epoch")).scalar_one()


def renew_store_epoch(tx: Connection) -> None:
    """After a restore: cursors issued before it become invalid."""
    tx.execute(update(store_facts).where(store_facts.c.name == "epoch").values(value=secrets.token_hex(4)))


def ensure_store_epoch(tx: Connection) -> None:
    if tx.execute(select(store_facts.c.value).where(store_facts.c.name == "epoch")).first() is None:
        tx.execute(insert(store_facts).values(name="epoch", value=secrets.token_hex(4)))


def read_cursor(tx: Connection, tenant_id: str, after: str | None) -> int:
    """A sequence number or `epoch.sequence`; rejects cursors that cannot be continued without a gap."""
    if not after:
        return 0
    epoch, _, number = after.rpartition(".")
    if not (number.isascii() and number.isdigit()) or len(number) > 18:
        raise CursorInvalid(f"{after[:60]!r} is not an event cursor.")
    if epoch and epoch != store_epoch(tx):
        raise CursorEpochChanged("The cursor is from before the database was restored.")
    sequence = int(number)
    first = select(events.c.sequence).where(events.c.tenant_id == tenant_id).order_by(events.c.sequence).limit(1)
    oldest = tx.execute(first).scalar()
    if sequence and oldest and sequence < oldest - 1:
        raise CursorExpired(f"Events up to {oldest - 1} are no longer stored; the cursor is at {sequence}.")
    if sequence > head(tx, tenant_id):
        raise CursorEpochChanged(f"The stream has not reached {sequence} yet; the cursor is from another database.")
    return sequence


def after(
    tx: Connection, tenant_id: str, sequence: int, *, project_id: str | None, limit: int, subject: str | None = None
) -> list[dict[str, Any]]:
    query = select(events).where(events.c.tenant_id == tenant_id, events.c.sequence > sequence)
    if subject:
        query = query.where(events.c.subject == subject)
    if project_id:
        query = query.where(events.c.project_id == project_id)
    return [cloud_event(row) for row in tx.execute(query.order_by(events.c.sequence).limit(limit))]


def cloud_event(row: Row[Any]) -> dict[str, Any]:
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
        "data": _NONE_SAID | row.data | {"correlation_id": row.correlation_id},
    }
