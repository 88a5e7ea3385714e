"""What controllers do: claim an operation under a rising epoch and a lease, report on it, get access to its machines.

Every report carries the epoch. A stale one changes nothing at all: no row, no event, no audit of an effect.
Only the store's clock decides whether a lease is over; controllers are told a duration, never a moment.
"""

from typing import Any

from sqlalchemy import Row, Select, and_, or_, select, update

from ..access.context import Context
from ..capacity.reads import allocations_by_id
from ..capacity.trust import LOGIN_USER
from ..custody import authorities, grants
from ..custody.vault import Vault
from . import schemas
from .errors import AllocationNotOfOperation, EvidenceMissing, MembersNotReady, OutcomeConflict, StaleClaim
from .reads import hold_operation, instance_row, instance_view, members_of, operation_view
from .record import emit_operation, instance_facts, move_instance, move_member, move_operation
from .states import DECOMMISSION, DEPLOY, LIVE, REPORTED
from .tables import allocation_holds, instances, operations

LEASE_S = 30
MAX_ATTEMPTS = 8  # claims in a row without a step further


def claim(ctx: Context, project_id: str, body: schemas.Claim) -> schemas.ClaimView | None:
    while (row := _next(ctx, project_id, body)) is not None and row.attempts >= MAX_ATTEMPTS:
        _give_up(ctx, instance_row(ctx.tx, project_id, row.instance_id), row)
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
    }
    row = move_operation(ctx, instance, row, "claim", event="claimed", **lease)
    instance = move_instance(ctx, instance, "claim", operation_id=row.id)
    return schemas.ClaimView(
        operation=operation_view(ctx.tx, row),
        instance=instance_view(ctx.tx, instance),
        claim_epoch=row.claim_epoch,
        lease_expires_in_s=LEASE_S,
    )


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
    query = select(operations).where(*here, free)
    return query.order_by(o.id).limit(1)


def _give_up(ctx: Context, instance: Row[Any], row: Row[Any]) -> None:
    error = {
        "code": "attempts_exhausted",
        "message": f"{row.attempts} attempts ended without getting further than step {row.furthest_step}.",
        "way_out": "Look at the operation's detail and the controller's log, then retry or decommission.",
        "retryable": True,
    }
    move_operation(ctx, instance, row, "lose", error=error)
    health = {"health_status": "unknown", "health_sentence": error["message"]}
    move_instance(ctx, instance, "fail", operation_id=row.id, **health)


def held(ctx: Context, project_id: str, operation_id: str, epoch: int) -> tuple[Row[Any], Row[Any]]:
    """The operation and its instance, if this caller holds it under this epoch; otherwise 409 and nothing changes."""
    row, instance = hold_operation(ctx.tx, project_id, operation_id)
    if row.status != "running" or row.claim_epoch != epoch or row.claimant_id != ctx.principal.id:
        raise StaleClaim(f"The operation is {row.status} under epoch {row.claim_epoch}; your epoch is {epoch}.")
    ctx.resource_id = operation_id
    return row, instance


def heartbeat(ctx: Context, project_id: str, operation_id: str, body: schemas.ClaimReport) -> schemas.LeaseView:
    row, _ = held(ctx, project_id, operation_id, body.claim_epoch)
    _renew(ctx, row)
    return schemas.LeaseView(lease_expires_in_s=LEASE_S, cancel_requested=bool(row.cancel_requested))


def progress(ctx: Context, project_id: str, operation_id: str, body: schemas.Progress) -> schemas.LeaseView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    further = body.step > row.furthest_step
    change = {"phase": body.phase, "step": body.step, "steps": body.of, "message": body.message}
    if further:
        change |= {"furthest_step": body.step, "attempts": 1}
    if body.adapter_detail is not None:
        change["adapter_detail"] = body.adapter_detail
    ctx.tx.execute(update(operations).where(operations.c.id == row.id).values(**change))
    moved = ctx.tx.execute(select(operations).where(operations.c.id == row.id)).one()
    emit_operation(ctx, instance, moved, "progressed")
    _report_members(ctx, instance, row.id, body.members)
    sentence = body.health.sentence if body.health else body.message
    status = body.health.status if body.health else "progressing"
    health = {"health_status": status, "health_sentence": sentence, "updated_at": ctx.now}
    ctx.tx.execute(update(instances).where(instances.c.id == instance.id).values(**health))
    _renew(ctx, row)
    return schemas.LeaseView(lease_expires_in_s=LEASE_S, cancel_requested=bool(row.cancel_requested))


def complete(ctx: Context, project_id: str, operation_id: str, body: schemas.Complete) -> schemas.OperationView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    _report_members(ctx, instance, row.id, body.members)
    if row.kind == DECOMMISSION:
        _finish_teardown(ctx, instance, row, body)
    elif row.kind == DEPLOY:
        _check_all_ready(ctx, instance)
    moved = move_operation(
        ctx, instance, row, "succeed", message="Done", evidence=body.evidence, **_detail(body.adapter_detail)
    )
    move_instance(ctx, instance, "succeed", operation_id=row.id, **_observed(ctx, instance, row.kind, body))
    return operation_view(ctx.tx, moved)


