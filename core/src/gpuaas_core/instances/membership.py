"""What people ask of members: add, drain, undrain, restart, remove, replace. One operation per member, side by side."""

from typing import Any

from sqlalchemy import Row, func, insert, select

from ..authz.context import Context
from ..catalog.admission import admit
from ..catalog.reads import version_row
from ..kit.ids import new_id
from ..kit.wire import View, counted
from ..operations import recovery
from ..operations.errors import NotRetryable
from ..operations.reads import find_operation
from . import actions, fencing, member_schemas, schemas
from .holds import hold
from .placement import check_allocations, check_count, check_kept_for, rules_of
from .plans import hosts_of, planned
from .reads import instance_row, live_operations, manifest_of, member_row, members_of, staying_in
from .states import ADD, KINDS, REMOVE, REPLACE
from .tables import members
from .targets import queue_member_operation
from .transitions import instance_facts, move_member
from .views import accepted_view, batch_view

Found = dict[str, Row[Any]]


def add_member(
    ctx: Context, instance: Row[Any], component: str, ordinal: int, allocation: Row[Any], replaces: str | None = None
) -> Row[Any]:
    values = {
        "id": new_id("mem"),
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
    ctx.tx.execute(insert(members).values(**values))
    facts = {"member_id": values["id"], "component_key": component, "allocation_id": allocation.id}
    ctx.emit("apps.member.added", values["id"], instance_facts(instance) | facts)
    return member_row(ctx.tx, instance.id, values["id"])


def plan_add(ctx: Context, project_id: str, instance_id: str, body: member_schemas.AddMembers) -> schemas.PlannedView:
    instance, found = _check_add(ctx, project_id, instance_id, body)
    hosts = hosts_of({body.component_key: body.allocation_ids}, found)
    summary = f"Add {counted(len(hosts), body.component_key)} to {instance.name!r}, one operation each."
    return planned(ctx.tx, summary, hosts, project_id, instance=instance)


def add(ctx: Context, project_id: str, instance_id: str, body: member_schemas.AddMembers) -> schemas.BatchView:
    """All of them or none; each has its own operation, and they go on beside each other."""
    instance, found = _check_add(ctx, project_id, instance_id, body, lock=True)
    ctx.resource_id = instance_id
    hold(ctx, instance, {body.component_key: body.allocation_ids}, found)
    first, batch_id = _next_ordinal(ctx, instance_id, body.component_key), new_id("batch")
    queued = []
    for ordinal, allocation in enumerate(body.allocation_ids, first):
        member = add_member(ctx, instance, body.component_key, ordinal, found[allocation])
        queued.append(queue_member_operation(ctx, instance, member, ADD, batch_id=batch_id))
    return batch_view(ctx.tx, batch_id, queued)


def _check_add(
    ctx: Context, project_id: str, instance_id: str, body: member_schemas.AddMembers, *, lock: bool = False
) -> tuple[Row[Any], Found]:
    """Looked at before the machines are locked, and again under the instance's own lock: that is the order of locks."""
    _allowed_to_add(ctx, instance_row(ctx.tx, project_id, instance_id), body)
    found = check_allocations(ctx.tx, project_id, {body.component_key: body.allocation_ids}, lock=lock)
    instance = instance_row(ctx.tx, project_id, instance_id, lock=lock)
    _admit(ctx, instance, found)
    _allowed_to_add(ctx, instance, body)
    return instance, found


def _admit(ctx: Context, instance: Row[Any], found: Found) -> None:
    """Growing asks policy and entitlement again: what runs stays, but it does not spread where it may not be."""
    version = version_row(ctx.tx, instance.app_slug, instance.version)
    check_kept_for(version, found)
    admit(ctx, version, found.values())


def _allowed_to_add(ctx: Context, instance: Row[Any], body: member_schemas.AddMembers) -> None:
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


def _next_ordinal(ctx: Context, instance_id: str, component: str) -> int:
    """Never one that was used before: names on hosts may be made of it."""
    mine = (members.c.instance_id == instance_id) & (members.c.component_key == component)
    highest = ctx.tx.execute(select(func.max(members.c.ordinal)).where(mine)).scalar()
    return 0 if highest is None else highest + 1


def ask(
    ctx: Context, project_id: str, instance_id: str, member_id: str, kind: str, params: dict[str, Any]
) -> schemas.AcceptedView:
    """Drain, undrain or restart."""
    instance, member = _allowed(ctx, project_id, instance_id, member_id, kind, lock=True)
    operation = queue_member_operation(ctx, instance, member, kind, params=_said(params))
    move_member(ctx, instance, member, KINDS[kind].ask or "", operation_id=operation.id)
    return accepted_view(ctx.tx, operation)


def ask_many(
    ctx: Context, project_id: str, instance_id: str, member_ids: list[str], kind: str, params: dict[str, Any]
) -> schemas.BatchView:
    """Drain, undrain, restart or remove: one operation each under one batch id; all of them, or none."""
    batch_id, queued = new_id("batch"), []
    for member_id in member_ids:
        instance, member = _allowed(ctx, project_id, instance_id, member_id, kind, lock=True)
        more = {"params": _said(params), "batch_id": batch_id}
        queued.append(queue_member_operation(ctx, instance, member, kind, **more))
        move_member(ctx, instance, member, KINDS[kind].ask or "", operation_id=queued[-1].id)
    ctx.resource_id = instance_id
    return batch_view(ctx.tx, batch_id, queued)


def _said(params: dict[str, Any]) -> dict[str, Any] | None:
    return {name: value for name, value in params.items() if value is not None} or None


def plan_remove(
    ctx: Context, project_id: str, instance_id: str, member_id: str, body: member_schemas.RemoveMember
) -> schemas.PlannedView:
    instance, member = _allowed(ctx, project_id, instance_id, member_id, REMOVE, gone=body.host_is_gone)
    if body.host_is_gone:
        fencing.check_gone(ctx, member, lock=False)
    hosts = hosts_of({member.component_key: [member.allocation_id]}, {member.allocation_id: member})
    summary = f"Remove {member.component_key}/{member.ordinal} of {instance.name!r} from {member.node_name}."
    if body.host_is_gone:
        summary = summary[:-1] + ", which is fenced, not cleaned, and gets an orphan record."
    return planned(ctx.tx, summary, hosts, project_id, instance=instance)


def remove(
    ctx: Context, project_id: str, instance_id: str, member_id: str, body: member_schemas.RemoveMember
) -> schemas.AcceptedView:
    gone = body.host_is_gone
    if gone:
        _, member = _allowed(ctx, project_id, instance_id, member_id, REMOVE, gone=gone)
        fencing.check_gone(ctx, member, lock=True)
    instance, member = _allowed(ctx, project_id, instance_id, member_id, REMOVE, gone=gone, lock=True)
    operation = queue_member_operation(ctx, instance, member, REMOVE, params=_said(body.params))
    if gone:
        fencing.fence(ctx, instance, member, operation, body.reason or "")
    move_member(ctx, instance, member, KINDS[REMOVE].ask or "", operation_id=operation.id)
    return accepted_view(ctx.tx, operation)


def replace(
    ctx: Context, project_id: str, instance_id: str, member_id: str, body: member_schemas.ReplaceMember
) -> schemas.AcceptedView:
    """One operation: the new member comes, then the old one goes; the other way round if its machine is gone."""
    gone = body.host_is_gone
    _, old = _allowed(ctx, project_id, instance_id, member_id, REPLACE, gone=gone)
    if gone:
        fencing.check_gone(ctx, old, lock=True)
    found = check_allocations(ctx.tx, project_id, {"new": [body.allocation_id]}, lock=True)
    instance, old = _allowed(ctx, project_id, instance_id, member_id, REPLACE, gone=gone, lock=True)
    _admit(ctx, instance, found)
    hold(ctx, instance, {old.component_key: [body.allocation_id]}, found)
    ordinal = _next_ordinal(ctx, instance_id, old.component_key)
    allocation = found[body.allocation_id]
    fresh = add_member(ctx, instance, old.component_key, ordinal, allocation, replaces=old.id)
    details, params = {"old_member_id": old.id}, _said(body.params)
    operation = queue_member_operation(ctx, instance, fresh, REPLACE, params=params, details=details)
    if gone:
        fencing.fence(ctx, instance, old, operation, body.reason or "")
    return accepted_view(ctx.tx, operation)


def retry(ctx: Context, project_id: str, instance_id: str, member_id: str, *, anyway: bool = False) -> View:
    """The member's own newest operation again."""
    instance_row(ctx.tx, project_id, instance_id)
    member = member_row(ctx.tx, instance_id, member_id)
    last = find_operation(ctx.tx, member.last_operation_id)
    if last is None:
        raise NotRetryable("The member has no operation that could be retried.")
    if last.target_id != member_id:
        raise NotRetryable(f"Its newest operation, the {last.kind} {last.id}, is of the whole instance.")
    return recovery.retry(ctx, project_id, last.id, anyway=anyway)


def _allowed(
    ctx: Context,
    project_id: str,
    instance_id: str,
    member_id: str,
    kind: str,
    *,
    gone: bool = False,
    lock: bool = False,
) -> tuple[Row[Any], Row[Any]]:
    instance = instance_row(ctx.tx, project_id, instance_id, lock=lock)
    member = member_row(ctx.tx, instance_id, member_id)
    ctx.resource_id = member_id
    manifest = manifest_of(ctx.tx, instance)
    live, staying = live_operations(ctx.tx, instance_id), staying_in(ctx.tx, instance_id)
    if refusal := actions.of_member(kind, member, instance, manifest, live, staying, gone=gone):
        raise refusal
    return instance, member
