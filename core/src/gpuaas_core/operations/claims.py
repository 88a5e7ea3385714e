"""Claims: a controller takes an operation under a rising epoch and a lease, and holds it until it ends or gives it up.

Every report carries the epoch. A stale one changes nothing at all: no row, no event, no audit of an effect.
Only the store's clock decides whether a lease is over; controllers are told a duration, never a moment.

A claim looks, by index, at three places in this order: what this very holder left behind when it died, what another
controller let lapse, and what waits, tenant by tenant (`queue`). Finished operations are in none of these indexes.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, or_, select, update

from ..authz.context import Context, Denied
from ..iam import reach
from ..iam.principals import with_grants
from ..kit.problems import NotFound
from . import schemas
from .errors import StaleClaim
from .queue import move, unstick, wake, write
from .reads import operation_row, scope_of
from .rows import OperationRow
from .states import LIVE
from .tables import operations
from .targets import AnyTarget, target_of
from .views import operation_view

LEASE_S = 30
MAX_ATTEMPTS = 8  # claims in a row without a step further
EPOCHS_LOST = 1_000_000  # more than a restored store can have forgotten
MOST_PASSED_OVER = 12  # operations whose targets are locked, or that this caller may not have, in one claim
WORKS = "apps.operation.work"


def claim(ctx: Context, scope_id: str | None, body: schemas.Claim) -> schemas.ClaimView | None:
    """`scope_id`: only work there. None: all that the caller may work on."""
    for operation, row in _takeable(ctx, scope_id, body):
        if _tried_enough(ctx, operation):
            give_up(ctx, target_of(operation), row, operation)
        else:
            return _take(ctx, row, operation, body.holder)
    return None


def _take(ctx: Context, row: object, operation: OperationRow, holder: str) -> schemas.ClaimView:
    target = target_of(operation)
    ctx.resource_id = operation.id
    lease = {
        "claim_epoch": operation.claim_epoch + 1,
        "claimed_by": holder,
        "claimant_id": ctx.principal.id,
        "lease_expires_at": ctx.now + LEASE_S * 1000,
        "attempts": operation.attempts + 1,
        "started_at": operation.started_at or ctx.now,
        "progressed_at": ctx.now,
    }
    operation = move(ctx, target, row, operation, "claim", event="claimed", **lease)
    row = target.on_claimed(ctx, row, operation)
    if operation.lock_shared:
        wake(ctx, operation)  # others passed over this target's neighbours while we had it locked: let them claim again
    facts = {"operation": operation_view(ctx.tx, operation), "claim_epoch": operation.claim_epoch}
    facts |= {"lease_expires_in_s": LEASE_S} | target.controller_view(ctx.tx, row, operation)
    return target.wire.claim.model_validate(facts)


def work_waits(ctx: Context, scope_id: str | None, body: schemas.Claim) -> bool:
    return any(ctx.tx.execute(query).first() is not None for query in _sources(ctx, scope_id, body))


def next_due(ctx: Context, scope_id: str | None, body: schemas.Claim) -> int | None:
    """When an operation can be claimed without a new request: its delay ends, or the lease of its claim."""
    o = operations.c
    here = [o.app_slug == body.app_slug, o.scope_id == scope_id if scope_id is not None else _reachable(ctx)]
    delayed = select(o.not_before).where(o.status == "queued", o.not_before > ctx.now, *here).order_by(o.not_before)
    leased = select(o.lease_expires_at).where(o.status == "running", o.lease_expires_at.is_not(None), *here)
    found = [ctx.tx.execute(query.limit(1)).scalar() for query in (delayed, leased.order_by(o.lease_expires_at))]
    return min((moment for moment in found if moment is not None), default=None)


def _takeable(ctx: Context, scope_id: str | None, body: schemas.Claim) -> Iterator[tuple[OperationRow, object]]:
    """Each one locked together with its target. What another transaction has locked is passed over, not waited for."""
    passed: list[str] = []
    for source in _sources(ctx, scope_id, body):
        while len(passed) < MOST_PASSED_OVER:
            query = source.where(operations.c.id.not_in(passed)) if passed else source
            found = ctx.tx.execute(query.with_for_update(key_share=True, skip_locked=True, of=operations)).first()
            if found is None:
                break
            operation = OperationRow.of(found)
            if not _allowed(ctx, scope_id, operation):
                passed.append(operation.id)
                continue
            row = target_of(operation).try_lock(ctx.tx, operation)
            if row is not None:
                yield operation, row
            passed.append(operation.id)


def _allowed(ctx: Context, scope_id: str | None, operation: OperationRow) -> bool:
    """Where the address names no scope, the caller is asked for the key in the scope of what was found."""
    if scope_id is not None:
        return True
    scope = scope_of(ctx.tx, operation.scope_kind, operation.scope_id)
    if ctx.principal.borrows:
        ctx.principal = with_grants(ctx.tx, ctx.principal, ctx.now, scope.project_id or "")
    try:
        ctx.allow(WORKS, scope)
    except (Denied, NotFound):
        return False
    ctx.scope = scope
    return True


def _sources(ctx: Context, scope_id: str | None, body: schemas.Claim) -> list[Select[Any]]:
    o = operations.c
    here = [o.app_slug == body.app_slug, _for_caller(ctx)]
    here.append(o.scope_id == scope_id if scope_id is not None else _reachable(ctx))
    mine = and_(o.claimant_id == ctx.principal.id, o.claimed_by == body.holder)
    if body.holding:
        mine = and_(mine, o.id.not_in(body.holding))
    oldest = (o.turn, o.created_at, o.id)
    return [
        select(operations).where(o.status == "running", mine, *here).order_by(*oldest).limit(1),
        select(operations)
        .where(o.status == "running", o.lease_expires_at <= ctx.now, *here)
        .order_by(*oldest)
        .limit(1),
        select(operations).where(o.status == "queued", o.not_before <= ctx.now, *here).order_by(*oldest).limit(1),
    ]


def _for_caller(ctx: Context) -> ColumnElement[bool]:
    """An operation that is assigned to one service account waits for that one, as long as it is enabled."""
    o = operations.c
    return or_(
        o.assigned_to.is_(None), o.assigned_to == ctx.principal.id, ~exists().where(reach.enabled(o.assigned_to))
    )


def _reachable(ctx: Context) -> ColumnElement[bool]:
    o = operations.c
    return reach.covered(ctx.principal, WORKS, ctx.now, kind=o.scope_kind, place=o.scope_id, tenant=o.tenant_id)


def _tried_enough(ctx: Context, operation: OperationRow) -> bool:
    late = operation.deadline_at is not None and operation.deadline_at <= ctx.now
    return operation.attempts >= MAX_ATTEMPTS or late


def give_up(ctx: Context, target: AnyTarget, row: object, operation: OperationRow) -> None:
    """No controller has it and none gets it again: how it ended is unknown, and a person must look."""
    code = "deadline_passed"
    message = f"It was not done in time; it got as far as step {operation.furthest_step}."
    if operation.attempts >= MAX_ATTEMPTS:
        code = "attempts_exhausted"
        message = f"{operation.attempts} attempts ended without getting further than step {operation.furthest_step}."
    elif operation.claim_epoch == 0:
        message = "No controller asked for it in time."
    error = {
        "code": code,
        "message": message,
        "way_out": "Look at the operation's detail and the controller's log, then retry or decommission.",
        "retryable": True,
    }
    move(ctx, target, row, operation, "lose", error=error)
    target.on_failed(ctx, row, operation, message, known=False)


def fence_all(tx: Connection, now: int) -> int:
    """After a restore: each claim is over, and no host has seen the epochs that come now."""
    o = operations.c
    jump = {"claim_epoch": o.claim_epoch + EPOCHS_LOST}
    fenced = tx.execute(update(operations).where(o.status.in_(LIVE)).values(**jump)).rowcount
    tx.execute(update(operations).where(o.status == "running").values(lease_expires_at=now))
    return fenced


def held(ctx: Context, scope_id: str | None, operation_id: str, epoch: int) -> OperationRow:
    """The operation, locked, if this caller holds it under this epoch; otherwise 409 and nothing changes."""
    operation = operation_row(ctx.tx, scope_id, operation_id, lock=True)
    if operation.status != "running" or operation.claim_epoch != epoch or operation.claimant_id != ctx.principal.id:
        raise StaleClaim(
            f"The operation is {operation.status} under epoch {operation.claim_epoch}; your epoch is {epoch}."
        )
    ctx.resource_id = operation.id
    return operation


def held_with_target(
    ctx: Context, scope_id: str | None, operation_id: str, epoch: int
) -> tuple[OperationRow, AnyTarget, object]:
    """The same with its target, which is locked first: for what changes the target, too."""
    seen = operation_row(ctx.tx, scope_id, operation_id)
    target = target_of(seen)
    row = target.lock(ctx.tx, seen)
    return held(ctx, scope_id, operation_id, epoch), target, row


def heartbeat(ctx: Context, scope_id: str | None, operation_id: str, body: schemas.ClaimReport) -> schemas.LeaseView:
    operation = held(ctx, scope_id, operation_id, body.claim_epoch)
    change: dict[str, Any] = {}
    if operation.stuck_reason == "heartbeats_missed":
        target = target_of(operation)
        change = unstick(ctx, target, target.read(ctx.tx, operation), operation)
    renew(ctx, operation, change)
    return lease_view(operation)


def renew(ctx: Context, operation: OperationRow, change: dict[str, Any]) -> OperationRow:
    return write(ctx, operation, change | {"lease_expires_at": ctx.now + LEASE_S * 1000})


def lease_view(operation: OperationRow) -> schemas.LeaseView:
    return schemas.LeaseView(lease_expires_in_s=LEASE_S, cancel_requested=bool(operation.cancel_requested))


def return_claim(
    ctx: Context, scope_id: str | None, operation_id: str, body: schemas.ReturnClaim
) -> schemas.OperationView:
    """The controller gives its claim back: the operation waits again, for `retry_in_s` seconds at least."""
    operation = held(ctx, scope_id, operation_id, body.claim_epoch)
    target = target_of(operation)
    change = {"not_before": ctx.now + body.retry_in_s * 1000, "lease_expires_at": None, "claimed_by": None}
    if body.reason:
        change["message"] = body.reason
    row = target.read(ctx.tx, operation)
    moved = move(ctx, target, row, operation, "release", event="released", **change)
    wake(ctx, moved)
    return operation_view(ctx.tx, moved)
