"""Observations of a running instance between operations. App controllers report them through `routes`.

Observing needs no claim: it changes nothing on the machines, and the latest observation is stored. Reports of
operations take precedence: an observation is rejected if it is about another generation, was made before a newer
operation, or if an operation changes the whole instance. An observation without changes writes nothing, so controllers
can observe every few seconds.
"""

from sqlalchemy import Connection, select

from ..authz.context import Context
from ..catalog.reads import check_not_expired
from ..custody.vault import Vault
from ..iam.directory import find_account, is_enabled
from ..iam.explain import explain_other
from ..kit.problems import Problem
from ..machine_access import certificates, grants
from ..machine_access.authorities import OBSERVER_CERTIFICATE_S
from ..machine_access.rows import Reason
from ..machine_access.schemas import AskKeyAccess, GrantView
from ..operations.reads import enabled_claimants, has_claimed
from .access import OBSERVATION, worked_on
from .errors import NotObservable, ObservationOutdated, ObserverNotController
from .outcomes import checked_conditions
from .reads import instance_row, live_operations, member_row, members_of, work_row
from .rows import InstanceRow, MemberRow
from .schemas import MemberObservation, Observation, ObservedView
from .states import OF_INSTANCE
from .transitions import instance_facts, write_instance, write_member

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
    write_instance(ctx, instance, news)
    for member, seen in of_members:
        _write_member(ctx, instance, member, seen)
    if news:
        facts = {"operation_id": instance.last_operation_id, "state": instance.state}
        ctx.emit("apps.instance.updated", instance_id, {**instance_facts(instance), **facts})
    named = sorted({"health" if name.startswith("health_") else name for name in news})
    return ObservedView(instance_id=instance_id, changed=[*named, *(["members"] if of_members else [])])


def grant_access(ctx: Context, vault: Vault, project_id: str, instance_id: str, body: AskKeyAccess) -> GrantView:
    """Issue an SSH certificate to observe one machine of the instance. The certificate ends after an hour, or when the
    instance can no longer be observed.

    Observing is continuous, so it emits no event, and writes one audit row per machine, service account and day.
    """
    instance = _observable(ctx, project_id, instance_id, lock=True)
    ctx.resource_id = instance_id
    if ctx.tx.execute(select(worked_on(body.allocation_id))).scalar():
        raise NotObservable("An operation works on this machine.")
    looked_at = work_row(ctx.tx, project_id, instance.last_operation_id or "")
    serving = {member.allocation_id for member in members_of(ctx.tx, instance_id)}
    allocation = certificates.allocation_serving(ctx, serving, body.allocation_id)
    if grants.first_today(ctx, allocation.id, OBSERVATION):
        ctx.note(ctx.entry("allowed", f"{ctx.reason}; to observe {allocation.node_name} on this day"))
    reason = Reason(
        purpose=OBSERVATION,
        operation_id=looked_at.id,
        claim_epoch=looked_at.claim_epoch,
        subject_kind=OF_INSTANCE,
        subject_id=instance_id,
    )
    return certificates.give(ctx, vault, allocation, body, reason, lives_s=OBSERVER_CERTIFICATE_S)


def _observable(ctx: Context, project_id: str, instance_id: str, *, lock: bool = False) -> InstanceRow:
    if ctx.principal.kind != "service_account":
        raise ObserverNotController("Only a service account says what it sees of an instance.")
    instance = instance_row(ctx.tx, project_id, instance_id, lock=lock)
    check_serves(ctx, instance)
    check_not_expired(ctx.tx, project_id, instance.app_slug, ctx.now)
    if instance.state != "running":
        raise NotObservable(f"The instance is {instance.state}.")
    return instance


def _check_current(instance: InstanceRow, body: Observation) -> None:
    if body.observed_generation != instance.generation:
        raise ObservationOutdated(
            f"The instance is at generation {instance.generation}; {body.observed_generation} was looked at."
        )
    if body.last_operation_id != instance.last_operation_id:
        raise ObservationOutdated(f"{instance.last_operation_id} has come since the instance was looked at.")


