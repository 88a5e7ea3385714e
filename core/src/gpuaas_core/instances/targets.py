"""Instances and members as targets of operations: how the transitions of an operation change its instance or member.

Operations of members share the instance's lock key, so they run in parallel. An operation of the instance, or one that
removes a member whose machine is lost, has the key exclusively. In both cases the lock itself is the instance's row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sqlalchemy import ColumnElement, Connection, exists

from ..authz.context import Context
from ..kit.json_types import Json
from ..kit.problems import Problem
from ..operations import queue as engine
from ..operations import schemas as engine_schemas
from ..operations.rows import OperationId, OperationRow
from ..operations.targets import Order, Subject, SubjectId, SubjectReader, Target, Wire
from ..teardown.certificates import leave_machines
from . import actions, schemas, views
from .access import fenced_by
from .outcomes import (
    abandon_instance,
    abandon_member,
    finish_instance,
    finish_member,
    leave_failed,
    leave_undone,
    observed_of_instance,
    report_members,
    seen_of_instance,
)
from .reads import (
    find_instance,
    instance_names,
    instance_row,
    known_instances,
    known_members,
    manifest_of,
    member_row,
    members_of,
    try_instance_row,
)
from .rows import InstanceId, InstanceRow, MemberId, MemberRow, Work, work_of
from .states import DECOMMISSION, DEPLOY, KINDS, OF_INSTANCE, OF_MEMBER, REMOVE, REPLACE
from .tables import instances, members
from .transitions import instance_facts, move_instance, move_member, subject_of, write_instance, write_member

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
    tx: Connection,
    instance: InstanceRow,
    target: InstanceRow | MemberRow,
    kind: str,
    params: Json | None,
    details: Json | None,
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
        version=str((details or {}).get("to_version") or instance.version),
        from_state=target.state,
        assigned_to=instance.operator_id,
        deadline_s=deadline_s,
        phase_s=phase_s,
        shares_lock=KINDS[kind].target == OF_MEMBER and not (params or {}).get("host_is_gone"),
    )


def _details(operation: OperationRow) -> dict[str, str | None]:
    work = work_of(operation)
    return {
        "instance_id": work.instance_id,
        "member_id": work.member_id,
        "old_member_id": work.old_member_id,
        "from_version": work.from_version,
        "to_version": work.to_version,
    }


def _claimed_view(tx: Connection, instance: InstanceRow) -> dict[str, object]:
    """Return the instance for a controller, with its first members. `members_total` shows whether there are more."""
    return {"instance": views.instance_view(tx, instance)}


def _last_report(
    ctx: Context, instance: InstanceRow, work: Work, report: engine_schemas.Complete | engine_schemas.Fail
) -> None:
    if work.kind in LEAVES and isinstance(report, schemas.Complete):
        leave_machines(ctx, work.id)
    if isinstance(report, schemas.Complete | schemas.Fail):
        report_members(ctx, instance, work, report.members)


def _progress(report: engine_schemas.Progress) -> schemas.Progress:
    """Return the report as a progress report of an instance; raise TypeError if it has another type."""
    if not isinstance(report, schemas.Progress):
        raise TypeError(f"{type(report).__name__} is no progress of an instance.")
    return report


def _complete(report: engine_schemas.Complete) -> schemas.Complete:
    if not isinstance(report, schemas.Complete):
        raise TypeError(f"{type(report).__name__} is no end of an operation on an instance.")
    return report


def _changes(report: schemas.Progress) -> bool:
    return bool(report.members or report.health or report.conditions)


def _progressed(ctx: Context, instance: InstanceRow, work: Work, report: schemas.Progress) -> None:
    report_members(ctx, instance, work, report.members)
    write_instance(ctx, instance, seen_of_instance(ctx, instance, work, report))


class InstanceTarget(Target[InstanceRow]):
    kind = OF_INSTANCE
    operation_kinds = MappingProxyType({name: one for name, one in KINDS.items() if one.target == OF_INSTANCE})
    wire = _WIRE

    def read(self, tx: Connection, operation: OperationRow) -> InstanceRow:
        return instance_row(tx, operation.scope_id, operation.target_id)

    def read_many(self, tx: Connection, operations: Sequence[OperationRow]) -> Mapping[OperationId, InstanceRow]:
        found = known_instances(tx, {operation.target_id for operation in operations})
        return {operation.id: found[InstanceId(operation.target_id)] for operation in operations}

    def lock(self, tx: Connection, operation: OperationRow) -> InstanceRow:
        return instance_row(tx, operation.scope_id, operation.target_id, lock=True)

    def try_lock(self, tx: Connection, operation: OperationRow) -> InstanceRow | None:
        return try_instance_row(tx, operation.scope_id, operation.target_id)

    def order(self, tx: Connection, row: InstanceRow, kind: str, params: Json | None, details: Json | None) -> Order:
        return _order(tx, row, row, kind, params, details)

    def facts(self, row: InstanceRow, operation: OperationRow) -> Json:
        return instance_facts(row)

    def allocations(self, tx: Connection, row: InstanceRow) -> set[str]:
        return {member.allocation_id for member in members_of(tx, row.id)}

    def fenced(self, tx: Connection, row: InstanceRow, operation: OperationRow) -> set[str]:
        return fenced_by(tx, work_of(operation))

    def refers_to(self, operation_id: ColumnElement[str]) -> ColumnElement[bool]:
        return exists().where(instances.c.last_operation_id == operation_id, instances.c.state != "deleted")

    def operation_details(self, operation: OperationRow) -> Mapping[str, object]:
        return _details(operation)

    def controller_view(self, tx: Connection, row: InstanceRow, operation: OperationRow) -> Mapping[str, object]:
        return _claimed_view(tx, row)

    def accepted_view(self, tx: Connection, operation: OperationRow) -> schemas.AcceptedView:
        return views.accepted_view(tx, operation)

    def on_queued(self, ctx: Context, row: InstanceRow, operation: OperationRow) -> None:
        write_instance(ctx, row, {"last_operation_id": operation.id})

    def on_claimed(self, ctx: Context, row: InstanceRow, operation: OperationRow) -> InstanceRow:
        return move_instance(ctx, row, "claim", operation_id=operation.id)

    def changed_by(self, operation: OperationRow, report: engine_schemas.Progress) -> bool:
        """Whether the report changes the instance. A new message does, because it becomes the health sentence of the
        instance."""
        return _changes(_progress(report)) or report.message != operation.message

    def on_progress(
        self, ctx: Context, row: InstanceRow, operation: OperationRow, report: engine_schemas.Progress
    ) -> None:
        _progressed(ctx, row, work_of(operation), _progress(report))

    def on_last_report(
        self,
        ctx: Context,
        row: InstanceRow,
        operation: OperationRow,
        report: engine_schemas.Complete | engine_schemas.Fail,
    ) -> None:
        _last_report(ctx, row, work_of(operation), report)

    def on_succeeded(
        self, ctx: Context, row: InstanceRow, operation: OperationRow, report: engine_schemas.Complete
    ) -> None:
        work = work_of(operation)
        observed = observed_of_instance(ctx, row, work, _complete(report))
        finish_instance(ctx, row, work, report.evidence, observed)

    def on_failed(self, ctx: Context, row: InstanceRow, operation: OperationRow, message: str, *, known: bool) -> None:
        leave_failed(ctx, row, work_of(operation), "unhealthy" if known else "unknown", message)

    def on_undone(self, ctx: Context, row: InstanceRow, operation: OperationRow, message: str, *, why: str) -> None:
        leave_undone(ctx, row, work_of(operation), HEALTH_OF_UNDONE[why], message)

    def on_retried(self, ctx: Context, row: InstanceRow, old: OperationRow, new: OperationRow) -> None:
        health = {"health_status": "progressing", "health_sentence": "Trying again"}
        move_instance(ctx, row, actions.again(old.kind, row.state) or "", health, operation_id=new.id)
        for one in members_of(ctx.tx, row.id):
            if one.state == "failed" and old.kind == DEPLOY:
                move_member(ctx, row, one, "retry", operation_id=new.id)

    def on_abandoned(self, ctx: Context, row: InstanceRow, operation: OperationRow, reason: str) -> None:
        if operation.kind == DECOMMISSION:
            abandon_instance(ctx, row, work_of(operation), reason)
        else:
            message = f"The {operation.kind} was abandoned: {reason}"
            leave_failed(ctx, row, work_of(operation), "unknown", message)

    def refuse_retry(self, row: InstanceRow, operation: OperationRow, live: Sequence[OperationRow]) -> Problem | None:
        return actions.retry(work_of(operation), row, None, [work_of(one) for one in live])

    def refuse_abandon(self, row: InstanceRow, operation: OperationRow) -> Problem | None:
        return actions.abandon(work_of(operation), row, None)


@dataclass(frozen=True)
class Placed:
    """A member and its instance."""

    instance: InstanceRow
    member: MemberRow


class MemberTarget(Target[Placed]):
    kind = OF_MEMBER
    operation_kinds = MappingProxyType({name: one for name, one in KINDS.items() if one.target == OF_MEMBER})
    wire = _WIRE

    def read(self, tx: Connection, operation: OperationRow) -> Placed:
        return self._placed(tx, operation, instance_row(tx, operation.scope_id, operation.lock_key))

    def read_many(self, tx: Connection, operations: Sequence[OperationRow]) -> Mapping[OperationId, Placed]:
        instances_of = known_instances(tx, {operation.lock_key for operation in operations})
        members_of = known_members(tx, {operation.target_id for operation in operations})
        return {
            one.id: Placed(instances_of[InstanceId(one.lock_key)], members_of[MemberId(one.target_id)])
            for one in operations
        }

    def lock(self, tx: Connection, operation: OperationRow) -> Placed:
        return self._placed(tx, operation, instance_row(tx, operation.scope_id, operation.lock_key, lock=True))

    def try_lock(self, tx: Connection, operation: OperationRow) -> Placed | None:
        instance = try_instance_row(tx, operation.scope_id, operation.lock_key)
        return None if instance is None else self._placed(tx, operation, instance)

    def _placed(self, tx: Connection, operation: OperationRow, instance: InstanceRow) -> Placed:
        return Placed(instance, member_row(tx, instance.id, operation.target_id))

    def order(self, tx: Connection, row: Placed, kind: str, params: Json | None, details: Json | None) -> Order:
        return _order(tx, row.instance, row.member, kind, params, details)

    def facts(self, row: Placed, operation: OperationRow) -> Json:
        return {**instance_facts(row.instance), "member_id": row.member.id}

    def allocations(self, tx: Connection, row: Placed) -> set[str]:
        """Return the allocations of all members of the instance, because work on one member may also change the others,
        e.g. add the member to their configuration."""
        return {member.allocation_id for member in members_of(tx, row.instance.id)}

    def fenced(self, tx: Connection, row: Placed, operation: OperationRow) -> set[str]:
        return fenced_by(tx, work_of(operation))

    def refers_to(self, operation_id: ColumnElement[str]) -> ColumnElement[bool]:
        return exists().where(members.c.last_operation_id == operation_id, members.c.state != "removed")

    def operation_details(self, operation: OperationRow) -> Mapping[str, object]:
        return _details(operation)

    def controller_view(self, tx: Connection, row: Placed, operation: OperationRow) -> Mapping[str, object]:
        return _claimed_view(tx, row.instance)

    def accepted_view(self, tx: Connection, operation: OperationRow) -> schemas.AcceptedView:
        return views.accepted_view(tx, operation)

    def on_queued(self, ctx: Context, row: Placed, operation: OperationRow) -> None:
        write_member(ctx, row.member, {"last_operation_id": operation.id})

    def on_claimed(self, ctx: Context, row: Placed, operation: OperationRow) -> Placed:
        begin = KINDS[operation.kind].begin
        if begin is None:
            return row
        move_member(ctx, row.instance, row.member, begin, operation_id=operation.id)
        return replace(row, member=member_row(ctx.tx, row.instance.id, row.member.id))

    def changed_by(self, operation: OperationRow, report: engine_schemas.Progress) -> bool:
        return _changes(_progress(report))

    def on_progress(self, ctx: Context, row: Placed, operation: OperationRow, report: engine_schemas.Progress) -> None:
        _progressed(ctx, row.instance, work_of(operation), _progress(report))

    def on_last_report(
        self, ctx: Context, row: Placed, operation: OperationRow, report: engine_schemas.Complete | engine_schemas.Fail
    ) -> None:
        _last_report(ctx, row.instance, work_of(operation), report)

    def on_succeeded(self, ctx: Context, row: Placed, operation: OperationRow, report: engine_schemas.Complete) -> None:
        work = work_of(operation)
        observed = observed_of_instance(ctx, row.instance, work, _complete(report))
        finish_member(ctx, row.instance, work, report.evidence)
        if observed:
            write_instance(ctx, row.instance, observed)

    def on_failed(self, ctx: Context, row: Placed, operation: OperationRow, message: str, *, known: bool) -> None:
        leave_failed(ctx, row.instance, work_of(operation), "unhealthy" if known else "unknown", message)

    def on_undone(self, ctx: Context, row: Placed, operation: OperationRow, message: str, *, why: str) -> None:
        leave_undone(ctx, row.instance, work_of(operation), HEALTH_OF_UNDONE[why], message)

    def on_retried(self, ctx: Context, row: Placed, old: OperationRow, new: OperationRow) -> None:
        action = actions.again(old.kind, row.member.state) or ""
        move_member(ctx, row.instance, row.member, action, operation_id=new.id)

    def on_abandoned(self, ctx: Context, row: Placed, operation: OperationRow, reason: str) -> None:
        if operation.kind == REMOVE:
            abandon_member(ctx, row.instance, row.member, "abandon", operation.id, reason)
        else:
            message = f"The {operation.kind} was abandoned: {reason}"
            leave_failed(ctx, row.instance, work_of(operation), "unknown", message)

    def refuse_retry(self, row: Placed, operation: OperationRow, live: Sequence[OperationRow]) -> Problem | None:
        return actions.retry(work_of(operation), row.instance, row.member, [work_of(one) for one in live])

    def refuse_abandon(self, row: Placed, operation: OperationRow) -> Problem | None:
        return actions.abandon(work_of(operation), row.instance, row.member)


class InstanceSubjects(SubjectReader):
    """Reads instances for the rooms that store secrets, credentials and teardown records of them."""

    def find(self, tx: Connection, project_id: str, subject_id: str, *, lock: bool = False) -> Subject | None:
        row = find_instance(tx, project_id, subject_id, lock=lock)
        return None if row is None else subject_of(row)

    def names(self, tx: Connection, subject_ids: Sequence[str]) -> dict[SubjectId, str]:
        return {SubjectId(instance_id): name for instance_id, name in instance_names(tx, subject_ids)}


INSTANCE_TARGET, MEMBER_TARGET, INSTANCE_SUBJECTS = InstanceTarget(), MemberTarget(), InstanceSubjects()


def queue_operation(
    ctx: Context, instance: InstanceRow, kind: str, *, params: Json | None = None, details: Json | None = None
) -> Work:
    """Queue an operation of the instance. `details`: for an upgrade or rollback, `from_version` and `to_version`;
    otherwise None."""
    return work_of(engine.queue(ctx, INSTANCE_TARGET, instance, kind, params=params, details=details))


def queue_member_operation(
    ctx: Context,
    instance: InstanceRow,
    member: MemberRow,
    kind: str,
    *,
    params: Json | None = None,
    details: Json | None = None,
    batch_id: str | None = None,
) -> Work:
    """Queue an operation of a member. `details`: for a replacement, `old_member_id`; otherwise None."""
    row = Placed(instance, member)
    return work_of(engine.queue(ctx, MEMBER_TARGET, row, kind, params=params, details=details, batch_id=batch_id))
