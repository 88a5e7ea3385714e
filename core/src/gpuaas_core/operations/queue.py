"""Queues operations and applies their transitions, each with its event. All state changes of operations are made here.

The queue of an app is fair between tenants. A new operation gets a `turn` that is one more than the turn of its
tenant's newest waiting operation, but at least the turn at the head of the queue. So a tenant with a thousand waiting
operations and a tenant with one alternate, and a claim reads the head of one index.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from sqlalchemy import bindparam, insert, select

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.json_types import Json, JsonValue
from ..kit.rows import Changes, Query, WriteQuery
from .errors import OperationLive
from .reads import live_of_lock
from .rows import OperationRow
from .states import OPERATION
from .tables import QUEUED, operations
from .targets import AnyTarget, Order

declare(
    {
        "apps.operation.queued": "The operation was queued for the app's controller.",
        "apps.operation.claimed": "The operation was claimed by a controller under a new claim epoch.",
        "apps.operation.progressed": "The operation reached a new step.",
        "apps.operation.released": (
            "The claim of the operation was returned or released; a controller can claim the operation again."
        ),
        "apps.operation.stuck": (
            "The operation makes no progress. `reason` has the cause; `available_actions` of the operation lists what "
            "can be done."
        ),
        "apps.operation.unstuck": "The operation makes progress again, or has ended.",
        "apps.operation.cancel_requested": "Cancellation of the operation was requested.",
        "apps.operation.succeeded": "The operation succeeded.",
        "apps.operation.failed": "The operation failed; `error` has the cause and a way out.",
        "apps.operation.canceled": "The operation was canceled.",
        "apps.operation.superseded": "The operation was replaced by a newer operation.",
        "apps.operation.needs_attention": (
            "The operation needs attention: its outcome is unknown, or it was attempted too often."
        ),
    }
)


@dataclass(frozen=True)
class Turns:
    own: int | None  # of the newest operation that the tenant has waiting
    first: int | None  # of the next operation of all


_WAITING = select(operations.c.turn).where(operations.c.app_slug == bindparam("app"), operations.c.status == QUEUED)
_NEXT = _WAITING.order_by(operations.c.turn).limit(1).scalar_subquery()
_LATEST = _WAITING.order_by(operations.c.turn.desc()).limit(1)
# The newest of the tenant and the next of all; two statements, because an index finds no row by `tenant_id = NULL`.
_NEWEST_OWN = _LATEST.where(operations.c.tenant_id == bindparam("tenant")).scalar_subquery()
_NEWEST_OF_PLATFORM = _LATEST.where(operations.c.tenant_id.is_(None)).scalar_subquery()
_TURNS = Query(select(_NEWEST_OWN.label("own"), _NEXT.label("first")), Turns)
_TURNS_OF_PLATFORM = Query(select(_NEWEST_OF_PLATFORM.label("own"), _NEXT.label("first")), Turns)
NOTHING: Mapping[str, object] = MappingProxyType({})
_COLUMNS = (
    "id",
    "target_kind",
    "target_id",
    "lock_key",
    "lock_shared",
    "scope_kind",
    "scope_id",
    "tenant_id",
    "payer_id",
    "assigned_to",
    "turn",
    "from_state",
    "kind",
    "app_slug",
    "version",
    "status",
    "phase",
    "step",
    "steps",
    "furthest_step",
    "message",
    "attempts",
    "claim_epoch",
    "not_before",
    "cancel_requested",
    "retry_of",
    "batch_id",
    "params",
    "details",
    "deadline_at",
    "expected_phase_s",
    "correlation_id",
    "requested_by",
    "created_at",
)
_NEW = WriteQuery(insert(operations), operations, OperationRow, _COLUMNS)
_CHANGES = Changes(operations)

Fence: TypeAlias = Callable[[Context, str, int | None], None]
_FENCES: list[Fence] = []


def register_fence(fence: Fence) -> None:
    """Register a function that is called at each transition of an operation, to end what earlier claims were given. It
    is called with the context, the operation's id and the epoch of its claim (None if unclaimed)."""
    _FENCES.append(fence)


def waits_at(scope_id: str) -> str:
    """Return the wake-up topic of controllers that wait for operations in one scope."""
    return f"work:{scope_id}"


def waits_for_app(app_slug: str) -> str:
    """Return the wake-up topic of controllers that wait for an app's operations in any scope."""
    return f"work-of:{app_slug}"


def wake(ctx: Context, operation: OperationRow) -> None:
    ctx.notify(waits_at(operation.scope_id), waits_for_app(operation.app_slug))