def _news(ctx: Context, instance: InstanceRow, body: Observation) -> dict[str, object]:
    seen: dict[str, object] = {"health_status": body.health.status, "health_sentence": body.health.sentence}
    if body.conditions:
        reported = {one["type"]: one for one in checked_conditions(ctx, instance, body.conditions)}
        kept = [reported.pop(one["type"], one) for one in instance.conditions]
        seen["conditions"] = [*kept, *reported.values()]
    if body.access is not None:
        seen["access"] = body.access
    if body.runtime_version is not None:
        seen["runtime_version"] = body.runtime_version
    if body.adapter_detail is not None:
        merged = {**(instance.adapter_detail or {}), **body.adapter_detail}
        seen["adapter_detail"] = {key: value for key, value in merged.items() if value is not None}
    return {name: value for name, value in seen.items() if value != getattr(instance, name)}


def _member_news(
    tx: Connection, instance: InstanceRow, seen: list[MemberObservation]
) -> list[tuple[MemberRow, dict[str, object]]]:
    """Return the members whose observed fields changed, each with the changed fields. Removed members and members that
    an operation works on are omitted."""
    there: dict[str, MemberRow] = {member.id: member for member in members_of(tx, instance.id)} if seen else {}
    busy = {id_ for one in live_operations(tx, instance.id) for id_ in (one.member_id, one.old_member_id)}
    news: list[tuple[MemberRow, dict[str, object]]] = []
    for one in seen:
        member = there.get(one.member_id) or member_row(tx, instance.id, one.member_id)
        said = one.model_dump(include=_SEEN_OF_MEMBER, exclude_none=True)
        new = {name: value for name, value in said.items() if value != getattr(member, name)}
        if new and member.state != "removed" and member.id not in busy:
            news.append((member, new))
    return news


def _write_member(ctx: Context, instance: InstanceRow, member: MemberRow, seen: dict[str, object]) -> None:
    write_member(ctx, member, seen)
    facts = {"member_id": member.id, "component_key": member.component_key, "state": member.state}
    ctx.emit("apps.member.changed", member.id, {**instance_facts(instance), **facts})


WORKS = "apps.operation.work"


class OperatorUnusable(Problem):
    status, code, title = 422, "operator_unusable", "This service account cannot operate the instance"
    way_out = (
        "Choose an enabled service account with the role app_operator (`gpuaas service-account list`), or omit the "
        "operator."
    )


def check_usable(ctx: Context, project_id: str, account_id: str | None) -> None:
    if account_id is None:
        return
    account = find_account(ctx.tx, project_id, account_id)
    if account is None:
        raise OperatorUnusable(f"{account_id!r} is not a service account of this project.")
    if account.disabled_at is not None:
        raise OperatorUnusable(f"The service account {account.name!r} is disabled.")
    found = explain_other(ctx.tx, account_id, WORKS, ctx.scope, ctx.now)
    if not found.allowed:
        raise OperatorUnusable(f"The service account {account.name!r} may not work on operations: {found.reason}.")


def check_serves(ctx: Context, instance: InstanceRow) -> None:
    if instance.operator_id is not None and is_enabled(ctx.tx, instance.operator_id):
        if instance.operator_id != ctx.principal.id:
            raise ObserverNotController("This instance is operated by another service account.")
    elif not _works_for_app(ctx, instance):
        app = instance.app_slug
        raise ObserverNotController(
            f"{ctx.principal.name} has claimed no operation of {app!r} in this project; other accounts operate the app."
        )


def _works_for_app(ctx: Context, instance: InstanceRow) -> bool:
    of_app = (ctx.tx, instance.project_id, instance.app_slug)
    if has_claimed(*of_app, ctx.principal.id):
        return True
    may_work = (explain_other(ctx.tx, other, WORKS, ctx.scope, ctx.now) for other in enabled_claimants(*of_app))
    return not any(found.allowed for found in may_work)
