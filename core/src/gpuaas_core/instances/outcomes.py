"""Applies reports of a controller, and the end of an operation, to the instance and its members.

Reports contain states of members and observations of the instance. An operation leaves its target done, failed, undone
or unknown. Abandoning is the only way to end a teardown without evidence; it leaves an orphan record per machine. All
functions run under the instance's lock.
"""

from collections.abc import Iterable, Mapping

from ..authz.context import Context
from ..kit.lifecycle import WrongMoment
from ..teardown import orphans
from ..teardown.certificates import certify
from ..teardown.evidence import Evidence, check_clean, check_verifiable
from . import actions, schemas
from .errors import ConditionReserved, GenerationOutdated, MembersNotReady, OutcomeConflict
from .placement import release_unused
from .reads import instance_row, live_operations, member_row, members_by_id, members_of
from .rows import InstanceRow, MemberRow, StoredCondition, Work
from .states import (
    APPLIES_SPEC,
    DECOMMISSION,
    DEPLOY,
    INSTANCE,
    KINDS,
    MEMBER,
    NEW_VERSION,
    OF_INSTANCE,
    REMOVE,
    REPLACE,
    REPORTED,
    undone,
)
from .transitions import instance_facts, leaver_of, move_instance, move_member, subject_of

READY = ("Ready", "True")

# --- reports


def report_members(ctx: Context, instance: InstanceRow, row: Work, reports: list[schemas.MemberReport]) -> None:
    """Apply the reported states to the members; raise OutcomeConflict if the operation may not report one of them. Only
    the reported members are read, because an instance can have many."""
    known = members_by_id(ctx.tx, instance.id, [one.member_id for one in reports])
    for report in reports:
        member = known.get(report.member_id)
        if member is not None and member.state == "removed":
            if report.state == "removed" and member.last_operation_id == row.id:
                continue  # by this very operation, in an earlier report
            member = None
        if member is None or not _may_report(row, report):
            raise OutcomeConflict(f"{report.member_id!r} cannot be reported {report.state} by this {row.kind}.")
        more = report.model_dump(include={"runtime_state", "runtime_version", "adapter_detail"}, exclude_none=True)
        move_member(ctx, instance, member, REPORTED[report.state], more, operation_id=row.id)


def _may_report(row: Work, report: schemas.MemberReport) -> bool:
    """Whether the operation may report this state of this member. An operation of a member may report only on its own
    members; only a decommission, removal or replacement may report `removing` and `removed`."""
    leaving = {REMOVE: row.member_id, REPLACE: row.old_member_id}.get(row.kind)
    if report.state in ("removing", "removed"):
        return row.kind == DECOMMISSION or report.member_id == leaving
    return row.member_id is None or report.member_id in (row.member_id, row.old_member_id)


def seen_of_instance(ctx: Context, instance: InstanceRow, row: Work, body: schemas.Progress) -> dict[str, object]:
    """Return the instance columns that a progress report changes. An operation of a member changes the health of the
    instance only if its report has `health`."""
    health = body.health
    if health is None and KINDS[row.kind].target == OF_INSTANCE:
        health = schemas.Health(status="progressing", sentence=body.message)
    seen: dict[str, object] = {}
    if health:
        seen |= {"health_status": health.status, "health_sentence": health.sentence}
    if body.conditions:
        named = {one.type for one in body.conditions}
        others = [one for one in instance.conditions if one["type"] not in named]
        seen["conditions"] = [*others, *checked_conditions(ctx, instance, body.conditions)]
    return seen


def observed_of_instance(ctx: Context, instance: InstanceRow, row: Work, body: schemas.Complete) -> dict[str, object]:
    """Return the instance columns that the report of a success changes. An operation of a member changes only the
    columns that its report names."""
    whole = KINDS[row.kind].target == OF_INSTANCE
    health = body.health
    if health is None and whole:
        status = "unknown" if row.kind in (DECOMMISSION, "stop") else "healthy"
        health = schemas.Health(status=status, sentence=KINDS[row.kind].sentence)
    seen: dict[str, object] = {"conditions": checked_conditions(ctx, instance, body.conditions)}
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
    return {**seen, **detail, **_applied(instance, row, body), **_versions(instance, row)}


def _applied(instance: InstanceRow, row: Work, body: schemas.Complete) -> dict[str, object]:
    """Return the new `observed_generation`: the newest generation after an operation that applies the inputs, otherwise
    the reported one; empty if none was reported. Raise GenerationOutdated if the report does not fit."""
    newest, said = instance.generation, body.observed_generation
    if said is not None and (said > newest or (row.kind in APPLIES_SPEC and said < newest)):
        raise GenerationOutdated(f"The instance is at generation {newest}; the report is about {said}.")
    if row.kind in APPLIES_SPEC or row.kind == DECOMMISSION:
        return {"observed_generation": newest}
    return {} if said is None else {"observed_generation": max(said, instance.observed_generation)}