def queue(
    ctx: Context,
    target: AnyTarget,
    row: object,
    kind: str,
    *,
    params: Json | None = None,
    details: Json | None = None,
    retry_of: str | None = None,
    batch_id: str | None = None,
) -> OperationRow:
    """Queue an operation and return it; raise OperationLive if another operation excludes it. The caller has locked the
    target and made the target's own checks."""
    order = target.order(ctx.tx, row, kind, params, details)
    _check_lock(ctx, target, order)
    known = target.operation_kinds[kind]
    operation_id = new_id("op")
    values: dict[str, object] = {
        "id": operation_id,
        "target_kind": target.kind,
        "target_id": order.target_id,
        "lock_key": order.lock_key,
        "lock_shared": int(order.shares_lock),
        "scope_kind": order.scope_kind,
        "scope_id": order.scope_id,
        "tenant_id": order.tenant_id,
        "payer_id": order.payer_id,
        "assigned_to": order.assigned_to,
        "turn": _turn(ctx, order),
        "from_state": order.from_state,
        "kind": kind,
        "app_slug": order.app_slug,
        "version": order.version,
        "status": "queued",
        "phase": "waiting",
        "step": 0,
        "steps": 0,
        "furthest_step": 0,
        "message": "Waiting for the app's controller",
        "attempts": 0,
        "claim_epoch": 0,
        "not_before": 0,
        "cancel_requested": 0,
        "retry_of": retry_of,
        "batch_id": batch_id,
        "params": params,
        "details": details,
        "deadline_at": ctx.now + (order.deadline_s or known.deadline_s) * 1000,
        "expected_phase_s": order.phase_s or known.phase_s,
        "correlation_id": ctx.correlation.correlation_id,
        "requested_by": ctx.principal.id,
        "created_at": ctx.now,
    }
    operation = _NEW.one(ctx.tx, **values)
    target.on_queued(ctx, row, operation)
    emit(ctx, target, row, operation, "queued")
    wake(ctx, operation)
    ctx.keeps = operation.batch_id or operation.id
    return operation


def _check_lock(ctx: Context, target: AnyTarget, order: Order) -> None:
    """Raise OperationLive if a live operation with the same lock key excludes the new one: at least one of the two is
    exclusive, or both have the same target."""
    for one in live_of_lock(ctx.tx, order.lock_key):
        same = (one.target_kind, one.target_id) == (target.kind, order.target_id)
        if same or not order.shares_lock or not one.lock_shared:
            raise OperationLive(f"The {one.kind} {one.id} is under way.", extra={"operation_id": one.id})


def _turn(ctx: Context, order: Order) -> int:
    statement = _TURNS_OF_PLATFORM if order.tenant_id is None else _TURNS
    turns = statement.one(ctx.tx, app=order.app_slug, tenant=order.tenant_id)
    return max(turns.first or 0, 0 if turns.own is None else turns.own + 1)


def move(
    ctx: Context,
    target: AnyTarget,
    row: object,
    operation: OperationRow,
    action: str,
    change: Mapping[str, object] = NOTHING,
    *,
    event: str | None = None,
) -> OperationRow:
    """Apply a transition to the operation and emit its event. `change`: other columns to change.

    The event has the correlation id of this request; the operation keeps that of the request that queued it.
    """
    status = OPERATION.after(operation.status, action)
    written = {"status": status, **unstick(ctx, target, row, operation), **change}
    if OPERATION.terminal(status):
        written |= {"finished_at": ctx.now, "lease_expires_at": None}
    moved = write(ctx, operation, written)
    emit(ctx, target, row, moved, event or status)
    for fence in _FENCES:
        fence(ctx, operation.id, moved.claim_epoch if status == "running" else None)
    return moved


def write(ctx: Context, operation: OperationRow, change: Mapping[str, object]) -> OperationRow:
    return _CHANGES.one(ctx.tx, operation.id, change, OperationRow)


def emit(ctx: Context, target: AnyTarget, row: object, operation: OperationRow, what: str) -> None:
    facts: dict[str, JsonValue] = {
        "operation_id": operation.id,
        "kind": operation.kind,
        "status": operation.status,
        "phase": operation.phase,
        "step": operation.step,
        "of": operation.steps,
        "message": operation.message,
        "claim_epoch": operation.claim_epoch,
    }
    if operation.error:
        facts["error"] = operation.error
    ctx.emit(f"apps.operation.{what}", operation.id, {**target.facts(row, operation), **facts})


def unstick(ctx: Context, target: AnyTarget, row: object, operation: OperationRow) -> dict[str, None]:
    """Emit the event `unstuck` for a stuck operation and return the columns to clear; return an empty dict if the
    operation is not stuck."""
    if operation.stuck_reason is None:
        return {}
    facts = {"operation_id": operation.id, "kind": operation.kind, "reason": operation.stuck_reason}
    ctx.emit("apps.operation.unstuck", operation.id, {**target.facts(row, operation), **facts})
    return {"stuck_reason": None, "stuck_since": None}
