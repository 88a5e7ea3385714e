"""Giving up an instance or a member: the only end without evidence.

It leaves an orphan record per machine, listed until a person has inspected the machine.
"""

from typing import Any

from sqlalchemy import Row, update

from ..authz.context import Context
from ..kit.lifecycle import WrongMoment
from . import actions, schemas
from .holds import release_unused
from .reads import instance_row, live_operations, member_row, members_of, orphan_row
from .states import INSTANCE, MEMBER
from .tables import orphans
from .transitions import instance_facts, move_instance, move_member, record_orphan
from .work import Work


def give_instance_up(ctx: Context, instance: Row[Any], row: Work, reason: str) -> None:
    INSTANCE.after(instance.state, "abandon")
    for member in members_of(ctx.tx, instance.id):
        give_member_up(ctx, instance, member, "abandon", row.id, reason)
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
    ctx.resource_id, ctx.reason = member_id, f"{ctx.reason}; reason given: {reason}"
    if refusal := actions.tombstone(member, instance, live_operations(ctx.tx, instance_id)):
        raise refusal
    orphan_id = give_member_up(ctx, instance, member, "tombstone", None, reason)
    return schemas.MemberRemovedView(member_id=member_id, state="removed", orphan_id=orphan_id)


def give_member_up(
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