def fail(ctx: Context, project_id: str, operation_id: str, body: schemas.Fail) -> schemas.OperationView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    _report_members(ctx, instance, row.id, body.members)
    action = "cancel" if row.cancel_requested and body.error.code == "canceled" else "fail"
    if row.kind == DEPLOY:
        for member in members_of(ctx.tx, instance.id):
            if member.state in ("pending", "provisioning"):
                move_member(ctx, instance, member, "fail", operation_id=row.id)
    error = body.error.model_dump()
    moved = move_operation(
        ctx, instance, row, action, message=body.error.message, error=error, **_detail(body.adapter_detail)
    )
    health = {"health_status": "unhealthy", "health_sentence": body.error.message}
    move_instance(ctx, instance, action, operation_id=row.id, **health)
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
    """A certificate for one allocation of the claimed operation's instance, five minutes, one principal."""
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    on = {member.allocation_id for member in members_of(ctx.tx, instance.id)}
    allocation = allocations_by_id(ctx.tx, project_id, [body.allocation_id]).get(body.allocation_id)
    if body.allocation_id not in on or allocation is None or allocation.state == "released":
        raise AllocationNotOfOperation(f"{body.allocation_id!r} is not an allocation of this instance.")
    certificate = authorities.sign_user(
        ctx.tx,
        vault,
        instance.tenant_id,
        key_line=body.ssh_public_key,
        principal=body.allocation_id,
        key_id=f"{row.id}/{row.claim_epoch}",
        now=ctx.now,
    )
    grant_id = _record_grant(ctx, instance, row, body.allocation_id, certificate)
    return schemas.GrantView(
        id=grant_id,
        allocation_id=body.allocation_id,
        principal=body.allocation_id,
        certificate=certificate.text,
        expires_in_s=certificate.lives_s,
        address=allocation.address,
        port=allocation.ssh_port,
        login_user=LOGIN_USER,
        host_ca_public_key=authorities.public_key(ctx.tx, instance.tenant_id, "host"),
        host_principal=allocation.node_id,
    )


def _record_grant(
    ctx: Context, instance: Row[Any], row: Row[Any], allocation_id: str, certificate: authorities.Certificate
) -> str:
    grant_id = grants.record(
        ctx,
        certificate,
        operation_id=row.id,
        claim_epoch=row.claim_epoch,
        allocation_id=allocation_id,
    )
    facts = {
        "operation_id": row.id,
        "allocation_id": allocation_id,
        "grant_id": grant_id,
        "claim_epoch": row.claim_epoch,
    }
    ctx.emit("apps.access.granted", grant_id, instance_facts(instance) | facts)
    return grant_id


def _renew(ctx: Context, row: Row[Any]) -> None:
    change = {"lease_expires_at": ctx.now + LEASE_S * 1000}
    ctx.tx.execute(update(operations).where(operations.c.id == row.id).values(**change))


def _report_members(ctx: Context, instance: Row[Any], operation_id: str, reports: list[schemas.MemberReport]) -> None:
    known = {member.id: member for member in members_of(ctx.tx, instance.id)}
    for report in reports:
        member = known.get(report.member_id)
        if member is None:
            raise OutcomeConflict(f"{report.member_id!r} is not a member of {instance.name!r}.")
        more = report.model_dump(include={"runtime_state", "runtime_version", "adapter_detail"}, exclude_none=True)
        move_member(ctx, instance, member, REPORTED[report.state], operation_id=operation_id, **more)


def _check_all_ready(ctx: Context, instance: Row[Any]) -> None:
    waiting = [m for m in members_of(ctx.tx, instance.id) if m.state not in ("ready", "removed")]
    if waiting:
        first = waiting[0]
        raise MembersNotReady(f"The member {first.component_key} {first.ordinal} is {first.state}.")


def _finish_teardown(ctx: Context, instance: Row[Any], row: Row[Any], body: schemas.Complete) -> None:
    rows = members_of(ctx.tx, instance.id)
    missing = {member.allocation_id for member in rows} - set(body.evidence or {})
    if missing:
        raise EvidenceMissing(f"No evidence for {', '.join(sorted(missing))}.")
    for member in rows:
        if member.state != "removed":
            move_member(ctx, instance, member, "removed", operation_id=row.id)
    ctx.tx.execute(allocation_holds.delete().where(allocation_holds.c.instance_id == instance.id))


def _observed(ctx: Context, instance: Row[Any], kind: str, body: schemas.Complete) -> dict[str, Any]:
    sentence = "Torn down, with evidence" if kind == DECOMMISSION else "Running"
    health = body.health or schemas.Health(status="unknown" if kind == DECOMMISSION else "healthy", sentence=sentence)
    seen: dict[str, Any] = {
        "health_status": health.status,
        "health_sentence": health.sentence,
        "observed_generation": instance.generation,
        "conditions": _conditions(ctx, instance, body.conditions),
        "access": None if kind == DECOMMISSION else body.access,
    }
    if body.runtime_version is not None:
        seen["runtime_version"] = body.runtime_version
    return seen | _detail(body.adapter_detail)


def _conditions(ctx: Context, instance: Row[Any], reported: list[schemas.Condition]) -> list[dict[str, Any]]:
    before = {one["type"]: one for one in instance.conditions}
    result = []
    for condition in reported:
        known = before.get(condition.type)
        same = known is not None and known["status"] == condition.status
        since = known["last_transition_at"] if known is not None and same else ctx.now
        facts = condition.model_dump() | {"last_transition_at": since}
        facts["observed_generation"] = condition.observed_generation or instance.generation
        result.append(facts)
    return result


def _detail(adapter_detail: dict[str, Any] | None) -> dict[str, Any]:
    return {} if adapter_detail is None else {"adapter_detail": adapter_detail}
