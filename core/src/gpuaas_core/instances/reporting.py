"""What a controller's reports say of an instance and its members. Called by the targets, under the instance's lock."""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from . import schemas
from .errors import ConditionReserved, GenerationOutdated, OutcomeConflict
from .reads import members_by_id
from .states import APPLIES_SPEC, DECOMMISSION, KINDS, NEW_VERSION, OF_INSTANCE, REMOVE, REPLACE, REPORTED
from .transitions import move_member
from .work import Work

READY = ("Ready", "True")


def report_members(ctx: Context, instance: Row[Any], row: Work, reports: list[schemas.MemberReport]) -> None:
    """Only the members that the report names are read: an instance can have many more."""
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
        move_member(ctx, instance, member, REPORTED[report.state], operation_id=row.id, **more)


def _may_report(row: Work, report: schemas.MemberReport) -> bool:
    """Work on one member reports on that one (beside it others are worked on); only what removes says removed."""
    leaving = {REMOVE: row.member_id, REPLACE: row.old_member_id}.get(row.kind)
    if report.state in ("removing", "removed"):
        return row.kind == DECOMMISSION or report.member_id == leaving
    return row.member_id is None or report.member_id in (row.member_id, row.old_member_id)


def seen_of_instance(ctx: Context, instance: Row[Any], row: Work, body: schemas.Progress) -> dict[str, Any]:
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


def observed_of_instance(ctx: Context, instance: Row[Any], row: Work, body: schemas.Complete) -> dict[str, Any]:
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


def _applied(instance: Row[Any], row: Work, body: schemas.Complete) -> dict[str, Any]:
    """Which generation runs now: the newest after a change of the spec, otherwise only what the controller says."""
    newest, said = instance.generation, body.observed_generation
    if said is not None and (said > newest or (row.kind in APPLIES_SPEC and said < newest)):
        raise GenerationOutdated(f"The instance is at generation {newest}; the report is about {said}.")
    if row.kind in APPLIES_SPEC or row.kind == DECOMMISSION:
        return {"observed_generation": newest}
    return {} if said is None else {"observed_generation": max(said, instance.observed_generation)}


def _versions(instance: Row[Any], row: Work) -> dict[str, Any]:
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


def _detail(adapter_detail: dict[str, Any] | None) -> dict[str, Any]:
    return {} if adapter_detail is None else {"adapter_detail": adapter_detail}
