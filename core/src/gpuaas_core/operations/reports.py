"""Reports of controllers: progress, success, failure. The operation's target applies each report to itself (`Target`).

A report locks the operation. The target is locked too, and first, only if the report changes it: always for the last
report, for progress only if `Target.changed_by` returns true.
"""

from ..authz.context import Context
from ..kit.json_types import Json
from . import schemas
from .claims import held, held_with_target, lease_view, renew
from .errors import ReportNotOfTarget
from .queue import emit, move, unstick
from .reads import operation_row
from .rows import OperationRow
from .targets import AnyTarget, ClaimReport, target_of
from .views import operation_view


def progress(ctx: Context, scope_id: str | None, operation_id: str, body: schemas.Progress) -> schemas.LeaseView:
    seen = operation_row(ctx.tx, scope_id, operation_id)
    target = target_of(seen)
    _check_fields(target.wire.progress, body, target)
    changes = target.changed_by(seen, body)
    row = target.lock(ctx.tx, seen) if changes else target.read(ctx.tx, seen)
    operation = held(ctx, scope_id, operation_id, body.claim_epoch)
    moved = renew(ctx, operation, _progressed(ctx, target, row, operation, body))
    emit(ctx, target, row, moved, "progressed")
    if changes:
        target.on_progress(ctx, row, operation, body)
    return lease_view(ctx, operation)


def _progressed(
    ctx: Context, target: AnyTarget, row: object, operation: OperationRow, body: schemas.Progress
) -> dict[str, object]:
    further = body.step > operation.furthest_step
    late = operation.stuck_reason == "deadline_passed"  # a step further does not bring the time back
    change: dict[str, object] = {"phase": body.phase, "step": body.step, "steps": body.of, "message": body.message}
    change |= {} if late else unstick(ctx, target, row, operation)
    if further or body.phase != operation.phase:
        change["progressed_at"] = ctx.now
    if further:
        change |= {"furthest_step": body.step, "attempts": 1}
    return change | _detail(operation, body.adapter_detail)


def complete(ctx: Context, scope_id: str | None, operation_id: str, body: schemas.Complete) -> schemas.OperationView:
    operation, target, row = held_with_target(ctx, scope_id, operation_id, body.claim_epoch)
    _check_fields(target.wire.complete, body, target)
    target.on_last_report(ctx, row, operation, body)
    ended = {
        "message": body.message or "Done",
        "evidence": body.evidence,
        **_detail(operation, body.adapter_detail),
    }
    moved = move(ctx, target, row, operation, "succeed", ended)
    target.on_succeeded(ctx, row, operation, body)
    return operation_view(ctx.tx, moved)


def fail(ctx: Context, scope_id: str | None, operation_id: str, body: schemas.Fail) -> schemas.OperationView:
    operation, target, row = held_with_target(ctx, scope_id, operation_id, body.claim_epoch)
    _check_fields(target.wire.fail, body, target)
    target.on_last_report(ctx, row, operation, body)
    canceled = bool(operation.cancel_requested and body.error.code == "canceled")
    message = body.error.message
    ended = {"message": message, "error": body.error.model_dump(), **_detail(operation, body.adapter_detail)}
    moved = move(ctx, target, row, operation, "cancel" if canceled else "fail", ended)
    if canceled:
        target.on_undone(ctx, row, operation, message, why="canceled")
    elif body.undone and target.operation_kinds[operation.kind].undoable:
        target.on_undone(ctx, row, operation, message, why="refused")
    else:
        target.on_failed(ctx, row, operation, message, known=True)
    return operation_view(ctx.tx, moved)


def _check_fields(model: type[ClaimReport], body: ClaimReport, target: AnyTarget) -> None:
    """Raise ReportNotOfTarget if the report has fields of another kind of target: the body model of the routes has the
    fields of all kinds."""
    strange = sorted(body.model_fields_set - model.model_fields.keys())
    if strange:
        raise ReportNotOfTarget(f"The {target.kind} has no {', '.join(strange)}.")


def _detail(operation: OperationRow, reported: Json | None) -> dict[str, object]:
    """Return the stored details with the reported details merged in; empty if none were reported."""
    return {} if reported is None else {"adapter_detail": {**(operation.adapter_detail or {}), **reported}}
