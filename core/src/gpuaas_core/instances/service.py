"""What people ask of instances: deploy, plan, decommission, retry, cancel. Each act queues or moves one operation."""

from typing import Any

from sqlalchemy import Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..access.context import Context
from ..capacity.errors import AllocationInUse
from ..catalog.admission import admit, modes_for
from ..catalog.manifest import check_inputs
from ..catalog.reads import deployable, warnings_of
from ..kit.ids import new_id
from ..kit.wire import counted
from . import schemas
from .errors import NameTaken, NotCancelable, NotRetryable, OperatingModeRefused
from .placement import Placement, check_allocations, place
from .reads import hold_operation, instance_row, instance_view, live_operation, members_of, operation_view
from .record import emit_operation, instance_facts, move_instance, move_member, move_operation, queue_operation
from .states import DECOMMISSION, DEPLOY, INSTANCE, OPERATION, RETRYABLE
from .tables import allocation_holds, instances, members, operations


def plan(ctx: Context, project_id: str, body: schemas.CreateInstance) -> schemas.PlannedView:
    """The same checks as a deploy; nothing is written."""
    version, placement, found = _check(ctx, project_id, body)
    on: dict[str, list[str]] = {}
    for component, chosen in placement.items():
        for allocation in chosen:
            on.setdefault(allocation, []).append(component)
    hosts = [
        schemas.PlannedHost(
            allocation_id=a, node_name=found[a].node_name, address=found[a].address, components=components
        )
        for a, components in on.items()
    ]
    return schemas.PlannedView(
        plan=schemas.PlanView(
            summary=f"Deploy {body.app_slug} {version.version} as {body.name!r} on {counted(len(hosts), 'machine')}.",
            app_slug=body.app_slug,
            version=version.version,
            topology=body.topology,
            hosts=hosts,
            inputs=body.inputs,
            warnings=warnings_of(version),
            charged_to=project_id,
        )
    )


def deploy(ctx: Context, project_id: str, body: schemas.CreateInstance) -> schemas.AcceptedView:
    version, placement, found = _check(ctx, project_id, body, lock=True)
    instance = _add_instance(ctx, project_id, body, version, placement)
    _hold(ctx, instance, placement, found)
    _add_members(ctx, instance, placement, found)
    operation = queue_operation(ctx, instance, DEPLOY)
    facts = instance_facts(instance) | {"operation_id": operation.id, "state": "requested"}
    ctx.emit("apps.instance.requested", instance.id, facts)
    return _accepted(ctx, instance.id, operation)


def decommission(ctx: Context, project_id: str, instance_id: str) -> schemas.AcceptedView:
    """From any state that is not final; an operation under way gives way, and its controller's claim is dead."""
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    ctx.resource_id = instance_id
    INSTANCE.after(instance.state, "delete")
    live = live_operation(ctx.tx, instance_id)
    if live is not None:
        gone = {"claim_epoch": live.claim_epoch + 1, "message": "Gave way to the decommission"}
        move_operation(ctx, instance, live, "supersede", **gone)
    operation = queue_operation(ctx, instance, DECOMMISSION)
    health = {"health_status": "progressing", "health_sentence": "Being torn down"}
    move_instance(ctx, instance, "delete", operation_id=operation.id, **health)
    for member in members_of(ctx.tx, instance_id):
        if member.state != "removed":
            move_member(ctx, instance, member, "remove", operation_id=operation.id)
    return _accepted(ctx, instance_id, operation)


def retry(ctx: Context, project_id: str, operation_id: str) -> schemas.AcceptedView:
    old, instance = hold_operation(ctx.tx, project_id, operation_id)
    ctx.resource_id = operation_id
    if old.status not in RETRYABLE or instance.last_operation_id != old.id:
        raise NotRetryable(f"The operation is {old.status}, or a newer one exists.")
    INSTANCE.after(instance.state, "retry")
    operation = queue_operation(ctx, instance, old.kind, retry_of=old.id)
    health = {"health_status": "progressing", "health_sentence": "Trying again"}
    move_instance(ctx, instance, "retry", operation_id=operation.id, **health)
    for member in members_of(ctx.tx, instance.id):
        if member.state == "failed" and old.kind == DEPLOY:
            move_member(ctx, instance, member, "retry", operation_id=operation.id)
    return _accepted(ctx, instance.id, operation)


