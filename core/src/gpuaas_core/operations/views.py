"""Views of operations, with the actions that are possible now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from ..kit.lifecycle import WrongMoment
from ..kit.problems import Problem
from ..kit.wire import ActionView
from . import schemas
from .errors import NotCancelable, NotRetryable
from .reads import live_of_locks
from .rows import OperationId, OperationRow
from .states import OPERATION, RETRYABLE, STUCK
from .targets import target_of


def operation_view(tx: Connection, operation: OperationRow) -> schemas.OperationView:
    return operation_views(tx, [operation])[0]


def operation_views(tx: Connection, operations: Sequence[OperationRow]) -> list[schemas.OperationView]:
    """Build the views of a page of operations; rows needed for their actions are read once for the whole page."""
    stands = _Standing.of(tx, operations)
    return [_view(operation, stands) for operation in operations]


@dataclass(frozen=True)
class _Standing:
    """The targets of operations that ended without success, and the live operations with the same lock keys."""

    rows: Mapping[OperationId, object]
    live: Mapping[str, Sequence[OperationRow]]

    @classmethod
    def of(cls, tx: Connection, operations: Iterable[OperationRow]) -> "_Standing":
        ended = [operation for operation in operations if operation.status in RETRYABLE]
        rows: dict[OperationId, object] = {}
        for kind in sorted({operation.target_kind for operation in ended}):
            mine = [operation for operation in ended if operation.target_kind == kind]
            rows |= target_of(mine[0]).read_many(tx, mine)
        return cls(rows, live_of_locks(tx, {operation.lock_key for operation in ended}))

    def refuse_retry(self, operation: OperationRow) -> Problem | None:
        if operation.status not in RETRYABLE:
            return NotRetryable(f"The operation is {operation.status}.")
        live = self.live.get(operation.lock_key, ())
        return target_of(operation).refuse_retry(self.rows[operation.id], operation, live)

    def refuse_abandon(self, operation: OperationRow) -> Problem | None:
        """Return why the operation cannot be abandoned, or None if it can. A live operation always can; an ended
        operation only if its target was left half-changed."""
        if not OPERATION.terminal(operation.status):
            return None
        if operation.status not in RETRYABLE:
            return WrongMoment(f"The operation is {operation.status}: 'abandon' is not possible now.")
        return target_of(operation).refuse_abandon(self.rows[operation.id], operation)


def _view(operation: OperationRow, stands: _Standing) -> schemas.OperationView:
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
        "available_actions": action_views(_actions(operation, stands)),
    }
    return target.wire.operation.model_validate({**facts, **target.operation_details(operation)})


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


def _actions(operation: OperationRow, stands: _Standing) -> list[tuple[str, Problem | None]]:
    return [
        ("retry", stands.refuse_retry(operation)),
        ("cancel", refuse_cancel(operation)),
        ("release_claim", refuse_release(operation)),
        ("abandon", stands.refuse_abandon(operation)),
    ]


def action_views(possible: Iterable[tuple[str, Problem | None]]) -> list[ActionView]:
    return [
        ActionView(action=name, allowed=problem is None, reason=problem.detail if problem else "")
        for name, problem in possible
    ]


def refuse_retry(tx: Connection, operation: OperationRow) -> Problem | None:
    return _Standing.of(tx, [operation]).refuse_retry(operation)


def refuse_cancel(operation: OperationRow) -> Problem | None:
    if OPERATION.terminal(operation.status):
        return NotCancelable(f"The operation is {operation.status}.")
    return NotCancelable("It was asked to stop already.") if operation.cancel_requested else None


def refuse_release(operation: OperationRow) -> Problem | None:
    if OPERATION.allows(operation.status, "release"):
        return None
    return WrongMoment(f"The operation is {operation.status}: 'release_claim' is not possible now.")


def refuse_abandon(tx: Connection, operation: OperationRow) -> Problem | None:
    return _Standing.of(tx, [operation]).refuse_abandon(operation)
