"""What people do when work goes wrong: retry, cancel, take the claim away, give up. Nothing needs the store.

Giving up is the only end without evidence. It leaves an orphan record per machine, listed until somebody has looked.
"""

from typing import Any

from sqlalchemy import Row, select, update

from ..access.context import Context
from ..kit.lifecycle import WrongMoment
from ..kit.problems import NotFound
from . import actions, schemas
from .endings import leave_failed, leave_undone
from .errors import NotRetryable
from .holds import release_unused
from .reads import (
    hold_operation,
    instance_row,
    live_operations,
    manifest_of,
    member_of,
    member_row,
    members_of,
    operation_row,
    orphan_row,
)
from .record import (
    emit_operation,
    instance_facts,
    move_instance,
    move_member,
    move_operation,
    queue_operation,
    record_orphan,
)
from .states import DECOMMISSION, DEPLOY, INSTANCE, MEMBER, OPERATION, REMOVE
from .tables import operations, orphans
from .views import accepted_view, operation_view

ANYWAY = "try_anyway"  # the parameter that lets an app try once more what it refuses after repeated failures


def retry(ctx: Context, project_id: str, operation_id: str, *, anyway: bool = False) -> schemas.AcceptedView:
    """A new operation with the same order; the old one stays as it ended."""
    old, instance = hold_operation(ctx.tx, project_id, operation_id)
    ctx.resource_id = operation_id
    member = member_of(ctx.tx, old)
    if refusal := actions.retry(old, instance, member, live_operations(ctx.tx, instance.id)):
        raise refusal
    same = {name: getattr(old, name) for name in ("from_version", "to_version", "old_member_id")}
    params = {name: value for name, value in (old.params or {}).items() if name != ANYWAY}
    same["params"] = (params | ({ANYWAY: True} if anyway else {})) or None
    manifest = manifest_of(ctx.tx, instance)
    operation = queue_operation(ctx, instance, old.kind, manifest, member=member, retry_of=old.id, **same)
    if member is not None:
        action = actions.again(old.kind, member.state) or ""
        move_member(ctx, instance, member, action, operation_id=operation.id)
        return accepted_view(ctx.tx, operation)
    health = {"health_status": "progressing", "health_sentence": "Trying again"}
    action = actions.again(old.kind, instance.state) or ""
    move_instance(ctx, instance, action, operation_id=operation.id, **health)
    for one in members_of(ctx.tx, instance.id):
        if one.state == "failed" and old.kind == DEPLOY:
            move_member(ctx, instance, one, "retry", operation_id=operation.id)
    return accepted_view(ctx.tx, operation)


def retry_member(
    ctx: Context, project_id: str, instance_id: str, member_id: str, *, anyway: bool = False
) -> schemas.AcceptedView:
    """The member's own newest operation again."""
    instance_row(ctx.tx, project_id, instance_id)
    member = member_row(ctx.tx, instance_id, member_id)
    try:
        last = operation_row(ctx.tx, project_id, member.last_operation_id or "")
    except NotFound:
        raise NotRetryable("The member has no operation that could be retried.") from None
    if last.member_id != member_id:
        raise NotRetryable(f"Its newest operation, the {last.kind} {last.id}, is of the whole instance.")
    return retry(ctx, project_id, last.id, anyway=anyway)


def cancel(ctx: Context, project_id: str, operation_id: str) -> schemas.OperationView:
    """Waiting work is canceled at once; a controller that holds it is asked to stop at its next heartbeat."""
    row, instance = hold_operation(ctx.tx, project_id, operation_id)
    ctx.resource_id = operation_id
    if refusal := actions.cancel(row):
        raise refusal
    if row.status == "queued" and row.claim_epoch == 0:
        moved = move_operation(ctx, instance, row, "cancel", message="Canceled before it began")
        leave_undone(ctx, instance, row, "unknown", f"The {row.kind} was canceled before anything was done")
        return operation_view(ctx.tx, moved)
    ctx.tx.execute(update(operations).where(operations.c.id == row.id).values(cancel_requested=1))
    asked = ctx.tx.execute(select(operations).where(operations.c.id == row.id)).one()
    emit_operation(ctx, instance, asked, "cancel_requested")
    return operation_view(ctx.tx, asked)


def take_claim(ctx: Context, project_id: str, operation_id: str, reason: str | None) -> schemas.OperationView:
    """The holder is fenced off by the next epoch, and the work waits for whoever claims it."""
    row, instance = hold_operation(ctx.tx, project_id, operation_id)
    ctx.resource_id = operation_id
    if refusal := actions.release(row):
        raise refusal
    change = {
        "claim_epoch": row.claim_epoch + 1,
        "not_before": ctx.now,
        "lease_expires_at": None,
        "claimed_by": None,
        "claimant_id": None,
        "message": reason or "Its claim was taken away by a person",
    }
    moved = move_operation(ctx, instance, row, "release", event="released", **change)
    ctx.ring(f"work:{project_id}")
    return operation_view(ctx.tx, moved)


