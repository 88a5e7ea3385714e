"""Instances and members as targets of operations: what the engine's moves mean for them.

A member's operation shares the instance's lock key, so that members are worked on side by side; one of the instance, or
one that takes out a member whose machine is gone, has the key for itself. The lock behind the key is the instance's row
in both cases.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, exists, update

from ..authz.context import Context
from ..kit.problems import Problem
from ..operations import queue as engine
from ..operations.rows import Json, OperationRow
from ..operations.targets import Order, Target, Wire
from . import actions, schemas, views
from .abandonment import give_instance_up, give_member_up
from .departures import leave_machines
from .outcomes import finish_instance, finish_member, leave_failed, leave_undone
from .reads import (
    instance_row,
    live_operations,
    manifest_of,
    member_row,
    members_of,
    try_instance_row,
)
from .reporting import observed_of_instance, report_members, seen_of_instance
from .states import DECOMMISSION, DEPLOY, KINDS, OF_INSTANCE, OF_MEMBER, REMOVE, REPLACE
from .tables import instances, members
from .transitions import instance_facts, move_instance, move_member
from .work import Work, work_of

LEAVES = (DECOMMISSION, REMOVE, REPLACE)
HEALTH_OF_UNDONE = {"not_begun": "unknown", "canceled": "unhealthy", "refused": "degraded"}
_WIRE = Wire(
    operation=schemas.OperationView,
    claim=schemas.ClaimView,
    accepted=schemas.AcceptedView,
    progress=schemas.Progress,
    complete=schemas.Complete,
    fail=schemas.Fail,
)


def _order(
    tx: Connection, instance: Row[Any], target: Row[Any], kind: str, params: Json | None, details: Json | None
) -> Order:
    deadline_s, phase_s = actions.timing(manifest_of(tx, instance), kind)
    return Order(
        target_id=target.id,
        lock_key=instance.id,
        scope_kind="project",
        scope_id=instance.project_id,
        tenant_id=instance.tenant_id,
        payer_id=instance.project_id,
        app_slug=instance.app_slug,
        version=(details or {}).get("to_version") or instance.version,
        from_state=target.state,
        assigned_to=instance.operator_id,
        deadline_s=deadline_s,
        phase_s=phase_s,
        shares_lock=KINDS[kind].target == OF_MEMBER and not (params or {}).get("host_is_gone"),
    )


def _details(operation: OperationRow) -> dict[str, Any]:
    work = work_of(operation)
    names = ("instance_id", "member_id", "old_member_id", "from_version", "to_version")
    return {name: getattr(work, name) for name in names}


def _claimed_view(tx: Connection, instance: Row[Any]) -> dict[str, Any]:
    """With the first members; `members_total` says whether the list of members has more."""
    return {"instance": views.instance_view(tx, instance)}


def _last_report(ctx: Context, instance: Row[Any], work: Work, report: schemas.Complete | schemas.Fail) -> None:
    if work.kind in LEAVES and isinstance(report, schemas.Complete):
        leave_machines(ctx, work)
    report_members(ctx, instance, work, report.members)


def _write(ctx: Context, instance: Row[Any], change: dict[str, Any]) -> None:
    ctx.tx.execute(update(instances).where(instances.c.id == instance.id).values(**change, updated_at=ctx.now))


class InstanceTarget(Target[Row[Any]]):
    kind = OF_INSTANCE
    operation_kinds = MappingProxyType({name: one for name, one in KINDS.items() if one.target == OF_INSTANCE})
    wire = _WIRE

    def read(self, tx: Connection, operation: OperationRow) -> Row[Any]:
        return instance_row(tx, operation.scope_id, operation.target_id)

    def lock(self, tx: Connection, operation: OperationRow) -> Row[Any]:
        return instance_row(tx, operation.scope_id, operation.target_id, lock=True)

    def try_lock(self, tx: Connection, operation: OperationRow) -> Row[Any] | None:
        return try_instance_row(tx, operation.scope_id, operation.target_id)

    def order(self, tx: Connection, row: Row[Any], kind: str, params: Json | None, details: Json | None) -> Order:
        return _order(tx, row, row, kind, params, details)

    def facts(self, row: Row[Any], operation: OperationRow) -> dict[str, Any]:
        return instance_facts(row)

    def allocations(self, tx: Connection, row: Row[Any]) -> set[str]:
        return {member.allocation_id for member in members_of(tx, row.id)}

    def refers_to(self, operation_id: ColumnElement[str]) -> ColumnElement[bool]:
        return exists().where(instances.c.last_operation_id == operation_id, instances.c.state != "deleted")

    def operation_details(self, operation: OperationRow) -> dict[str, Any]:
        return _details(operation)

    def controller_view(self, tx: Connection, row: Row[Any], operation: OperationRow) -> dict[str, Any]:
        return _claimed_view(tx, row)

    def accepted_view(self, tx: Connection, operation: OperationRow) -> schemas.AcceptedView:
        return views.accepted_view(tx, operation)

    def on_queued(self, ctx: Context, row: Row[Any], operation: OperationRow) -> None:
        _write(ctx, row, {"last_operation_id": operation.id})

    def on_claimed(self, ctx: Context, row: Row[Any], operation: OperationRow) -> Row[Any]:
        return move_instance(ctx, row, "claim", operation_id=operation.id)

    def changed_by(self, operation: OperationRow, report: Any) -> bool:
        """A new message is the instance's health sentence while it is worked on."""
        return bool(report.members or report.health or report.conditions) or report.message != operation.message

    def on_progress(self, ctx: Context, row: Row[Any], operation: OperationRow, report: Any) -> None:
        work = work_of(operation)
        report_members(ctx, row, work, report.members)
        _write(ctx, row, seen_of_instance(ctx, row, work, report))

    def on_last_report(self, ctx: Context, row: Row[Any], operation: OperationRow, report: Any) -> None:
        _last_report(ctx, row, work_of(operation), report)

    def on_succeeded(self, ctx: Context, row: Row[Any], operation: OperationRow, report: Any) -> None:
        work = work_of(operation)
        observed = observed_of_instance(ctx, row, work, report)
        finish_instance(ctx, row, work, report.evidence, **observed)

    def on_failed(self, ctx: Context, row: Row[Any], operation: OperationRow, message: str, *, known: bool) -> None:
        leave_failed(ctx, row, work_of(operation), "unhealthy" if known else "unknown", message)

    def on_undone(self, ctx: Context, row: Row[Any], operation: OperationRow, message: str, *, why: str) -> None:
        leave_undone(ctx, row, work_of(operation), HEALTH_OF_UNDONE[why], message)

    def on_retried(self, ctx: Context, row: Row[Any], old: OperationRow, new: OperationRow) -> None:
        health = {"health_status": "progressing", "health_sentence": "Trying again"}
        move_instance(ctx, row, actions.again(old.kind, row.state) or "", operation_id=new.id, **health)
        for one in members_of(ctx.tx, row.id):
            if one.state == "failed" and old.kind == DEPLOY:
                move_member(ctx, row, one, "retry", operation_id=new.id)

    def on_abandoned(self, ctx: Context, row: Row[Any], operation: OperationRow, reason: str) -> None:
        if operation.kind == DECOMMISSION:
            give_instance_up(ctx, row, work_of(operation), reason)
        else:
            message = f"The {operation.kind} was abandoned: {reason}"
            leave_failed(ctx, row, work_of(operation), "unknown", message)

    def refuse_retry(self, tx: Connection, row: Row[Any], operation: OperationRow) -> Problem | None:
        return actions.retry(work_of(operation), row, None, live_operations(tx, row.id))

    def refuse_abandon(self, tx: Connection, row: Row[Any], operation: OperationRow) -> Problem | None:
        return actions.abandon(work_of(operation), row, None)


