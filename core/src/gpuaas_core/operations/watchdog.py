"""Detects stuck and lost operations: every few seconds it checks the operations under way, by the platform's clock
alone.

Called by housekeeping. A stuck operation is marked, with an event. An operation without a claim whose deadline has
passed ends as `needs_attention`, with its own audit row. Old operations are deleted here, too.
"""

from collections.abc import Mapping

from sqlalchemy import and_, bindparam, delete, or_, select

from ..authz.context import Context
from ..idempotency import requests
from .claims import give_up
from .queue import unstick, write
from .reads import OPERATIONS, scope_of
from .rows import OperationRow
from .states import LIVE
from .tables import operations
from .targets import registered, target_of

KEPT_DAYS = 30
UNCLAIMED_MS = 120_000
AT_ONCE = 200
_O = operations.c
_LATE = (
    OPERATIONS.where(
        _O.status.in_(LIVE),
        or_(
            _O.stuck_reason.is_not(None),
            _O.deadline_at <= bindparam("now"),
            and_(_O.status == "running", _O.lease_expires_at <= bindparam("now")),
            and_(_O.status == "running", _O.progressed_at + 2000 * _O.expected_phase_s <= bindparam("now")),
            and_(
                _O.status == "queued", _O.created_at <= bindparam("unclaimed"), _O.not_before <= bindparam("unclaimed")
            ),
        ),
    )
    .order_by(_O.created_at, _O.id)
    .limit(AT_ONCE)
    .locked(skip_locked=True)
)


def check_live(ctx: Context) -> int:
    """Mark stuck operations and end lost ones; return how many operations were checked."""
    rows = _LATE.all(ctx.tx, now=ctx.now, unclaimed=ctx.now - UNCLAIMED_MS)
    for row in rows:
        _check(ctx, row)
    return len(rows)


def why_stuck(operation: OperationRow, now: int) -> str | None:
    """Return the first reason for which the operation counts as stuck, or None if it is not stuck."""
    running = operation.status == "running"
    if running and (operation.lease_expires_at or 0) <= now:  # a lease is as long as three heartbeats
        return "heartbeats_missed"
    if operation.deadline_at is not None and operation.deadline_at <= now:
        return "deadline_passed"
    if running:
        moved_at, phase_s = operation.progressed_at, operation.expected_phase_s or 0
        return "no_progress" if moved_at is not None and moved_at + 2000 * phase_s <= now else None
    return "unclaimed" if max(operation.created_at, operation.not_before) <= now - UNCLAIMED_MS else None


def _check(ctx: Context, operation: OperationRow) -> None:
    held = operation.status == "running" and (operation.lease_expires_at or 0) > ctx.now
    if not held and operation.deadline_at is not None and operation.deadline_at <= ctx.now:
        _lose(ctx, operation)
        return
    reason = why_stuck(operation, ctx.now)
    if reason == operation.stuck_reason:
        return
    here, target = _at(ctx, operation), target_of(operation)
    row = target.read(ctx.tx, operation)
    change = unstick(here, target, row, operation)
    if reason is not None:
        change: Mapping[str, object] = {"stuck_reason": reason, "stuck_since": ctx.now}
        facts = {"operation_id": operation.id, "kind": operation.kind, "reason": reason}
        here.emit("apps.operation.stuck", operation.id, {**target.facts(row, operation), **facts})
    write(ctx, operation, change)
    here.flush(audited=False)
    ctx.topics |= here.topics


def _lose(ctx: Context, operation: OperationRow) -> None:
    target = target_of(operation)
    row = target.try_lock(ctx.tx, operation)
    if row is None:
        return  # another transaction changes the target: the next round comes in a few seconds
    here = _at(ctx, operation)
    here.resource_id, here.reason = operation.id, "the deadline has passed and no controller holds it"
    give_up(here, target, row, operation)
    here.flush()
    ctx.topics |= here.topics


def _at(ctx: Context, operation: OperationRow) -> Context:
    """Return a context in the operation's scope, with the platform itself as the principal."""
    scope = scope_of(ctx.tx, operation.scope_kind, operation.scope_id)
    return Context(ctx.tx, ctx.principal, scope, ctx.permission, ctx.correlation, ctx.now, durations=ctx.durations)


def delete_old(ctx: Context) -> int:
    """Delete operations that ended more than 30 days ago, except those that an existing target refers to. Return how
    many were deleted."""
    o = operations.c
    over = o.finished_at < ctx.now - KEPT_DAYS * 24 * 3600 * 1000
    named = [~target.refers_to(o.id) for target in registered()]
    old = select(o.id, o.batch_id).where(o.status.not_in(LIVE), over, *named).limit(AT_ONCE)
    rows = ctx.tx.execute(old).all()
    ids = [row.id for row in rows]
    ctx.tx.execute(delete(operations).where(o.id.in_(ids)))
    batches = {row.batch_id for row in rows if row.batch_id}
    left = set(ctx.tx.execute(select(o.batch_id).where(o.batch_id.in_(batches))).scalars())
    requests.forget(ctx.tx, [*ids, *(batches - left)])
    return len(ids)
