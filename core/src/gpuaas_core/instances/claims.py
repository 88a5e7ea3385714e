"""What controllers do: claim an operation under a rising epoch and a lease, report on it, get access to its machines.

Every report carries the epoch. A stale one changes nothing at all: no row, no event, no audit of an effect.
Only the store's clock decides whether a lease is over; controllers are told a duration, never a moment.
"""

from typing import Any

from sqlalchemy import Connection, Row, Select, and_, or_, select, update

from ..access.context import Context
from ..custody.vault import Vault
from . import granting, operators, schemas
from .departures import leave_machines
from .endings import finish_instance, finish_member, leave_failed, leave_undone
from .errors import ConditionReserved, GenerationOutdated, OutcomeConflict, StaleClaim
from .fencing import check_not_fenced
from .reads import hold_operation, instance_row, member_row, members_of
from .record import emit_operation, move_instance, move_member, move_operation, unstick
from .states import (
    APPLIES_SPEC,
    DECOMMISSION,
    KINDS,
    LIVE,
    NEW_VERSION,
    OF_INSTANCE,
    REMOVE,
    REPLACE,
    REPORTED,
    TAKEN_BACK,
)
from .tables import instances, operations
from .views import instance_view, operation_view

LEASE_S = 30
MAX_ATTEMPTS = 8  # claims in a row without a step further
EPOCHS_LOST = 1_000_000  # more than a restored store can have forgotten
READY = ("Ready", "True")
LEAVES = (DECOMMISSION, REMOVE, REPLACE)


def claim(ctx: Context, project_id: str, body: schemas.Claim) -> schemas.ClaimView | None:
    while (row := _next(ctx, project_id, body)) is not None and _tried_enough(ctx, row):
        give_up(ctx, instance_row(ctx.tx, project_id, row.instance_id), row)
    if row is None:
        return None
    instance = instance_row(ctx.tx, project_id, row.instance_id)
    ctx.resource_id = row.id
    lease = {
        "claim_epoch": row.claim_epoch + 1,
        "claimed_by": body.holder,
        "claimant_id": ctx.principal.id,
        "lease_expires_at": ctx.now + LEASE_S * 1000,
        "attempts": row.attempts + 1,
        "started_at": row.started_at or ctx.now,
        "progressed_at": ctx.now,
    }
    row = move_operation(ctx, instance, row, "claim", event="claimed", **lease)
    instance = _begin(ctx, instance, row)
    return schemas.ClaimView(
        operation=operation_view(ctx.tx, row),
        instance=instance_view(ctx.tx, instance, most=None),
        claim_epoch=row.claim_epoch,
        lease_expires_in_s=LEASE_S,
    )


def _begin(ctx: Context, instance: Row[Any], row: Row[Any]) -> Row[Any]:
    kind = KINDS[row.kind]
    if kind.target == OF_INSTANCE:
        return move_instance(ctx, instance, "claim", operation_id=row.id)
    if kind.begin:
        move_member(ctx, instance, member_row(ctx.tx, instance.id, row.member_id), kind.begin, operation_id=row.id)
    ctx.ring(f"work:{row.project_id}")  # others passed over this instance while we held its row: let them look again
    return instance


def work_waits(ctx: Context, project_id: str, body: schemas.Claim) -> bool:
    return ctx.tx.execute(_waiting(ctx, project_id, body)).first() is not None


def _next(ctx: Context, project_id: str, body: schemas.Claim) -> Row[Any] | None:
    """The first that nobody else is about to take or change: its instance is locked together with it."""
    with_instance = _waiting(ctx, project_id, body).join(instances, instances.c.id == operations.c.instance_id)
    return ctx.tx.execute(with_instance.with_for_update(key_share=True, skip_locked=True)).first()


def _waiting(ctx: Context, project_id: str, body: schemas.Claim) -> Select[Any]:
    """Waiting work, work whose lease is over, and what this very holder left behind when it died."""
    o = operations.c
    mine = and_(o.claimed_by == body.holder, o.claimant_id == ctx.principal.id, o.id.not_in(body.holding))
    free = or_(
        and_(o.status == "queued", o.not_before <= ctx.now),
        and_(o.status == "running", or_(o.lease_expires_at <= ctx.now, mine)),
    )
    here = (
        o.project_id == project_id,
        o.app_slug == body.app_slug,
        o.status.in_(LIVE),
    )  # by the index, not all there are
    query = select(operations).where(*here, free, ~operators.somebody_elses(ctx))
    return query.order_by(o.id).limit(1)


