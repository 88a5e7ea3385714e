"""What is shown of an operation, with what people can do about it now."""

from collections.abc import Iterable

from sqlalchemy import Connection

from ..kit.lifecycle import WrongMoment
from ..kit.problems import Problem
from ..kit.wire import ActionView
from . import schemas
from .errors import NotCancelable, NotRetryable
from .rows import OperationRow
from .states import OPERATION, RETRYABLE, STUCK
from .targets import target_of


def operation_view(tx: Connection, operation: OperationRow) -> schemas.OperationView:
    target = target_of(operation)
    facts = vars(operation) | {
        "target": {
            "kind": operation.target_kind,
            "id": operation.target_id,
            "app_slug": operation.app_slug,
            "version": operation.version,
        },
        "progress": _progress(operation),
        "cancel_requested": bool(operation.cancel_requested),
        "params": operation.params or {},
        "stuck": _stuck(operation),
        "available_actions": action_views(_actions(tx, operation)),
    }
    return target.wire.operation.model_validate(facts | target.operation_details(operation))


def _progress(operation: OperationRow) -> schemas.ProgressView:
    done = operation.status == "succeeded"
    steps = operation.steps
    percent = 100 if done else min(99, round(100 * operation.furthest_step / steps)) if steps else 0
    return schemas.ProgressView(step=operation.step, of=steps, message=operation.message, percent=percent)


def _stuck(operation: OperationRow) -> dict[str, str | int | None] | None:
    reason = operation.stuck_reason
    if reason is None:
        return None
    return {"reason": reason, "message": STUCK[reason], "since": operation.stuck_since}


def _actions(tx: Connection, operation: OperationRow) -> list[tuple[str, Problem | None]]:
    return [
        ("retry", refuse_retry(tx, operation)),
        ("cancel", refuse_cancel(operation)),
        ("release_claim", refuse_release(operation)),
        ("abandon", refuse_abandon(tx, operation)),
    ]


def action_views(possible: Iterable[tuple[str, Problem | None]]) -> list[ActionView]:
    return [
        ActionView(action=name, allowed=problem is None, reason=problem.detail if problem else "")
        for name, problem in possible
    ]


def refuse_retry(tx: Connection, operation: OperationRow) -> Problem | None:
    if operation.status not in RETRYABLE:
        return NotRetryable(f"The operation is {operation.status}.")
    target = target_of(operation)
    return target.refuse_retry(tx, target.read(tx, operation), operation)


def refuse_cancel(operation: OperationRow) -> Problem | None:
    if OPERATION.terminal(operation.status):
        return NotCancelable(f"The operation is {operation.status}.")
    return NotCancelable("It was asked to stop already.") if operation.cancel_requested else None


def refuse_release(operation: OperationRow) -> Problem | None:
    if OPERATION.allows(operation.status, "release"):
        return None
    return WrongMoment(f"The operation is {operation.status}: 'release_claim' is not possible now.")


def refuse_abandon(tx: Connection, operation: OperationRow) -> Problem | None:
    """Live work always; ended work only where it left its target half way."""
    if not OPERATION.terminal(operation.status):
        return None
    if operation.status not in RETRYABLE:
        return WrongMoment(f"The operation is {operation.status}: 'abandon' is not possible now.")
    target = target_of(operation)
    return target.refuse_abandon(tx, target.read(tx, operation), operation)
