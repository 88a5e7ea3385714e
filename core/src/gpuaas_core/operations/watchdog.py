"""Nothing is stuck silently: every few seconds the operations under way are checked, by the platform's clock alone.

Called by housekeeping. One that does not move is marked, with an event; one that no controller holds and whose deadline
has passed ends as `needs_attention`, with its own audit row. Old operations are deleted here, too.
"""

from sqlalchemy import and_, delete, or_, select

from ..authz.context import Context
from ..custody.tables import access_grants
from ..idempotency import requests
from .claims import give_up
from .queue import unstick, write
from .reads import scope_of
from .rows import OperationRow
from .states import LIVE
from .tables import operations
from .targets import registered, target_of

KEPT_DAYS = 30
UNCLAIMED_MS = 120_000
AT_ONCE = 200


def check_live(ctx: Context) -> int:
    """Marks what is stuck and ends what is lost; returns how many rows were touched."""
    o = operations.c
    late = or_(
        o.stuck_reason.is_not(None),
        o.deadline_at <= ctx.now,
        and_(o.status == "running", o.lease_expires_at <= ctx.now),
        and_(o.status == "running", o.progressed_at + 2000 * o.expected_phase_s <= ctx.now),
        and_(o.status == "queued", o.created_at <= ctx.now - UNCLAIMED_MS, o.not_before <= ctx.now - UNCLAIMED_MS),
    )
    query = select(operations).where(o.status.in_(LIVE), late).order_by(o.created_at, o.id).limit(AT_ONCE)
    rows = ctx.tx.execute(query.with_for_update(key_share=True, skip_locked=True)).all()
    for row in rows:
        _check(ctx, OperationRow.of(row))
    return len(rows)


def why_stuck(operation: OperationRow, now: int) -> str | None:
    """The first reason that holds."""
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
        change = {"stuck_reason": reason, "stuck_since": ctx.now}
        facts = {"operation_id": operation.id, "kind": operation.kind, "reason": reason}
        here.emit("apps.operation.stuck", operation.id, target.facts(row, operation) | facts)
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
    """The platform itself, acting in the operation's scope."""
    scope = scope_of(ctx.tx, operation.scope_kind, operation.scope_id)
    return Context(ctx.tx, ctx.principal, scope, ctx.permission, ctx.correlation, ctx.now)


def delete_old(ctx: Context) -> int:
    """Operations that ended 30 days ago, unless a target that exists still names them as its last."""
    o = operations.c
    over = o.finished_at < ctx.now - KEPT_DAYS * 24 * 3600 * 1000
    named = [~target.refers_to(o.id) for target in registered()]
    old = select(o.id, o.batch_id).where(o.status.not_in(LIVE), over, *named).limit(AT_ONCE)
    rows = ctx.tx.execute(old).all()
    ids = [row.id for row in rows]
    ctx.tx.execute(delete(access_grants).where(access_grants.c.operation_id.in_(ids)))
    ctx.tx.execute(delete(operations).where(o.id.in_(ids)))
    batches = {row.batch_id for row in rows if row.batch_id}
    left = set(ctx.tx.execute(select(o.batch_id).where(o.batch_id.in_(batches))).scalars())
    requests.forget(ctx.tx, [*ids, *(batches - left)])
    return len(ids)