def _tried_enough(ctx: Context, row: Row[Any]) -> bool:
    return row.attempts >= MAX_ATTEMPTS or (row.deadline_at is not None and row.deadline_at <= ctx.now)


def give_up(ctx: Context, instance: Row[Any], row: Row[Any]) -> None:
    """Nobody holds it and it will not be handed out again: how it ended is unknown, and a person must look."""
    code, message = "deadline_passed", f"It was not done in time; it got as far as step {row.furthest_step}."
    if row.attempts >= MAX_ATTEMPTS:
        code = "attempts_exhausted"
        message = f"{row.attempts} attempts ended without getting further than step {row.furthest_step}."
    elif row.claim_epoch == 0:
        message = "No controller asked for it in time."
    error = {
        "code": code,
        "message": message,
        "way_out": "Look at the operation's detail and the controller's log, then retry or decommission.",
        "retryable": True,
    }
    move_operation(ctx, instance, row, "lose", error=error)
    leave_failed(ctx, instance, row, "unknown", message)


def fence_all(tx: Connection, now: int) -> int:
    """After a restore: whoever holds work, holds it no more, and no host has seen the epochs that come now."""
    o = operations.c
    jump = {"claim_epoch": o.claim_epoch + EPOCHS_LOST}
    fenced = tx.execute(update(operations).where(o.status.in_(LIVE)).values(**jump)).rowcount
    tx.execute(update(operations).where(o.status == "running").values(lease_expires_at=now))
    return fenced


def held(ctx: Context, project_id: str, operation_id: str, epoch: int) -> tuple[Row[Any], Row[Any]]:
    """The operation and its instance, if this caller holds it under this epoch; otherwise 409 and nothing changes."""
    row, instance = hold_operation(ctx.tx, project_id, operation_id)
    if row.status != "running" or row.claim_epoch != epoch or row.claimant_id != ctx.principal.id:
        raise StaleClaim(f"The operation is {row.status} under epoch {row.claim_epoch}; your epoch is {epoch}.")
    ctx.resource_id = operation_id
    return row, instance


def heartbeat(ctx: Context, project_id: str, operation_id: str, body: schemas.ClaimReport) -> schemas.LeaseView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    silent = row.stuck_reason == "heartbeats_missed"
    _renew(ctx, row, unstick(ctx, instance, row) if silent else {})
    return schemas.LeaseView(lease_expires_in_s=LEASE_S, cancel_requested=bool(row.cancel_requested))


def progress(ctx: Context, project_id: str, operation_id: str, body: schemas.Progress) -> schemas.LeaseView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    further = body.step > row.furthest_step
    late = row.stuck_reason == "deadline_passed"  # a step further does not bring the time back
    change = {"phase": body.phase, "step": body.step, "steps": body.of, "message": body.message}
    change |= {} if late else unstick(ctx, instance, row)
    if further or body.phase != row.phase:
        change["progressed_at"] = ctx.now
    if further:
        change |= {"furthest_step": body.step, "attempts": 1}
    _renew(ctx, row, change | _of_operation(row, body.adapter_detail))
    moved = ctx.tx.execute(select(operations).where(operations.c.id == row.id)).one()
    emit_operation(ctx, instance, moved, "progressed")
    _report_members(ctx, instance, row, body.members)
    seen = _seen(ctx, instance, row, body)
    ctx.tx.execute(update(instances).where(instances.c.id == instance.id).values(**seen, updated_at=ctx.now))
    return schemas.LeaseView(lease_expires_in_s=LEASE_S, cancel_requested=bool(row.cancel_requested))