def _versions(instance: InstanceRow, row: Work) -> dict[str, object]:
    """Return the version columns that a successful upgrade or rollback changes; empty for other operations. Rolling
    back a failed upgrade changes no version."""
    if row.kind not in NEW_VERSION:
        return {}
    if row.to_version == instance.version:
        return {"version": instance.version}
    return {"version": row.to_version, "previous_version": row.from_version if row.kind == "upgrade" else None}


def checked_conditions(
    ctx: Context, instance: InstanceRow, reported: Iterable[schemas.Condition]
) -> list[StoredCondition]:
    before = {one["type"]: one for one in instance.conditions}
    result: list[StoredCondition] = []
    for condition in reported:
        _check_condition(instance, condition)
        known = before.get(condition.type)
        same = known is not None and known["status"] == condition.status
        since = known["last_transition_at"] if known is not None and same else ctx.now
        result.append(
            StoredCondition(
                type=condition.type,
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
                observed_generation=condition.observed_generation or instance.generation,
                last_transition_at=since,
            )
        )
    return result


def _check_condition(instance: InstanceRow, condition: schemas.Condition) -> None:
    """Raise an error for a condition that is reserved for the platform, is about a future generation, or reports
    `Ready` for an older generation."""
    if condition.type == "Stuck":
        raise ConditionReserved("`Stuck` is reported by the platform itself.")
    seen = condition.observed_generation
    outdated = seen is not None and seen < instance.generation and (condition.type, condition.status) == READY
    if outdated or (seen is not None and seen > instance.generation):
        raise GenerationOutdated(
            f"{condition.type}={condition.status} is about generation {seen}; the instance is at {instance.generation}."
        )


def _detail(adapter_detail: Mapping[str, object] | None) -> dict[str, object]:
    return {} if adapter_detail is None else {"adapter_detail": adapter_detail}


# --- ends


def finish_instance(
    ctx: Context, instance: InstanceRow, row: Work, evidence: Evidence, observed: Mapping[str, object]
) -> None:
    """Apply the success of an operation to the instance. Raise an error if a deploy has a member that is not ready, or
    a decommission has no evidence for one of the machines."""
    if row.kind == DECOMMISSION:
        gone = [one for one in members_of(ctx.tx, instance.id, removed=True) if one.last_operation_id == row.id]
        left = members_of(ctx.tx, instance.id)
        check_clean({member.allocation_id for member in (*gone, *left)}, evidence)
        for member in left:
            move_member(ctx, instance, member, "removed", operation_id=row.id)
        release_unused(ctx, instance.id)
        certify(ctx, subject_of(instance), row, map(leaver_of, [*gone, *left]), evidence)
    elif row.kind == DEPLOY:
        _check_all_ready(ctx, instance)
    move_instance(ctx, instance, KINDS[row.kind].done, observed, operation_id=row.id)


def finish_member(ctx: Context, instance: InstanceRow, row: Work, evidence: Evidence) -> None:
    if row.kind == REMOVE:
        _left(ctx, instance, row, member_row(ctx.tx, instance.id, row.target_id), evidence)
    _settle(ctx, instance, row, KINDS[row.kind].done)
    if row.kind == REPLACE:
        _remove_replaced(ctx, instance, row, evidence)
    release_unused(ctx, instance.id)


def _remove_replaced(ctx: Context, instance: InstanceRow, row: Work, evidence: Evidence) -> None:
    old = member_row(ctx.tx, instance.id, row.old_member_id or "")
    if old.state == "removed" and old.last_operation_id != row.id:
        return  # it was abandoned meanwhile
    _left(ctx, instance, row, old, evidence)
    if old.state == "removed":
        return
    if old.state != "removing":
        move_member(ctx, instance, old, "remove", operation_id=row.id)
        old = member_row(ctx.tx, instance.id, old.id)
    move_member(ctx, instance, old, "removed", operation_id=row.id)


def _left(ctx: Context, instance: InstanceRow, row: Work, member: MemberRow, evidence: Evidence) -> None:
    """Certify that the machine of a member that leaves is clean, with the evidence. A fenced machine gets an orphan
    record instead."""
    if actions.fences(row):
        check_verifiable({member.allocation_id}, evidence)
        orphans.record(ctx, subject_of(instance), leaver_of(member), row.id, str((row.params or {})["reason"]))
    else:
        certify(ctx, subject_of(instance), row, [leaver_of(member)], evidence)


