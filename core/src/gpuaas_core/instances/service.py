"""The beginning and the end of an instance: plan, deploy, decommission. What lies between is in `changes`."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, insert, select
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..catalog.admission import admit
from ..catalog.manifest import check_inputs
from ..catalog.reads import deployable, warnings_of
from ..kit.ids import new_id
from ..kit.wire import counted
from ..operations.recovery import supersede
from ..operations.targets import target_of
from ..policy.modes import Modes
from . import actions, assignment, modes, schemas
from .errors import NameTaken
from .holds import hold
from .membership import add_member
from .placement import Placement, check_allocations, check_kept_for, place
from .plans import hosts_of, hosts_of_members, planned
from .reads import instance_row, live_operations, manifest_of, members_of
from .states import DECOMMISSION, DEPLOY
from .tables import instances
from .targets import queue_operation
from .transitions import instance_facts, move_instance, move_member
from .views import accepted_view


@dataclass(frozen=True)
class Checked:
    """What a deploy was found to be, before anything is written."""

    version: Row[Any]
    placement: Placement
    found: dict[str, Row[Any]]
    requested: dict[str, str]
    modes: Modes


def plan(ctx: Context, project_id: str, body: schemas.CreateInstance) -> schemas.PlannedView:
    """The same checks as a deploy; nothing is written."""
    checked = _check(ctx, project_id, body)
    version = checked.version.version
    hosts = hosts_of(checked.placement, checked.found)
    summary = f"Deploy {body.app_slug} {version} as {body.name!r} on {counted(len(hosts), 'machine')}."
    said = {"app_slug": body.app_slug, "version": version, "topology": body.topology, "inputs": body.inputs}
    return planned(ctx.tx, summary, hosts, project_id, warnings=warnings_of(checked.version), **said)


def deploy(ctx: Context, project_id: str, body: schemas.CreateInstance) -> schemas.AcceptedView:
    checked = _check(ctx, project_id, body, lock=True)
    instance = _add_instance(ctx, project_id, body, checked)
    hold(ctx, instance, checked.placement, checked.found)
    for component, chosen in checked.placement.items():
        for ordinal, allocation in enumerate(chosen):
            add_member(ctx, instance, component, ordinal, checked.found[allocation])
    operation = queue_operation(ctx, instance, DEPLOY)
    facts = instance_facts(instance) | {"operation_id": operation.id, "state": "requested"}
    ctx.emit("apps.instance.requested", instance.id, facts)
    return accepted_view(ctx.tx, operation)


def plan_decommission(ctx: Context, project_id: str, instance_id: str) -> schemas.PlannedView:
    instance = instance_row(ctx.tx, project_id, instance_id)
    live = live_operations(ctx.tx, instance_id)
    _check_decommission(ctx, instance, live)
    hosts = hosts_of_members(members_of(ctx.tx, instance_id))
    gives_way = f" {counted(len(live), 'operation')} under way would give way to it." if live else ""
    summary = f"Tear {instance.name!r} down on {counted(len(hosts), 'machine')}.{gives_way}"
    return planned(ctx.tx, summary, hosts, project_id, instance=instance)


def decommission(
    ctx: Context, project_id: str, instance_id: str, body: schemas.Decommission | None = None
) -> schemas.AcceptedView:
    """From any state that is not final; operations under way give way, and their controllers' claims are dead."""
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    ctx.resource_id = instance_id
    live = live_operations(ctx.tx, instance_id)
    _check_decommission(ctx, instance, live)
    for one in live:
        target = target_of(one)
        supersede(ctx, target, target.read(ctx.tx, one), one, "Gave way to the decommission")
    params = {"reason": body.reason} if body and body.reason else None
    operation = queue_operation(ctx, instance, DECOMMISSION, params=params)
    health = {"health_status": "progressing", "health_sentence": "Being torn down"}
    move_instance(ctx, instance, "delete", operation_id=operation.id, **health)
    for member in members_of(ctx.tx, instance_id):
        move_member(ctx, instance, member, "remove", operation_id=operation.id)
    return accepted_view(ctx.tx, operation)


def _check_decommission(ctx: Context, instance: Row[Any], live: actions.Live) -> None:
    if refusal := actions.of_instance(DECOMMISSION, instance, manifest_of(ctx.tx, instance), live, None):
        raise refusal


def _check(ctx: Context, project_id: str, body: schemas.CreateInstance, *, lock: bool = False) -> Checked:
    requested = modes.requested(body)
    version = deployable(ctx.tx, project_id, body.app_slug, body.version)
    check_inputs(version.manifest, body.inputs)
    assignment.check_usable(ctx, project_id, body.operator_id)
    placement = place(version.manifest, body.topology, body.placement_intent)
    taken = select(instances.c.id).where(
        instances.c.project_id == project_id, instances.c.name == body.name, instances.c.state != "deleted"
    )
    if ctx.tx.execute(taken).first():
        raise NameTaken(f"The project has an instance named {body.name!r}.")
    found = check_allocations(ctx.tx, project_id, placement, lock=lock)
    check_kept_for(version, found)
    admit(ctx, version, found.values())
    return Checked(version, placement, found, requested, modes.effective(ctx, requested, version))


def _add_instance(ctx: Context, project_id: str, body: schemas.CreateInstance, checked: Checked) -> Row[Any]:
    instance_id = ctx.resource_id = new_id("inst")
    values = {
        "id": instance_id,
        "project_id": project_id,
        "tenant_id": ctx.scope.tenant_id,
        "name": body.name,
        "app_slug": body.app_slug,
        "version": checked.version.version,
        "topology": body.topology,
        "state": "requested",
        "health_status": "progressing",
        "health_sentence": "Waiting for the app's controller",
        "conditions": [],
        "generation": 1,
        "observed_generation": 0,
        "inputs": body.inputs,
        "placement_intent": checked.placement,
        "requested": checked.requested,
        "operator_id": body.operator_id,
        "correlation_id": ctx.correlation.correlation_id,
        "created_by": ctx.principal.id,
        "created_at": ctx.now,
        "updated_at": ctx.now,
    }
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(instances).values(**values, **checked.modes.columns()))
    except IntegrityError as error:
        raise NameTaken(f"The project has an instance named {body.name!r}.") from error
    return ctx.tx.execute(select(instances).where(instances.c.id == instance_id)).one()