def _seen(ctx: Context, instance: Row[Any], row: Row[Any], body: schemas.Progress) -> dict[str, Any]:
    """What a report under way says of the instance; work on one member says nothing of the others' health."""
    health = body.health
    if health is None and KINDS[row.kind].target == OF_INSTANCE:
        health = schemas.Health(status="progressing", sentence=body.message)
    seen: dict[str, Any] = {}
    if health:
        seen |= {"health_status": health.status, "health_sentence": health.sentence}
    if body.conditions:
        named = {one.type for one in body.conditions}
        others = [one for one in instance.conditions if one["type"] not in named]
        seen["conditions"] = [*others, *checked_conditions(ctx, instance, body.conditions)]
    return seen


def complete(ctx: Context, project_id: str, operation_id: str, body: schemas.Complete) -> schemas.OperationView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    if row.kind in LEAVES:
        leave_machines(ctx, row)
    _report_members(ctx, instance, row, body.members)
    said = {"message": body.message or "Done", "evidence": body.evidence} | _of_operation(row, body.adapter_detail)
    moved = move_operation(ctx, instance, row, "succeed", **said)
    observed = _observed(ctx, instance, row, body)
    if KINDS[row.kind].target == OF_INSTANCE:
        finish_instance(ctx, instance, row, body.evidence, **observed)
    else:
        finish_member(ctx, instance, row, body.evidence)
        if observed:
            ctx.tx.execute(
                update(instances).where(instances.c.id == instance.id).values(**observed, updated_at=ctx.now)
            )
    return operation_view(ctx.tx, moved)


def fail(ctx: Context, project_id: str, operation_id: str, body: schemas.Fail) -> schemas.OperationView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    _report_members(ctx, instance, row, body.members)
    canceled = bool(row.cancel_requested and body.error.code == "canceled")
    error = body.error.model_dump()
    more = {"message": body.error.message, "error": error} | _of_operation(row, body.adapter_detail)
    moved = move_operation(ctx, instance, row, "cancel" if canceled else "fail", **more)
    if canceled:
        leave_undone(ctx, instance, row, "unhealthy", body.error.message)
    elif body.undone and row.kind in TAKEN_BACK:
        leave_undone(ctx, instance, row, "degraded", body.error.message)
    else:
        leave_failed(ctx, instance, row, "unhealthy", body.error.message)
    return operation_view(ctx.tx, moved)


def release(ctx: Context, project_id: str, operation_id: str, body: schemas.ReleaseClaim) -> schemas.OperationView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    change = {"not_before": ctx.now + body.retry_in_s * 1000, "lease_expires_at": None, "claimed_by": None}
    if body.reason:
        change["message"] = body.reason
    moved = move_operation(ctx, instance, row, "release", event="released", **change)
    ctx.ring(f"work:{project_id}")
    return operation_view(ctx.tx, moved)


def grant_access(
    ctx: Context, vault: Vault, project_id: str, operation_id: str, body: schemas.AskAccess
) -> schemas.GrantView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    check_not_fenced(ctx, row, body.allocation_id)
    return granting.grant(ctx, vault, instance, row, body)


def _renew(ctx: Context, row: Row[Any], change: dict[str, Any]) -> None:
    lease = {"lease_expires_at": ctx.now + LEASE_S * 1000}
    ctx.tx.execute(update(operations).where(operations.c.id == row.id).values(**change, **lease))


def _report_members(ctx: Context, instance: Row[Any], row: Row[Any], reports: list[schemas.MemberReport]) -> None:
    known = {member.id: member for member in members_of(ctx.tx, instance.id)} if reports else {}
    for report in reports:
        member = known.get(report.member_id)
        if member is None and report.state == "removed" and _was_removed(ctx, row, report.member_id):
            continue
        if member is None or not _may_report(row, report):
            raise OutcomeConflict(f"{report.member_id!r} cannot be reported {report.state} by this {row.kind}.")
        more = report.model_dump(include={"runtime_state", "runtime_version", "adapter_detail"}, exclude_none=True)
        move_member(ctx, instance, member, REPORTED[report.state], operation_id=row.id, **more)


def _may_report(row: Row[Any], report: schemas.MemberReport) -> bool:
    """Work on one member reports on that one (beside it others are worked on); only what removes says removed."""
    leaving = {REMOVE: row.member_id, REPLACE: row.old_member_id}.get(row.kind)
    if report.state in ("removing", "removed"):
        return row.kind == DECOMMISSION or report.member_id == leaving
    return row.member_id is None or report.member_id in (row.member_id, row.old_member_id)