def _settle(ctx: Context, instance: InstanceRow, row: Work, action: str) -> None:
    """Apply the transition `action` to the member of the operation, unless the member was removed already."""
    member = member_row(ctx.tx, instance.id, row.target_id)
    if member.state != "removed":
        move_member(ctx, instance, member, action, operation_id=row.id)


def _check_all_ready(ctx: Context, instance: InstanceRow) -> None:
    waiting = [m for m in members_of(ctx.tx, instance.id) if m.state != "ready"]
    if waiting:
        first = waiting[0]
        raise MembersNotReady(f"The member {first.component_key} {first.ordinal} is {first.state}.")


def leave_failed(ctx: Context, instance: InstanceRow, row: Work, health: str, sentence: str) -> None:
    """Mark the target as failed after an operation that failed or whose outcome is unknown."""
    if KINDS[row.kind].target == OF_INSTANCE:
        _fail_unfinished(ctx, instance, row)
        said = {"health_status": health, "health_sentence": sentence}
        move_instance(ctx, instance, "fail", said, operation_id=row.id)
    else:
        _settle(ctx, instance, row, "fail")


def leave_undone(ctx: Context, instance: InstanceRow, row: Work, health: str, sentence: str) -> None:
    """Return the target to its previous state after an operation that did nothing or was undone completely."""
    action = undone(row.kind, row.from_state)
    if KINDS[row.kind].target == OF_INSTANCE:
        _fail_unfinished(ctx, instance, row)
        said = {"health_status": health, "health_sentence": sentence}
        move_instance(ctx, instance, action, said, operation_id=row.id)
        return
    member = member_row(ctx.tx, instance.id, row.target_id)
    if MEMBER.allows(member.state, action):  # otherwise its last report has said already where it is
        move_member(ctx, instance, member, action, operation_id=row.id)
    release_unused(ctx, instance.id)


def _fail_unfinished(ctx: Context, instance: InstanceRow, row: Work) -> None:
    """Mark the unfinished members of a deploy that ended early as failed; a retry starts with these members. Do nothing
    for other operations, or if no controller had claimed the deploy."""
    if row.kind == DEPLOY and row.claim_epoch:
        for member in members_of(ctx.tx, instance.id):
            if member.state in ("pending", "provisioning"):
                move_member(ctx, instance, member, "fail", operation_id=row.id)


# --- abandoning


def abandon_instance(ctx: Context, instance: InstanceRow, row: Work, reason: str) -> None:
    INSTANCE.after(instance.state, "abandon")
    for member in members_of(ctx.tx, instance.id):
        abandon_member(ctx, instance, member, "abandon", row.id, reason)
    health = {"health_status": "unknown", "health_sentence": f"Abandoned without evidence: {reason}"}
    facts = {"operation_id": row.id, "reason": reason}
    ctx.emit("apps.instance.abandoned", instance.id, {**instance_facts(instance), **facts})
    move_instance(ctx, instance, "abandon", {"access": None, **health}, operation_id=row.id)


def tombstone(
    ctx: Context, project_id: str, instance_id: str, member_id: str, reason: str
) -> schemas.MemberRemovedView:
    """Mark a failed member as removed although its machine was not cleaned, and create an orphan record for the
    machine."""
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    member = member_row(ctx.tx, instance_id, member_id)
    ctx.resource_id, ctx.reason = member_id, f"{ctx.reason}; reason given: {reason}"
    if refusal := actions.tombstone(member, instance, live_operations(ctx.tx, instance_id)):
        raise refusal
    orphan_id = abandon_member(ctx, instance, member, "tombstone", None, reason)
    return schemas.MemberRemovedView(member_id=member_id, state="removed", orphan_id=orphan_id)


def abandon_member(
    ctx: Context, instance: InstanceRow, member: MemberRow, action: str, operation_id: str | None, reason: str
) -> str:
    facts = {"member_id": member.id, "component_key": member.component_key, "reason": reason}
    ctx.emit("apps.member.abandoned", member.id, {**instance_facts(instance), **facts})
    if MEMBER.allows(member.state, action):
        move_member(ctx, instance, member, action, operation_id=operation_id or member.last_operation_id)
    else:
        raise WrongMoment(f"The member is {member.state}: {action!r} is not possible now.")
    release_unused(ctx, instance.id)
    return orphans.record(ctx, subject_of(instance), leaver_of(member), operation_id, reason)