@dataclass(frozen=True)
class Placed:
    """A member with the instance it is part of."""

    instance: Row[Any]
    member: Row[Any]


class MemberTarget(Target[Placed]):
    kind = OF_MEMBER
    operation_kinds = MappingProxyType({name: one for name, one in KINDS.items() if one.target == OF_MEMBER})
    wire = _WIRE

    def read(self, tx: Connection, operation: OperationRow) -> Placed:
        return self._placed(tx, operation, instance_row(tx, operation.scope_id, operation.lock_key))

    def lock(self, tx: Connection, operation: OperationRow) -> Placed:
        return self._placed(tx, operation, instance_row(tx, operation.scope_id, operation.lock_key, lock=True))

    def try_lock(self, tx: Connection, operation: OperationRow) -> Placed | None:
        instance = try_instance_row(tx, operation.scope_id, operation.lock_key)
        return None if instance is None else self._placed(tx, operation, instance)

    def _placed(self, tx: Connection, operation: OperationRow, instance: Row[Any]) -> Placed:
        return Placed(instance, member_row(tx, instance.id, operation.target_id))

    def order(self, tx: Connection, row: Placed, kind: str, params: Json | None, details: Json | None) -> Order:
        return _order(tx, row.instance, row.member, kind, params, details)

    def facts(self, row: Placed, operation: OperationRow) -> dict[str, Any]:
        return instance_facts(row.instance) | {"member_id": row.member.id}

    def allocations(self, tx: Connection, row: Placed) -> set[str]:
        """Of all members: work on one of them reaches the others, e.g. to tell them of a new one."""
        return {member.allocation_id for member in members_of(tx, row.instance.id)}

    def refers_to(self, operation_id: ColumnElement[str]) -> ColumnElement[bool]:
        return exists().where(members.c.last_operation_id == operation_id, members.c.state != "removed")

    def operation_details(self, operation: OperationRow) -> dict[str, Any]:
        return _details(operation)

    def controller_view(self, tx: Connection, row: Placed, operation: OperationRow) -> dict[str, Any]:
        return _claimed_view(tx, row.instance)

    def accepted_view(self, tx: Connection, operation: OperationRow) -> schemas.AcceptedView:
        return views.accepted_view(tx, operation)

    def on_queued(self, ctx: Context, row: Placed, operation: OperationRow) -> None:
        change = {"last_operation_id": operation.id, "updated_at": ctx.now}
        ctx.tx.execute(update(members).where(members.c.id == row.member.id).values(**change))

    def on_claimed(self, ctx: Context, row: Placed, operation: OperationRow) -> Placed:
        begin = KINDS[operation.kind].begin
        if begin is None:
            return row
        move_member(ctx, row.instance, row.member, begin, operation_id=operation.id)
        return replace(row, member=member_row(ctx.tx, row.instance.id, row.member.id))

    def changed_by(self, operation: OperationRow, report: Any) -> bool:
        return bool(report.members or report.health or report.conditions)

    def on_progress(self, ctx: Context, row: Placed, operation: OperationRow, report: Any) -> None:
        work = work_of(operation)
        report_members(ctx, row.instance, work, report.members)
        _write(ctx, row.instance, seen_of_instance(ctx, row.instance, work, report))

    def on_last_report(self, ctx: Context, row: Placed, operation: OperationRow, report: Any) -> None:
        _last_report(ctx, row.instance, work_of(operation), report)

    def on_succeeded(self, ctx: Context, row: Placed, operation: OperationRow, report: Any) -> None:
        work = work_of(operation)
        observed = observed_of_instance(ctx, row.instance, work, report)
        finish_member(ctx, row.instance, work, report.evidence)
        if observed:
            _write(ctx, row.instance, observed)

    def on_failed(self, ctx: Context, row: Placed, operation: OperationRow, message: str, *, known: bool) -> None:
        leave_failed(ctx, row.instance, work_of(operation), "unhealthy" if known else "unknown", message)

    def on_undone(self, ctx: Context, row: Placed, operation: OperationRow, message: str, *, why: str) -> None:
        leave_undone(ctx, row.instance, work_of(operation), HEALTH_OF_UNDONE[why], message)

    def on_retried(self, ctx: Context, row: Placed, old: OperationRow, new: OperationRow) -> None:
        action = actions.again(old.kind, row.member.state) or ""
        move_member(ctx, row.instance, row.member, action, operation_id=new.id)

    def on_abandoned(self, ctx: Context, row: Placed, operation: OperationRow, reason: str) -> None:
        if operation.kind == REMOVE:
            give_member_up(ctx, row.instance, row.member, "abandon", operation.id, reason)
        else:
            message = f"The {operation.kind} was abandoned: {reason}"
            leave_failed(ctx, row.instance, work_of(operation), "unknown", message)

    def refuse_retry(self, tx: Connection, row: Placed, operation: OperationRow) -> Problem | None:
        return actions.retry(work_of(operation), row.instance, row.member, live_operations(tx, row.instance.id))

    def refuse_abandon(self, tx: Connection, row: Placed, operation: OperationRow) -> Problem | None:
        return actions.abandon(work_of(operation), row.instance, row.member)


INSTANCE_TARGET, MEMBER_TARGET = InstanceTarget(), MemberTarget()


def queue_operation(
    ctx: Context, instance: Row[Any], kind: str, *, params: Json | None = None, details: Json | None = None
) -> Work:
    """`details`: of another version, `from_version` and `to_version`."""
    return work_of(engine.queue(ctx, INSTANCE_TARGET, instance, kind, params=params, details=details))


def queue_member_operation(
    ctx: Context,
    instance: Row[Any],
    member: Row[Any],
    kind: str,
    *,
    params: Json | None = None,
    details: Json | None = None,
    batch_id: str | None = None,
) -> Work:
    """`details`: of a replacement, `old_member_id`."""
    row = Placed(instance, member)
    more = {"params": params, "details": details, "batch_id": batch_id}
    return work_of(engine.queue(ctx, MEMBER_TARGET, row, kind, **more))
