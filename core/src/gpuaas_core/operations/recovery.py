"""Actions of people when an operation goes wrong: retry, cancel (one or a batch), release the claim, abandon."""

from ..authz.context import Context
from ..kit.json_types import JsonValue
from ..kit.wire import View
from . import schemas, views
from .queue import emit, move, queue, wake, write
from .reads import of_batch, operation_row
from .rows import OperationRow
from .states import OPERATION
from .targets import AnyTarget, target_of
from .views import operation_view, operation_views

ANYWAY = "try_anyway"  # the parameter that lets an app try once more what it refuses after repeated failures


def retry(ctx: Context, scope_id: str | None, operation_id: str, *, anyway: bool = False) -> View:
    """Queue a new operation with the same kind and parameters as the old operation, which is not changed. Raise an
    error if the old operation cannot be retried."""
    old, target, row = _locked(ctx, scope_id, operation_id)
    if refusal := views.refuse_retry(ctx.tx, old):
        raise refusal
    params: dict[str, JsonValue] = {name: value for name, value in (old.params or {}).items() if name != ANYWAY}
    params |= {ANYWAY: True} if anyway else {}
    new = queue(ctx, target, row, old.kind, params=params or None, details=old.details, retry_of=old.id)
    target.on_retried(ctx, row, old, new)
    return target.accepted_view(ctx.tx, new)


def cancel(ctx: Context, scope_id: str | None, operation_id: str) -> schemas.OperationView:
    """Cancel an operation. An operation that was never claimed ends at once; otherwise its controller gets the request
    with the answer to its next heartbeat."""
    operation, target, row = _locked(ctx, scope_id, operation_id)
    if refusal := views.refuse_cancel(operation):
        raise refusal
    return operation_view(ctx.tx, _canceled(ctx, target, row, operation))


def cancel_batch(ctx: Context, scope_id: str | None, batch_id: str) -> schemas.CanceledBatch:
    """Cancel every operation of the batch that has not ended; raise NotCancelable if all have ended."""
    done: list[OperationRow] = []
    for seen in of_batch(ctx.tx, scope_id, batch_id):
        operation, target, row = _locked(ctx, scope_id, seen.id)
        if views.refuse_cancel(operation) is None:
            operation = _canceled(ctx, target, row, operation)
        done.append(operation)
    if all(OPERATION.terminal(one.status) and one.finished_at != ctx.now for one in done):
        raise views.NotCancelable("Every operation of this batch has ended.")
    ctx.resource_id = batch_id
    return schemas.CanceledBatch(batch_id=batch_id, operations=operation_views(ctx.tx, done))


def _canceled(ctx: Context, target: AnyTarget, row: object, operation: OperationRow) -> OperationRow:
    if operation.status == "queued" and operation.claim_epoch == 0:
        moved = move(ctx, target, row, operation, "cancel", {"message": "Canceled before it began"})
        message = f"The {operation.kind} was canceled before anything was done"
        target.on_undone(ctx, row, operation, message, why="not_begun")
        return moved
    asked = write(ctx, operation, {"cancel_requested": 1})
    emit(ctx, target, row, asked, "cancel_requested")
    return asked


def release_claim(ctx: Context, scope_id: str | None, operation_id: str, reason: str | None) -> schemas.OperationView:
    """End the claim of an operation by raising its epoch, and queue the operation again."""
    operation, target, row = _locked(ctx, scope_id, operation_id)
    if refusal := views.refuse_release(operation):
        raise refusal
    change = {
        "claim_epoch": operation.claim_epoch + 1,
        "not_before": ctx.now,
        "lease_expires_at": None,
        "claimed_by": None,
        "claimant_id": None,
        "message": reason or "Its claim was released by a person",
    }
    moved = move(ctx, target, row, operation, "release", change, event="released")
    wake(ctx, moved)
    return operation_view(ctx.tx, moved)


def abandon(ctx: Context, scope_id: str | None, operation_id: str, reason: str) -> schemas.OperationView:
    """End an operation although its outcome is unknown: a live operation becomes `needs_attention`. The target decides
    in which state it is left."""
    operation, target, row = _locked(ctx, scope_id, operation_id)
    ctx.reason = f"{ctx.reason}; reason given: {reason}"
    if refusal := views.refuse_abandon(ctx.tx, operation):
        raise refusal
    moved = operation if OPERATION.terminal(operation.status) else _end(ctx, target, row, operation, reason)
    target.on_abandoned(ctx, row, operation, reason)
    return operation_view(ctx.tx, moved)


def _end(ctx: Context, target: AnyTarget, row: object, operation: OperationRow, reason: str) -> OperationRow:
    error = {
        "code": "abandoned",
        "message": f"It was abandoned: {reason}",
        "way_out": "How far it got is unknown. Inspect the machines before you ask for something new.",
        "retryable": True,
    }
    change = {"error": error, "message": "Abandoned", "claim_epoch": operation.claim_epoch + 1}
    return move(ctx, target, row, operation, "abandon", change)


def supersede(ctx: Context, target: AnyTarget, row: object, operation: OperationRow, message: str) -> OperationRow:
    """End the operation and its claim, because another operation takes its place."""
    change = {"claim_epoch": operation.claim_epoch + 1, "message": message}
    return move(ctx, target, row, operation, "supersede", change)


def _locked(ctx: Context, scope_id: str | None, operation_id: str) -> tuple[OperationRow, AnyTarget, object]:
    """Lock the target first, then the operation, and return the operation, its target and the target's row."""
    seen = operation_row(ctx.tx, scope_id, operation_id)
    target = target_of(seen)
    row = target.lock(ctx.tx, seen)
    ctx.resource_id = operation_id
    return operation_row(ctx.tx, scope_id, operation_id, lock=True), target, row
