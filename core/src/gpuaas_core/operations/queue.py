"""Operations are queued and moved here, each move with its event, so that no move goes unrecorded.

The queue of an app is fair between tenants: an operation's `turn` is one more than the turn of the newest one that its
tenant has waiting, and never less than the turn that is next. So a tenant with a thousand waiting operations and one
with a single operation take turns, and a claim reads the head of one index.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, select, update

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.ids import new_id
from ..node_tasks.service import fence
from .errors import OperationLive
from .reads import live_of_lock
from .rows import Json, OperationRow
from .states import OPERATION
from .tables import operations
from .targets import AnyTarget, Order

declare(
    {
        "apps.operation.queued": "Work waits for the app's controller.",
        "apps.operation.claimed": "A controller works on the operation under a new claim epoch.",
        "apps.operation.progressed": "The operation reached a step.",
        "apps.operation.released": "The claim was given back or taken away, to be claimed again.",
        "apps.operation.stuck": "The operation does not move: `reason` says why, its actions say what can be done.",
        "apps.operation.unstuck": "The operation moves again, or has ended.",
        "apps.operation.cancel_requested": "Somebody asked the operation to stop.",
        "apps.operation.succeeded": "The operation did what was asked.",
        "apps.operation.failed": "The operation failed; `error` says why and what to do.",
        "apps.operation.canceled": "The operation was canceled.",
        "apps.operation.superseded": "The operation gave way to a newer one.",
        "apps.operation.needs_attention": "The outcome is unknown, or it was tried too often: a person must look.",
    }
)


def waits_at(scope_id: str) -> str:
    """The wake-up for those who wait for work in one scope."""
    return f"work:{scope_id}"


def waits_for_app(app_slug: str) -> str:
    """The wake-up for those who wait for work of an app wherever they may work on it."""
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
    """Called under the target's lock. The target's own checks came first; what its lock key says is checked here."""
    order = target.order(ctx.tx, row, kind, params, details)
    _check_lock(ctx, target, order)
    known = target.operation_kinds[kind]
    operation_id = new_id("op")
    values = {
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
    made = ctx.tx.execute(insert(operations).values(**values).returning(operations)).one()
    operation = OperationRow.of(made)
    target.on_queued(ctx, row, operation)
    emit(ctx, target, row, operation, "queued")
    wake(ctx, operation)
    ctx.keeps = operation.batch_id or operation.id
    return operation


def _check_lock(ctx: Context, target: AnyTarget, order: Order) -> None:
    """An operation that has the key for itself excludes all others; those that share it only exclude their own."""
    for one in live_of_lock(ctx.tx, order.lock_key):
        same = (one.target_kind, one.target_id) == (target.kind, order.target_id)
        if same or not order.shares_lock or not one.lock_shared:
            raise OperationLive(f"The {one.kind} {one.id} is under way.", extra={"operation_id": one.id})


def _turn(ctx: Context, order: Order) -> int:
    o = operations.c
    waiting = select(o.turn).where(o.app_slug == order.app_slug, o.status == "queued")
    newest_own = waiting.where(o.tenant_id == order.tenant_id).order_by(o.turn.desc()).limit(1).scalar_subquery()
    next_of_all = waiting.order_by(o.turn).limit(1).scalar_subquery()
    own, first = ctx.tx.execute(select(newest_own, next_of_all)).one()
    return max(first or 0, 0 if own is None else own + 1)


def move(
    ctx: Context,
    target: AnyTarget,
    row: object,
    operation: OperationRow,
    action: str,
    *,
    event: str | None = None,
    **more: Any,
) -> OperationRow:
    """The correlation id of the events is the request's own; the operation keeps the one it was asked under."""
    status = OPERATION.after(operation.status, action)
    change = {"status": status} | unstick(ctx, target, row, operation) | more
    if OPERATION.terminal(status):
        change |= {"finished_at": ctx.now, "lease_expires_at": None}
    moved = write(ctx, operation, change)
    emit(ctx, target, row, moved, event or status)
    fence(ctx, operation.id, moved.claim_epoch if status == "running" else None)
    return moved


def write(ctx: Context, operation: OperationRow, change: Mapping[str, Any]) -> OperationRow:
    written = update(operations).where(operations.c.id == operation.id).values(**change).returning(operations)
    return OperationRow.of(ctx.tx.execute(written).one())


def emit(ctx: Context, target: AnyTarget, row: object, operation: OperationRow, what: str) -> None:
    facts: dict[str, Any] = {
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
    ctx.emit(f"apps.operation.{what}", operation.id, target.facts(row, operation) | facts)


def unstick(ctx: Context, target: AnyTarget, row: object, operation: OperationRow) -> dict[str, Any]:
    """What changes when the operation moves; nothing, if it was not stuck."""
    if operation.stuck_reason is None:
        return {}
    facts = {"operation_id": operation.id, "kind": operation.kind, "reason": operation.stuck_reason}
    ctx.emit("apps.operation.unstuck", operation.id, target.facts(row, operation) | facts)
    return {"stuck_reason": None, "stuck_since": None}
