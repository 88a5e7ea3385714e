"""Operations of members: add, drain, undrain, restart, remove, replace. Each operation has one member, and operations
of different members run in parallel."""

from sqlalchemy import insert

from ..authz.context import Context
from ..catalog.admission import admit
from ..catalog.reads import version_row
from ..kit.ids import new_id
from ..kit.json_types import Json
from ..kit.rows import Command
from ..kit.wire import counted
from ..operations import recovery
from ..operations.errors import NotRetryable
from ..operations.reads import find_operation
from ..operations.rows import BatchId
from . import access, actions, schemas
from .placement import Allocation, Found, check_allocations, check_count, check_kept_for, hold, rules_of
from .plans import hosts_of, planned_for
from .reads import instance_row, live_operations, manifest_of, member_row, members_of, next_ordinal, staying_in
from .rows import InstanceRow, MemberId, MemberRow, Work
from .states import ADD, KINDS, REMOVE, REPLACE
from .tables import members
from .targets import queue_member_operation
from .transitions import instance_facts, move_member
from .views import accepted_view, batch_view

_NEW = Command(
    insert(members),
    (
        "id",
        "instance_id",
        "component_key",
        "ordinal",
        "state",
        "allocation_id",
        "node_id",
        "replaces",
        "correlation_id",
        "created_at",
        "updated_at",
    ),
)


def add_member(
    ctx: Context,
    instance: InstanceRow,
    component: str,
    ordinal: int,
    allocation: Allocation,
    replaces: str | None = None,
) -> MemberId:
    member_id = MemberId(new_id("mem"))
    values = {
        "id": member_id,
        "instance_id": instance.id,
        "component_key": component,
        "ordinal": ordinal,
        "state": "pending",
        "allocation_id": allocation.id,
        "node_id": allocation.node_id,
        "replaces": replaces,
        "correlation_id": ctx.correlation.correlation_id,
        "created_at": ctx.now,
        "updated_at": ctx.now,
    }
    _NEW.run(ctx.tx, **values)
    facts = {"member_id": member_id, "component_key": component, "allocation_id": allocation.id}
    ctx.emit("apps.member.added", member_id, {**instance_facts(instance), **facts})
    return member_id


def plan_add(ctx: Context, project_id: str, instance_id: str, body: schemas.AddMembers) -> schemas.PlannedView:
    instance, found = _check_add(ctx, project_id, instance_id, body)
    hosts = hosts_of({body.component_key: body.allocation_ids}, found)
    summary = f"Add {counted(len(hosts), body.component_key)} to {instance.name!r}, one operation each."
    return planned_for(ctx.tx, instance, summary, hosts)


def add(ctx: Context, project_id: str, instance_id: str, body: schemas.AddMembers) -> schemas.BatchView:
    """Add members and queue one operation for each; the operations run in parallel. Either all are accepted, or an
    error is raised."""
    instance, found = _check_add(ctx, project_id, instance_id, body, lock=True)
    ctx.resource_id = instance_id
    hold(ctx, instance, {body.component_key: body.allocation_ids}, found)
    first, batch_id = next_ordinal(ctx.tx, instance_id, body.component_key), BatchId(new_id("batch"))
    queued: list[Work] = []
    for ordinal, allocation in enumerate(body.allocation_ids, first):
        member_id = add_member(ctx, instance, body.component_key, ordinal, found[allocation])
        member = member_row(ctx.tx, instance_id, member_id)
        queued.append(queue_member_operation(ctx, instance, member, ADD, batch_id=batch_id))
    return batch_view(ctx.tx, batch_id, queued)


def _check_add(
    ctx: Context, project_id: str, instance_id: str, body: schemas.AddMembers, *, lock: bool = False
) -> tuple[InstanceRow, Found]:
    """Return the instance and the allocations, or raise an error if the members cannot be added. The request is checked
    before and after locking, because allocations must be locked before the instance."""
    _allowed_to_add(ctx, instance_row(ctx.tx, project_id, instance_id), body)
    found = check_allocations(ctx.tx, project_id, {body.component_key: body.allocation_ids}, lock=lock)
    instance = instance_row(ctx.tx, project_id, instance_id, lock=lock)
    _admit(ctx, instance, found)
    _allowed_to_add(ctx, instance, body)
    return instance, found


def _admit(ctx: Context, instance: InstanceRow, found: Found) -> None:
    """Raise an error if the entitlement or a policy does not allow new members. Existing members are not affected."""
    version = version_row(ctx.tx, instance.app_slug, instance.version)
    check_kept_for(version, found)
    admit(ctx, version, found.values())


def _allowed_to_add(ctx: Context, instance: InstanceRow, body: schemas.AddMembers) -> None:
    manifest, live = manifest_of(ctx.tx, instance), live_operations(ctx.tx, instance.id)
    if refusal := actions.adding(body.component_key, instance, manifest, live):
        raise refusal
    named = set(body.allocation_ids)  # one that is in use already gets its own problem when the machines are looked at
    there = [
        one.allocation_id
        for one in members_of(ctx.tx, instance.id)
        if one.component_key == body.component_key and one.allocation_id not in named
    ]
    rule = rules_of(manifest, instance.topology)[body.component_key]
    check_count(body.component_key, rule, [*there, *body.allocation_ids])


def ask(
    ctx: Context, project_id: str, instance_id: str, member_id: str, kind: str, params: Json
) -> schemas.AcceptedView:
    """Queue a drain, undrain or restart of a member."""
    instance, member = _allowed(ctx, project_id, instance_id, member_id, kind, lock=True)
    operation = queue_member_operation(ctx, instance, member, kind, params=_said(params))
    move_member(ctx, instance, member, KINDS[kind].ask or "", operation_id=operation.id)
    return accepted_view(ctx.tx, operation)


