"""What is seen of a running instance between operations. Called by app controllers, through `observation_routes`.

There is no claim: nothing is changed by looking, and the last look counts. What an operation says goes before: an
observation made of another generation, before a newer operation, or while one changes the whole instance says nothing.
An equal observation writes nothing at all, so that looking every few seconds leaves no trace but news.
"""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..authz.context import Context
from ..catalog.reads import check_not_expired
from ..custody.vault import Vault
from . import assignment, certificates, schemas
from .access import worked_on
from .errors import NotObservable, ObservationOutdated, ObserverNotController
from .observation_schemas import MemberObservation, Observation, ObservedView
from .reads import instance_row, live_operations, member_row, members_of, work_row
from .reporting import checked_conditions
from .tables import instances, members
from .transitions import instance_facts

_SEEN_OF_MEMBER = {"runtime_state", "runtime_version", "adapter_detail"}


def anything_new(ctx: Context, project_id: str, instance_id: str, body: Observation) -> bool:
    instance = _observable(ctx, project_id, instance_id)
    _check_current(instance, body)
    return bool(_news(ctx, instance, body) or _member_news(ctx.tx, instance, body.members))


def observe(ctx: Context, project_id: str, instance_id: str, body: Observation) -> ObservedView | None:
    instance = _observable(ctx, project_id, instance_id, lock=True)
    _check_current(instance, body)
    news, of_members = _news(ctx, instance, body), _member_news(ctx.tx, instance, body.members)
    if not news and not of_members:
        return None
    ctx.resource_id = instance_id
    change = news | {"updated_at": ctx.now}
    ctx.tx.execute(update(instances).where(instances.c.id == instance_id).values(**change))
    for member, seen in of_members:
        _tell_member(ctx, instance, member, seen)
    if news:
        facts = {"operation_id": instance.last_operation_id, "state": instance.state}
        ctx.emit("apps.instance.updated", instance_id, instance_facts(instance) | facts)
    named = sorted({"health" if name.startswith("health_") else name for name in news})
    return ObservedView(instance_id=instance_id, changed=[*named, *(["members"] if of_members else [])])


def grant_access(
    ctx: Context, vault: Vault, project_id: str, instance_id: str, body: schemas.AskKeyAccess
) -> schemas.GrantView:
    """It ends with what makes the instance observable: `access.revoke_stale` looks every second."""
    instance = _observable(ctx, project_id, instance_id, lock=True)
    ctx.resource_id = instance_id
    if ctx.tx.execute(select(worked_on(body.allocation_id))).scalar():
        raise NotObservable("An operation works on this machine.")
    looked_at = work_row(ctx.tx, project_id, instance.last_operation_id)
    return certificates.grant(ctx, vault, instance, looked_at, body, purpose=certificates.OBSERVATION)


def _observable(ctx: Context, project_id: str, instance_id: str, *, lock: bool = False) -> Row[Any]:
    if ctx.principal.kind != "service_account":
        raise ObserverNotController("Only a service account says what it sees of an instance.")
    instance = instance_row(ctx.tx, project_id, instance_id, lock=lock)
    assignment.check_serves(ctx, instance)
    check_not_expired(ctx.tx, project_id, instance.app_slug, ctx.now)
    if instance.state != "running":
        raise NotObservable(f"The instance is {instance.state}.")
    return instance


def _check_current(instance: Row[Any], body: Observation) -> None:
    if body.observed_generation != instance.generation:
        raise ObservationOutdated(
            f"The instance is at generation {instance.generation}; {body.observed_generation} was looked at."
        )
    if body.last_operation_id != instance.last_operation_id:
        raise ObservationOutdated(f"{instance.last_operation_id} has come since the instance was looked at.")


def _news(ctx: Context, instance: Row[Any], body: Observation) -> dict[str, Any]:
    seen: dict[str, Any] = {"health_status": body.health.status, "health_sentence": body.health.sentence}
    if body.conditions:
        reported = {one["type"]: one for one in checked_conditions(ctx, instance, body.conditions)}
        kept = [reported.pop(one["type"], one) for one in instance.conditions]
        seen["conditions"] = [*kept, *reported.values()]
    if body.access is not None:
        seen["access"] = body.access
    if body.runtime_version is not None:
        seen["runtime_version"] = body.runtime_version
    if body.adapter_detail is not None:
        merged = (instance.adapter_detail or {}) | body.adapter_detail
        seen["adapter_detail"] = {key: value for key, value in merged.items() if value is not None}
    return {name: value for name, value in seen.items() if value != instance._mapping[name]}


def _member_news(
    tx: Connection, instance: Row[Any], seen: list[MemberObservation]
) -> list[tuple[Row[Any], dict[str, Any]]]:
    """Only what is new; what an operation of its own says of a member goes before."""
    there = {member.id: member for member in members_of(tx, instance.id)} if seen else {}
    busy = {id_ for one in live_operations(tx, instance.id) for id_ in (one.member_id, one.old_member_id)}
    news = []
    for one in seen:
        member = there.get(one.member_id) or member_row(tx, instance.id, one.member_id)
        said = one.model_dump(include=_SEEN_OF_MEMBER, exclude_none=True)
        new = {name: value for name, value in said.items() if value != member._mapping[name]}
        if new and member.state != "removed" and member.id not in busy:
            news.append((member, new))
    return news


def _tell_member(ctx: Context, instance: Row[Any], member: Row[Any], seen: dict[str, Any]) -> None:
    ctx.tx.execute(update(members).where(members.c.id == member.id).values(**seen, updated_at=ctx.now))
    facts = {"member_id": member.id, "component_key": member.component_key, "state": member.state}
    ctx.emit("apps.member.changed", member.id, instance_facts(instance) | facts)
