"""How an operation's end leaves its target: done, failed, undone, or nobody knows. Called under the instance's lock."""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from .actions import fences
from .departures import Evidence, certify, check_evidence, check_verifiable
from .errors import MembersNotReady
from .holds import release_unused
from .reads import member_row, members_of
from .states import DECOMMISSION, DEPLOY, KINDS, MEMBER, OF_INSTANCE, REMOVE, REPLACE, undone
from .transitions import move_instance, move_member, record_orphan
from .work import Work


def finish_instance(ctx: Context, instance: Row[Any], row: Work, evidence: Evidence, **observed: Any) -> None:
    """Ready means every member said so; gone means evidence for every machine."""
    if row.kind == DECOMMISSION:
        gone = [one for one in members_of(ctx.tx, instance.id, removed=True) if one.last_operation_id == row.id]
        left = members_of(ctx.tx, instance.id)
        check_evidence({member.allocation_id for member in (*gone, *left)}, evidence)
        for member in left:
            move_member(ctx, instance, member, "removed", operation_id=row.id)
        release_unused(ctx, instance.id)
        certify(ctx, instance, row, [*gone, *left], evidence)
    elif row.kind == DEPLOY:
        _check_all_ready(ctx, instance)
    move_instance(ctx, instance, KINDS[row.kind].done, operation_id=row.id, **observed)


def finish_member(ctx: Context, instance: Row[Any], row: Work, evidence: Evidence) -> None:
    if row.kind == REMOVE:
        _left(ctx, instance, row, member_row(ctx.tx, instance.id, row.target_id), evidence)
    _settle(ctx, instance, row, KINDS[row.kind].done)
    if row.kind == REPLACE:
        _remove_replaced(ctx, instance, row, evidence)
    release_unused(ctx, instance.id)


def _remove_replaced(ctx: Context, instance: Row[Any], row: Work, evidence: Evidence) -> None:
    old = member_row(ctx.tx, instance.id, row.old_member_id or "")
    if old.state == "removed" and old.last_operation_id != row.id:
        return  # somebody gave it up while this was worked on
    _left(ctx, instance, row, old, evidence)
    if old.state == "removed":
        return
    if old.state != "removing":
        move_member(ctx, instance, old, "remove", operation_id=row.id)
        old = member_row(ctx.tx, instance.id, old.id)
    move_member(ctx, instance, old, "removed", operation_id=row.id)


def _left(ctx: Context, instance: Row[Any], row: Work, member: Row[Any], evidence: Evidence) -> None:
    """Proven clean and certified. Of a machine that was fenced the evidence is about everything but the machine."""
    if fences(row):
        check_verifiable({member.allocation_id}, evidence)
        record_orphan(ctx, instance, member, row.id, str((row.params or {})["reason"]))
    else:
        check_evidence({member.allocation_id}, evidence)
        certify(ctx, instance, row, [member], evidence)


def _settle(ctx: Context, instance: Row[Any], row: Work, action: str) -> None:
    """The member goes where the operation's end leads, unless the last report has brought it there already."""
    member = member_row(ctx.tx, instance.id, row.target_id)
    if member.state != "removed":
        move_member(ctx, instance, member, action, operation_id=row.id)


def _check_all_ready(ctx: Context, instance: Row[Any]) -> None:
    waiting = [m for m in members_of(ctx.tx, instance.id) if m.state != "ready"]
    if waiting:
        first = waiting[0]
        raise MembersNotReady(f"The member {first.component_key} {first.ordinal} is {first.state}.")


def leave_failed(ctx: Context, instance: Row[Any], row: Work, health: str, sentence: str) -> None:
    """It failed, or nobody knows how it ended."""
    if KINDS[row.kind].target == OF_INSTANCE:
        _fail_unfinished(ctx, instance, row)
        said = {"health_status": health, "health_sentence": sentence}
        move_instance(ctx, instance, "fail", operation_id=row.id, **said)
    else:
        _settle(ctx, instance, row, "fail")


def leave_undone(ctx: Context, instance: Row[Any], row: Work, health: str, sentence: str) -> None:
    """Nothing was done, or all of it was taken back: the target is where it came from."""
    action = undone(row.kind, row.from_state)
    if KINDS[row.kind].target == OF_INSTANCE:
        _fail_unfinished(ctx, instance, row)
        said = {"health_status": health, "health_sentence": sentence}
        move_instance(ctx, instance, action, operation_id=row.id, **said)
        return
    member = member_row(ctx.tx, instance.id, row.target_id)
    if MEMBER.allows(member.state, action):  # otherwise its last report has said already where it is
        move_member(ctx, instance, member, action, operation_id=row.id)
    release_unused(ctx, instance.id)


def _fail_unfinished(ctx: Context, instance: Row[Any], row: Work) -> None:
    """Of a deploy that ended early: a retry begins with these again."""
    if row.kind == DEPLOY and row.claim_epoch:
        for member in members_of(ctx.tx, instance.id):
            if member.state in ("pending", "provisioning"):
                move_member(ctx, instance, member, "fail", operation_id=row.id)