def cancel(ctx: Context, project_id: str, operation_id: str) -> schemas.OperationView:
    """Waiting work is canceled at once; a controller that holds it is asked to stop at its next heartbeat."""
    row, instance = hold_operation(ctx.tx, project_id, operation_id)
    ctx.resource_id = operation_id
    if OPERATION.terminal(row.status):
        raise NotCancelable(f"The operation is {row.status}.")
    if row.status == "queued" and row.claim_epoch == 0:
        moved = move_operation(ctx, instance, row, "cancel", message="Canceled before it began")
        sentence = "Canceled before anything was done"
        health = {"health_status": "unknown", "health_sentence": sentence}
        move_instance(ctx, instance, "cancel", operation_id=row.id, **health)
        return operation_view(ctx.tx, moved)
    ctx.tx.execute(update(operations).where(operations.c.id == row.id).values(cancel_requested=1))
    asked = ctx.tx.execute(select(operations).where(operations.c.id == row.id)).one()
    emit_operation(ctx, instance, asked, "cancel_requested")
    return operation_view(ctx.tx, asked)


def check_not_in_use(ctx: Context, allocation_id: str) -> None:
    held = select(instances.c.name).join(allocation_holds, allocation_holds.c.instance_id == instances.c.id)
    name = ctx.tx.execute(held.where(allocation_holds.c.allocation_id == allocation_id)).scalar()
    if name:
        raise AllocationInUse(f"The instance {name!r} is on this allocation.")


def _check(
    ctx: Context, project_id: str, body: schemas.CreateInstance, *, lock: bool = False
) -> tuple[Row[Any], Placement, dict[str, Row[Any]]]:
    version = deployable(ctx.tx, project_id, body.app_slug, body.version)
    check_inputs(version.manifest, body.inputs)
    placement = place(version.manifest, body.topology, body.placement_intent)
    taken = select(instances.c.id).where(
        instances.c.project_id == project_id, instances.c.name == body.name, instances.c.state != "deleted"
    )
    if ctx.tx.execute(taken).first():
        raise NameTaken(f"The project has an instance named {body.name!r}.")
    found = check_allocations(ctx.tx, project_id, placement, lock=lock)
    admit(ctx, version, found.values())
    if refused := modes_for(ctx, version, {"operating_mode": body.operating_mode}).refused:
        raise OperatingModeRefused(refused)
    return version, placement, found


def _add_instance(
    ctx: Context, project_id: str, body: schemas.CreateInstance, version: Row[Any], placement: Placement
) -> Row[Any]:
    instance_id = ctx.resource_id = new_id("inst")
    values = {
        "id": instance_id,
        "project_id": project_id,
        "tenant_id": ctx.scope.tenant_id,
        "name": body.name,
        "app_slug": body.app_slug,
        "version": version.version,
        "topology": body.topology,
        "state": "requested",
        "health_status": "progressing",
        "health_sentence": "Waiting for the app's controller",
        "conditions": [],
        "generation": 1,
        "observed_generation": 0,
        "inputs": body.inputs,
        "placement_intent": placement,
        **modes_for(ctx, version, {"operating_mode": body.operating_mode}).columns(),
        "correlation_id": ctx.correlation.correlation_id,
        "created_by": ctx.principal.id,
        "created_at": ctx.now,
        "updated_at": ctx.now,
    }
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(instances).values(**values))
    except IntegrityError as error:
        raise NameTaken(f"The project has an instance named {body.name!r}.") from error
    return ctx.tx.execute(select(instances).where(instances.c.id == instance_id)).one()


def _hold(ctx: Context, instance: Row[Any], placement: Placement, found: dict[str, Row[Any]]) -> None:
    wanted = sorted({allocation for chosen in placement.values() for allocation in chosen})
    rows = [{"allocation_id": allocation, "instance_id": instance.id} for allocation in wanted]
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(allocation_holds), rows)
    except IntegrityError as error:
        names = ", ".join(found[allocation].name for allocation in wanted)
        raise AllocationInUse(f"Another instance took one of {names} a moment ago.") from error


def _add_members(ctx: Context, instance: Row[Any], placement: Placement, found: dict[str, Row[Any]]) -> None:
    for component, chosen in placement.items():
        for ordinal, allocation in enumerate(chosen):
            values = {
                "id": new_id("mem"),
                "instance_id": instance.id,
                "component_key": component,
                "ordinal": ordinal,
                "state": "pending",
                "allocation_id": allocation,
                "node_id": found[allocation].node_id,
                "correlation_id": ctx.correlation.correlation_id,
                "created_at": ctx.now,
                "updated_at": ctx.now,
            }
            ctx.tx.execute(insert(members).values(**values))
            facts = {"member_id": values["id"], "component_key": component, "allocation_id": allocation}
            ctx.emit("apps.member.added", values["id"], instance_facts(instance) | facts)


def _accepted(ctx: Context, instance_id: str, operation: Row[Any]) -> schemas.AcceptedView:
    instance = ctx.tx.execute(select(instances).where(instances.c.id == instance_id)).one()
    return schemas.AcceptedView(instance=instance_view(ctx.tx, instance), operation=operation_view(ctx.tx, operation))