def abandon(ctx: Context, project_id: str, operation_id: str, reason: str) -> schemas.OperationView:
    """Work under way ends as `needs_attention`; what was going away counts as gone, with orphan records."""
    row, instance = hold_operation(ctx.tx, project_id, operation_id)
    ctx.resource_id, ctx.reason = operation_id, _because(ctx, reason)
    member = member_of(ctx.tx, row)
    if refusal := actions.abandon(row, instance, member):
        raise refusal
    moved = row if OPERATION.terminal(row.status) else _end(ctx, instance, row, reason)
    if row.kind == DECOMMISSION:
        _give_instance_up(ctx, instance, row, reason)
    elif row.kind == REMOVE and member is not None:
        _give_member_up(ctx, instance, member, "abandon", row.id, reason)
    else:
        leave_failed(ctx, instance, row, "unknown", f"The {row.kind} was abandoned: {reason}")
    return operation_view(ctx.tx, moved)


def _end(ctx: Context, instance: Row[Any], row: Row[Any], reason: str) -> Row[Any]:
    error = {
        "code": "abandoned",
        "message": f"Somebody gave this up: {reason}",
        "way_out": "Nobody knows how far it got. Look at the machines before you ask for something new.",
        "retryable": True,
    }
    change = {"error": error, "message": "Abandoned", "claim_epoch": row.claim_epoch + 1}
    return move_operation(ctx, instance, row, "abandon", **change)


def _give_instance_up(ctx: Context, instance: Row[Any], row: Row[Any], reason: str) -> None:
    INSTANCE.after(instance.state, "abandon")
    for member in members_of(ctx.tx, instance.id):
        _give_member_up(ctx, instance, member, "abandon", row.id, reason)
    health = {"health_status": "unknown", "health_sentence": f"Abandoned without evidence: {reason}"}
    facts = {"operation_id": row.id, "reason": reason}
    ctx.emit("apps.instance.abandoned", instance.id, instance_facts(instance) | facts)
    move_instance(ctx, instance, "abandon", operation_id=row.id, access=None, **health)


def tombstone(
    ctx: Context, project_id: str, instance_id: str, member_id: str, reason: str
) -> schemas.MemberRemovedView:
    """A failed member counts as removed though nobody could clean up after it."""
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    member = member_row(ctx.tx, instance_id, member_id)
    ctx.resource_id, ctx.reason = member_id, _because(ctx, reason)
    if refusal := actions.tombstone(member, instance, live_operations(ctx.tx, instance_id)):
        raise refusal
    orphan_id = _give_member_up(ctx, instance, member, "tombstone", None, reason)
    return schemas.MemberRemovedView(member_id=member_id, state="removed", orphan_id=orphan_id)


def _give_member_up(
    ctx: Context, instance: Row[Any], member: Row[Any], action: str, operation_id: str | None, reason: str
) -> str:
    facts = {"member_id": member.id, "component_key": member.component_key, "reason": reason}
    ctx.emit("apps.member.abandoned", member.id, instance_facts(instance) | facts)
    if MEMBER.allows(member.state, action):
        move_member(ctx, instance, member, action, operation_id=operation_id or member.last_operation_id)
    else:
        raise WrongMoment(f"The member is {member.state}: {action!r} is not possible now.")
    release_unused(ctx, instance.id)
    return record_orphan(ctx, instance, member, operation_id, reason)


def resolve_orphan(ctx: Context, project_id: str, orphan_id: str, reason: str) -> schemas.OrphanView:
    """Somebody has looked at the machine. Said twice, the first word stays."""
    row = orphan_row(ctx.tx, project_id, orphan_id)
    instance = instance_row(ctx.tx, project_id, row.instance_id, lock=True)
    row = orphan_row(ctx.tx, project_id, orphan_id)
    ctx.resource_id = orphan_id
    if row.resolved_at is None:
        change = {"resolved_by": ctx.principal.id, "resolved_at": ctx.now, "resolution": reason}
        ctx.tx.execute(update(orphans).where(orphans.c.id == orphan_id).values(**change))
        facts = {"orphan_id": orphan_id, "node_id": row.node_id, "reason": reason}
        ctx.emit("apps.orphan.resolved", orphan_id, instance_facts(instance) | facts)
    return schemas.OrphanView.model_validate(orphan_row(ctx.tx, project_id, orphan_id))


def _because(ctx: Context, reason: str) -> str:
    """The audit row says by which right, and what the person said."""
    return f"{ctx.reason}; reason given: {reason}"