def _was_removed(ctx: Context, row: Row[Any], member_id: str) -> bool:
    """By this very operation, in an earlier report."""
    return any(
        one.id == member_id and one.last_operation_id == row.id
        for one in members_of(ctx.tx, row.instance_id, removed=True)
    )


def _observed(ctx: Context, instance: Row[Any], row: Row[Any], body: schemas.Complete) -> dict[str, Any]:
    """What a finished operation tells of the instance. One of a member tells only what its controller says."""
    whole = KINDS[row.kind].target == OF_INSTANCE
    health = body.health
    if health is None and whole:
        status = "unknown" if row.kind in (DECOMMISSION, "stop") else "healthy"
        health = schemas.Health(status=status, sentence=KINDS[row.kind].sentence)
    seen: dict[str, Any] = {"conditions": checked_conditions(ctx, instance, body.conditions)}
    if not whole and not body.conditions:
        del seen["conditions"]
    if health:
        seen |= {"health_status": health.status, "health_sentence": health.sentence}
    if row.kind == DECOMMISSION:
        seen["access"] = None
    elif body.access is not None:
        seen["access"] = body.access
    if body.runtime_version is not None:
        seen["runtime_version"] = body.runtime_version
    detail = _detail(body.adapter_detail) if whole else {}
    return seen | detail | _applied(instance, row, body) | _versions(instance, row)


def _applied(instance: Row[Any], row: Row[Any], body: schemas.Complete) -> dict[str, Any]:
    """Which generation runs now: the newest after a change of the spec, otherwise only what the controller says."""
    newest, said = instance.generation, body.observed_generation
    if said is not None and (said > newest or (row.kind in APPLIES_SPEC and said < newest)):
        raise GenerationOutdated(f"The instance is at generation {newest}; the report is about {said}.")
    if row.kind in APPLIES_SPEC or row.kind == DECOMMISSION:
        return {"observed_generation": newest}
    return {} if said is None else {"observed_generation": max(said, instance.observed_generation)}


def _versions(instance: Row[Any], row: Row[Any]) -> dict[str, Any]:
    """Only a success changes the version. Back from half an upgrade, what was before stays what was before."""
    if row.kind not in NEW_VERSION:
        return {}
    if row.to_version == instance.version:
        return {"version": instance.version}
    return {"version": row.to_version, "previous_version": row.from_version if row.kind == "upgrade" else None}


def checked_conditions(ctx: Context, instance: Row[Any], reported: list[schemas.Condition]) -> list[dict[str, Any]]:
    before = {one["type"]: one for one in instance.conditions}
    result = []
    for condition in reported:
        _check_condition(instance, condition)
        known = before.get(condition.type)
        same = known is not None and known["status"] == condition.status
        since = known["last_transition_at"] if known is not None and same else ctx.now
        facts = condition.model_dump() | {"last_transition_at": since}
        facts["observed_generation"] = condition.observed_generation or instance.generation
        result.append(facts)
    return result


def _check_condition(instance: Row[Any], condition: schemas.Condition) -> None:
    """Status never lies about its age: nobody is told Ready for a generation that nobody has looked at."""
    if condition.type == "Stuck":
        raise ConditionReserved("`Stuck` is reported by the platform itself.")
    seen = condition.observed_generation
    outdated = seen is not None and seen < instance.generation and (condition.type, condition.status) == READY
    if outdated or (seen is not None and seen > instance.generation):
        raise GenerationOutdated(
            f"{condition.type}={condition.status} is about generation {seen}; the instance is at {instance.generation}."
        )


def _of_operation(row: Row[Any], said: dict[str, Any] | None) -> dict[str, Any]:
    """What one report says under a name stays until another says something else under it."""
    return {} if said is None else {"adapter_detail": (row.adapter_detail or {}) | said}


def _detail(adapter_detail: dict[str, Any] | None) -> dict[str, Any]:
    return {} if adapter_detail is None else {"adapter_detail": adapter_detail}
