"""Claims: a controller claims an operation with a rising epoch and a lease. The claim lasts until the operation ends,
the controller returns the claim, or another claim replaces it.

Every report carries the epoch. A report with a stale epoch changes nothing: no row, no event, no audit row. Only the
platform's clock decides whether a lease has expired; controllers receive a duration, never a time.

A claim searches three indexes in this order: operations that the same holder had claimed before it crashed, operations
of other controllers with an expired lease, and the queue, fair between tenants (`queue`). Ended operations are in none
of them.
"""

from collections.abc import Iterator, Mapping

from sqlalchemy import ColumnElement, Connection, bindparam, exists, or_, select, update

from ..authz.context import Context, Denied
from ..iam import reach
from ..iam.principals import with_grants
from ..kit.problems import NotFound
from ..kit.rows import Query, Scalar
from . import schemas
from .errors import StaleClaim
from .queue import move, unstick, wake, write
from .reads import OPERATIONS, operation_row, scope_of
from .rows import OperationRow
from .states import LIVE
from .tables import QUEUED, RUNNING, operations
from .targets import AnyTarget, target_of
from .views import operation_view

MAX_ATTEMPTS = 8  # claims in a row without a step further
EPOCHS_LOST = 1_000_000  # more than a restored store can have forgotten
MOST_PASSED_OVER = 12  # operations whose targets are locked, or that this caller may not have, in one claim
WORKS = "apps.operation.work"

_O = operations.c
_IN_SCOPE = _O.scope_id == bindparam("scope")
_OF_APP = _O.app_slug == bindparam("app")
_OLDEST = (
    OPERATIONS.where(
        _OF_APP,
        # an operation that is assigned to one service account waits for that account, as long as it is enabled
        or_(
            _O.assigned_to.is_(None),
            _O.assigned_to == bindparam("caller"),
            ~exists().where(reach.enabled(_O.assigned_to)),
        ),
    )
    .order_by(_O.turn, _O.created_at, _O.id)
    .limit(1)
)
_SOURCES = [
    _OLDEST.where(
        _O.status == RUNNING,
        _O.claimant_id == bindparam("caller"),
        _O.claimed_by == bindparam("holder"),
    ),
    _OLDEST.where(_O.status == RUNNING, _O.lease_expires_at <= bindparam("now")),
    _OLDEST.where(_O.status == QUEUED, _O.not_before <= bindparam("now")),
]
_LOCKED_SOURCES = [source.locked(operations, skip_locked=True) for source in _SOURCES]
_SOURCES_IN_SCOPE = [source.where(_IN_SCOPE) for source in _SOURCES]
_LOCKED_IN_SCOPE = [source.where(_IN_SCOPE) for source in _LOCKED_SOURCES]
_DELAYED = (
    select(_O.not_before)
    .where(_OF_APP, _O.status == QUEUED, _O.not_before > bindparam("now"))
    .order_by(_O.not_before)
    .limit(1)
)
_LEASED = (
    select(_O.lease_expires_at)
    .where(_OF_APP, _O.status == RUNNING, _O.lease_expires_at.is_not(None))
    .order_by(_O.lease_expires_at)
    .limit(1)
)
_DELAYED_IN_SCOPE, _LEASED_IN_SCOPE = (Scalar[int](query.where(_IN_SCOPE)) for query in (_DELAYED, _LEASED))


def claim(ctx: Context, scope_id: str | None, body: schemas.Claim) -> schemas.ClaimView | None:
    """Claim the next operation, or return None if none can be claimed. `scope_id`: only operations in this scope; None:
    in every scope in which the caller may work."""
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
        "lease_expires_at": ctx.now + ctx.durations.lease_s * 1000,
        "attempts": operation.attempts + 1,
        "started_at": operation.started_at or ctx.now,
        "progressed_at": ctx.now,
    }
    operation = move(ctx, target, row, operation, "claim", lease, event="claimed")
    row = target.on_claimed(ctx, row, operation)
    if operation.lock_shared:
        wake(ctx, operation)  # others passed over this target's neighbours while we had it locked: let them claim again
    facts = {
        "operation": operation_view(ctx.tx, operation),
        "claim_epoch": operation.claim_epoch,
        "lease_expires_in_s": ctx.durations.lease_s,
        **target.controller_view(ctx.tx, row, operation),
    }
    return target.wire.claim.model_validate(facts)


def outlook(ctx: Context, scope_id: str | None, body: schemas.Claim) -> tuple[bool, int | None]:
    """Return whether an operation can be claimed now and, if not, when the next one becomes claimable (None: not by
    itself). Both are read in one snapshot."""
    values = _values(ctx, scope_id, body)
    if any(source.first(ctx.tx, **values) is not None for source in _sources(ctx, scope_id, body)):
        return True, None
    return False, _next_due(ctx, scope_id, body)


def _next_due(ctx: Context, scope_id: str | None, body: schemas.Claim) -> int | None:
    """Return when the next operation becomes claimable because its retry delay or the lease of its claim ends; None if
    there is no such operation."""
    values = {"app": body.app_slug, "now": ctx.now, "scope": scope_id}
    if scope_id is not None:
        found = [query.first(ctx.tx, **values) for query in (_DELAYED_IN_SCOPE, _LEASED_IN_SCOPE)]
    else:
        reachable = _reachable(ctx)
        found = [ctx.tx.execute(query.where(reachable), values).scalar() for query in (_DELAYED, _LEASED)]
    return min((moment for moment in found if moment is not None), default=None)