def ask_many(
    ctx: Context, project_id: str, instance_id: str, member_ids: list[str], kind: str, params: Json
) -> schemas.BatchView:
    """Queue a drain, undrain, restart or removal of each member under one batch id. Either all are accepted, or an
    error is raised."""
    batch_id = BatchId(new_id("batch"))
    queued: list[Work] = []
    for member_id in member_ids:
        instance, member = _allowed(ctx, project_id, instance_id, member_id, kind, lock=True)
        queued.append(queue_member_operation(ctx, instance, member, kind, params=_said(params), batch_id=batch_id))
        move_member(ctx, instance, member, KINDS[kind].ask or "", operation_id=queued[-1].id)
    ctx.resource_id = instance_id
    return batch_view(ctx.tx, batch_id, queued)


def _said(params: Json) -> Json | None:
    return {name: value for name, value in params.items() if value is not None} or None


def plan_remove(
    ctx: Context, project_id: str, instance_id: str, member_id: str, body: schemas.RemoveMember
) -> schemas.PlannedView:
    instance, member = _allowed(ctx, project_id, instance_id, member_id, REMOVE, gone=body.host_is_gone)
    if body.host_is_gone:
        access.check_gone(ctx, member, lock=False)
    hosts = hosts_of({member.component_key: [member.allocation_id]}, {member.allocation_id: member})
    summary = f"Remove {member.component_key}/{member.ordinal} of {instance.name!r} from {member.node_name}."
    if body.host_is_gone:
        summary = summary[:-1] + ", which is fenced, not cleaned, and gets an orphan record."
    return planned_for(ctx.tx, instance, summary, hosts)


def remove(
    ctx: Context, project_id: str, instance_id: str, member_id: str, body: schemas.RemoveMember
) -> schemas.AcceptedView:
    gone = body.host_is_gone
    if gone:
        _, member = _allowed(ctx, project_id, instance_id, member_id, REMOVE, gone=gone)
        access.check_gone(ctx, member, lock=True)
    instance, member = _allowed(ctx, project_id, instance_id, member_id, REMOVE, gone=gone, lock=True)
    operation = queue_member_operation(ctx, instance, member, REMOVE, params=_said(body.params))
    if gone:
        access.fence(ctx, instance, member, operation, body.reason or "")
    move_member(ctx, instance, member, KINDS[REMOVE].ask or "", operation_id=operation.id)
    return accepted_view(ctx.tx, operation)


def replace(
    ctx: Context, project_id: str, instance_id: str, member_id: str, body: schemas.ReplaceMember
) -> schemas.AcceptedView:
    """Add a member and queue one operation that provisions it and then removes the old member. If the machine of the
    old member is lost, the old member is removed first."""
    gone = body.host_is_gone
    _, old = _allowed(ctx, project_id, instance_id, member_id, REPLACE, gone=gone)
    if gone:
        access.check_gone(ctx, old, lock=True)
    found = check_allocations(ctx.tx, project_id, {"new": [body.allocation_id]}, lock=True)
    instance, old = _allowed(ctx, project_id, instance_id, member_id, REPLACE, gone=gone, lock=True)
    _admit(ctx, instance, found)
    hold(ctx, instance, {old.component_key: [body.allocation_id]}, found)
    ordinal = next_ordinal(ctx.tx, instance_id, old.component_key)
    allocation = found[body.allocation_id]
    fresh_id = add_member(ctx, instance, old.component_key, ordinal, allocation, replaces=old.id)
    fresh = member_row(ctx.tx, instance.id, fresh_id)
    details, params = {"old_member_id": old.id}, _said(body.params)
    operation = queue_member_operation(ctx, instance, fresh, REPLACE, params=params, details=details)
    if gone:
        access.fence(ctx, instance, old, operation, body.reason or "")
    return accepted_view(ctx.tx, operation)


def retry(
    ctx: Context, project_id: str, instance_id: str, member_id: str, *, anyway: bool = False
) -> schemas.AcceptedView:
    """Retry the member's newest operation. Raise NotRetryable if the member has none, or if it is an operation of the
    whole instance."""
    instance_row(ctx.tx, project_id, instance_id)
    member = member_row(ctx.tx, instance_id, member_id)
    last = find_operation(ctx.tx, member.last_operation_id)
    if last is None:
        raise NotRetryable("The member has no operation that could be retried.")
    if last.target_id != member_id:
        raise NotRetryable(f"Its newest operation, the {last.kind} {last.id}, is of the whole instance.")
    view = recovery.retry(ctx, project_id, last.id, anyway=anyway)
    return schemas.AcceptedView.model_validate(view)


def _allowed(
    ctx: Context,
    project_id: str,
    instance_id: str,
    member_id: str,
    kind: str,
    *,
    gone: bool = False,
    lock: bool = False,
) -> tuple[InstanceRow, MemberRow]:
    instance = instance_row(ctx.tx, project_id, instance_id, lock=lock)
    member = member_row(ctx.tx, instance_id, member_id)
    ctx.resource_id = member_id
    manifest = manifest_of(ctx.tx, instance)
    live, staying = live_operations(ctx.tx, instance_id), staying_in(ctx.tx, instance_id)
    if refusal := actions.of_member(kind, member, instance, manifest, live, staying, gone=gone):
        raise refusal
    return instance, member