def _takeable(ctx: Context, scope_id: str | None, body: schemas.Claim) -> Iterator[tuple[OperationRow, object]]:
    """Iterate over the claimable operations, each locked together with its target. Rows locked by other transactions
    are skipped."""
    passed: list[str] = []
    values = _values(ctx, scope_id, body)
    for source in _sources(ctx, scope_id, body, lock=True):
        while len(passed) < MOST_PASSED_OVER:
            query = source.where(_O.id.not_in(passed)) if passed else source
            operation = query.first(ctx.tx, **values)
            if operation is None:
                break
            if not _allowed(ctx, scope_id, operation):
                passed.append(operation.id)
                continue
            row = target_of(operation).try_lock(ctx.tx, operation)
            if row is not None:
                yield operation, row
            passed.append(operation.id)


def _allowed(ctx: Context, scope_id: str | None, operation: OperationRow) -> bool:
    """Whether the caller may work in the scope of the operation; if so, `ctx` gets this scope. Always True if the path
    names a scope, because the permission was checked there."""
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


def _sources(
    ctx: Context, scope_id: str | None, body: schemas.Claim, *, lock: bool = False
) -> list[Query[OperationRow]]:
    """Return the queries for claimable operations: the holder's own, those with an expired lease, those in the
    queue."""
    if scope_id is not None:
        sources = _LOCKED_IN_SCOPE if lock else _SOURCES_IN_SCOPE
    else:
        reachable = _reachable(ctx)
        sources = [source.where(reachable) for source in (_LOCKED_SOURCES if lock else _SOURCES)]
    if not body.holding:
        return sources
    return [sources[0].where(_O.id.not_in(body.holding)), *sources[1:]]


def _values(ctx: Context, scope_id: str | None, body: schemas.Claim) -> dict[str, object]:
    who = {"caller": ctx.principal.id, "holder": body.holder}
    return {"app": body.app_slug, "scope": scope_id, "now": ctx.now, **who}


def _reachable(ctx: Context) -> ColumnElement[bool]:
    o = operations.c
    return reach.covered(ctx.principal, WORKS, ctx.now, kind=o.scope_kind, place=o.scope_id, tenant=o.tenant_id)


def _tried_enough(ctx: Context, operation: OperationRow) -> bool:
    late = operation.deadline_at is not None and operation.deadline_at <= ctx.now
    return operation.attempts >= MAX_ATTEMPTS or late


def give_up(ctx: Context, target: AnyTarget, row: object, operation: OperationRow) -> None:
    """End an operation after too many attempts or after its deadline. Its outcome is unknown, so it becomes
    `needs_attention`, and its target counts as failed."""
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
    move(ctx, target, row, operation, "lose", {"error": error})
    target.on_failed(ctx, row, operation, message, known=False)


def fence_all(tx: Connection, now: int) -> int:
    """End every claim after a restore from backup, and raise the epochs above any that a host may have seen. Return the
    number of live operations."""
    o = operations.c
    jump = {"claim_epoch": o.claim_epoch + EPOCHS_LOST}
    fenced = tx.execute(update(operations).where(o.status.in_(LIVE)).values(**jump)).rowcount
    tx.execute(update(operations).where(o.status == "running").values(lease_expires_at=now))
    return fenced


def held(ctx: Context, scope_id: str | None, operation_id: str, epoch: int) -> OperationRow:
    """Lock and return the operation if the caller holds its claim with this epoch; otherwise raise 409."""
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
    """Lock the target first, then the operation, and check the claim as `held` does. Used by requests that change the
    target."""
    seen = operation_row(ctx.tx, scope_id, operation_id)
    target = target_of(seen)
    row = target.lock(ctx.tx, seen)
    return held(ctx, scope_id, operation_id, epoch), target, row


def heartbeat(ctx: Context, scope_id: str | None, operation_id: str, body: schemas.ClaimReport) -> schemas.LeaseView:
    operation = held(ctx, scope_id, operation_id, body.claim_epoch)
    change: dict[str, None] = {}
    if operation.stuck_reason == "heartbeats_missed":
        target = target_of(operation)
        change = unstick(ctx, target, target.read(ctx.tx, operation), operation)
    renew(ctx, operation, change)
    return lease_view(ctx, operation)


def renew(ctx: Context, operation: OperationRow, change: Mapping[str, object]) -> OperationRow:
    return write(ctx, operation, {**change, "lease_expires_at": ctx.now + ctx.durations.lease_s * 1000})


def lease_view(ctx: Context, operation: OperationRow) -> schemas.LeaseView:
    return schemas.LeaseView(
        lease_expires_in_s=ctx.durations.lease_s, cancel_requested=bool(operation.cancel_requested)
    )


def return_claim(
    ctx: Context, scope_id: str | None, operation_id: str, body: schemas.ReturnClaim
) -> schemas.OperationView:
    """Return the claim: the operation is queued again and can be claimed after `retry_in_s` seconds."""
    operation = held(ctx, scope_id, operation_id, body.claim_epoch)
    target = target_of(operation)
    change: dict[str, object] = {
        "not_before": ctx.now + body.retry_in_s * 1000,
        "lease_expires_at": None,
        "claimed_by": None,
    }
    if body.reason:
        change["message"] = body.reason
    row = target.read(ctx.tx, operation)
    moved = move(ctx, target, row, operation, "release", change, event="released")
    wake(ctx, moved)
    return operation_view(ctx.tx, moved)
