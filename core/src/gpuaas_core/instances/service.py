"""Requests for instances: deploy, stop, start, restart, rotate keys, change inputs, upgrade, roll back, decommission.
Each request queues one operation; a plan (`validate_only`) makes the same checks and writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from sqlalchemy import bindparam, select

from ..authz.context import Context
from ..catalog.admission import admit, modes_for
from ..catalog.manifest import check_inputs
from ..catalog.manifest_types import Manifest
from ..catalog.reads import deployable, warnings_of
from ..catalog.rows import AppVersionRow
from ..http.etags import Preconditions, of_what_was_asked
from ..kit.db import insert_of
from ..kit.ids import new_id
from ..kit.json_types import Json
from ..kit.rows import Scalar, WriteQuery
from ..kit.wire import counted
from ..operations.recovery import supersede
from ..operations.targets import target_of
from ..policy.evaluate import Overlay
from ..policy.modes import Modes
from . import actions, schemas
from .errors import NameTaken, OperatingModeRefused, VersionUnchanged
from .membership import add_member
from .observations import check_usable
from .placement import Found, Placement, check_allocations, check_kept_for, hold, place
from .plans import REFUSED, changes, check_changes, hosts_of, hosts_of_members, planned, planned_for
from .reads import instance_row, last_operation, live_operations, manifest_of, members_of
from .rows import InstanceId, InstanceRow
from .states import DECOMMISSION, DEPLOY, KINDS
from .tables import GONE, instances
from .targets import queue_operation
from .transitions import instance_facts, move_instance, move_member, write_instance
from .views import accepted_view, instance_view

NOT_APPLIED = "The last change of inputs was not applied. What is compared here is what was asked for, not what runs."
_TAKEN = Scalar[str](
    select(instances.c.id).where(
        instances.c.project_id == bindparam("project"),
        instances.c.name == bindparam("name"),
        instances.c.state != GONE,
    )
)


@cache
def _new(dialect: str, columns: tuple[str, ...]) -> WriteQuery[InstanceRow]:
    """Build the INSERT of an instance. It writes nothing if another transaction has taken the name of the instance."""
    return WriteQuery(insert_of(dialect, instances).on_conflict_do_nothing(), instances, InstanceRow, columns)


@dataclass(frozen=True)
class Checked:
    """The result of the successful checks of a deploy, before anything is written."""

    version: AppVersionRow
    placement: Placement
    found: Found
    requested: dict[str, str]
    modes: Modes


def plan(ctx: Context, project_id: str, body: schemas.CreateInstance) -> schemas.PlannedView:
    """Check a deploy and return its plan; raise an error if the deploy would be refused. Nothing is written."""
    checked = _check(ctx, project_id, body)
    version = checked.version.version
    hosts = hosts_of(checked.placement, checked.found)
    summary = f"Deploy {body.app_slug} {version} as {body.name!r} on {counted(len(hosts), 'machine')}."
    return planned(
        ctx.tx,
        summary,
        hosts,
        project_id,
        app_slug=body.app_slug,
        version=version,
        topology=body.topology,
        inputs=body.inputs,
        warnings=warnings_of(checked.version),
    )


def deploy(ctx: Context, project_id: str, body: schemas.CreateInstance) -> schemas.AcceptedView:
    checked = _check(ctx, project_id, body, lock=True)
    instance = _add_instance(ctx, project_id, body, checked)
    hold(ctx, instance, checked.placement, checked.found)
    for component, chosen in checked.placement.items():
        for ordinal, allocation in enumerate(chosen):
            add_member(ctx, instance, component, ordinal, checked.found[allocation])
    operation = queue_operation(ctx, instance, DEPLOY)
    facts = {**instance_facts(instance), "operation_id": operation.id, "state": "requested"}
    ctx.emit("apps.instance.requested", instance.id, facts)
    return accepted_view(ctx.tx, operation)


def plan_decommission(ctx: Context, project_id: str, instance_id: str) -> schemas.PlannedView:
    instance = instance_row(ctx.tx, project_id, instance_id)
    live = live_operations(ctx.tx, instance_id)
    _check_decommission(ctx, instance, live)
    hosts = hosts_of_members(members_of(ctx.tx, instance_id))
    gives_way = f" {counted(len(live), 'operation')} under way would give way to it." if live else ""
    summary = f"Tear {instance.name!r} down on {counted(len(hosts), 'machine')}.{gives_way}"
    return planned_for(ctx.tx, instance, summary, hosts)


def decommission(
    ctx: Context, project_id: str, instance_id: str, body: schemas.Decommission | None = None
) -> schemas.AcceptedView:
    """Queue a decommission. Operations under way are superseded, and the claims of their controllers end."""
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
    move_instance(ctx, instance, "delete", health, operation_id=operation.id)
    for member in members_of(ctx.tx, instance_id):
        move_member(ctx, instance, member, "remove", operation_id=operation.id)
    return accepted_view(ctx.tx, operation)


def _check_decommission(ctx: Context, instance: InstanceRow, live: actions.Live) -> None:
    if refusal := actions.of_instance(DECOMMISSION, instance, manifest_of(ctx.tx, instance), live, None):
        raise refusal


def _check(ctx: Context, project_id: str, body: schemas.CreateInstance, *, lock: bool = False) -> Checked:
    requested = _requested(body)
    version = deployable(ctx.tx, project_id, body.app_slug, body.version)
    check_inputs(version.manifest, body.inputs)
    check_usable(ctx, project_id, body.operator_id)
    placement = place(version.manifest, body.topology, body.placement_intent)
    if _TAKEN.first(ctx.tx, project=project_id, name=body.name) is not None:
        raise NameTaken(f"The project has an instance named {body.name!r}.")
    found = check_allocations(ctx.tx, project_id, placement, lock=lock)
    check_kept_for(version, found)
    overlays = admit(ctx, version, found.values())
    return Checked(version, placement, found, requested, _effective(overlays, requested, version))


def _add_instance(ctx: Context, project_id: str, body: schemas.CreateInstance, checked: Checked) -> InstanceRow:
    instance_id = ctx.resource_id = InstanceId(new_id("inst"))
    values: dict[str, object] = {
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
        **checked.modes.columns(),
    }
    added = _new(ctx.tx.dialect.name, tuple(values)).first(ctx.tx, **values)
    if added is None:
        raise NameTaken(f"The project has an instance named {body.name!r}.")
    return added


def _requested(body: schemas.CreateInstance) -> dict[str, str]:
    """Return the modes that the request names. The policies decide which modes the instance gets."""
    hints = {
        "operating_mode": body.operating_mode,
        "control_plane_scope": body.control_plane_scope,
        "runtime_backend": body.runtime_backend,
        "tenant_boundary_mode": body.tenant_boundary_mode,
    }
    return {name: hint for name, hint in hints.items() if hint is not None}


def _effective(overlays: Sequence[Overlay], asked: dict[str, str], version: AppVersionRow) -> Modes:
    decided = modes_for(overlays, version, asked)
    if decided.refused:
        raise OperatingModeRefused(decided.refused)
    return decided


def ask(
    ctx: Context, project_id: str, instance_id: str, kind: str, *, reason: str | None = None
) -> schemas.AcceptedView:
    """Queue a stop, start or restart of the instance, or a rotation of its keys."""
    instance, _ = _allowed(ctx, project_id, instance_id, kind)
    return _queue(ctx, instance, kind, params={"reason": reason} if reason else None)


def change_inputs(
    ctx: Context, project_id: str, instance_id: str, body: schemas.UpdateInstance, if_match: str | None
) -> schemas.AcceptedView:
    """Store the new inputs as a new generation and queue the operation that applies them. Raise an error if `if_match`
    is missing or outdated, or if the app refuses a change."""
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    now = instance_view(ctx.tx, instance).etag
    Preconditions(of_what_was_asked(if_match, now)).check(now)
    _, manifest = _allowed(ctx, project_id, instance_id, "reconfigure")
    check_inputs(manifest, body.inputs)
    check_changes(changes(manifest, instance.inputs, body.inputs))
    generation = instance.generation + 1
    write_instance(ctx, instance, {"inputs": body.inputs, "generation": generation})
    return _queue(ctx, instance, "reconfigure", params={"generation": generation})


def plan_update(
    ctx: Context, project_id: str, instance_id: str, body: schemas.UpdateInstance, if_match: str | None
) -> schemas.PlannedView:
    """Return the plan of an update: every changed input with its effect, including changes that would be refused.
    Nothing is written."""
    instance, manifest = _allowed(ctx, project_id, instance_id, "reconfigure", lock=False)
    if if_match is not None:
        Preconditions(if_match).check(instance_view(ctx.tx, instance).etag)
    check_inputs(manifest, body.inputs)
    found = changes(manifest, instance.inputs, body.inputs)
    refused = sum(one.effect == REFUSED for one in found)
    summary = f"Change {counted(len(found), 'input')} of {instance.name!r}."
    if refused:
        summary += f" The update would be refused: {counted(refused, 'input')} cannot change."
    behind = instance.observed_generation < instance.generation
    hosts = hosts_of_members(members_of(ctx.tx, instance_id))
    warnings = [NOT_APPLIED] if behind else []
    return planned_for(ctx.tx, instance, summary, hosts, inputs=body.inputs, changes=found, warnings=warnings)


def upgrade(ctx: Context, project_id: str, instance_id: str, body: schemas.UpgradeInstance) -> schemas.AcceptedView:
    instance, _ = _allowed(ctx, project_id, instance_id, "upgrade")
    if body.version == instance.version:
        raise VersionUnchanged(f"{instance.name!r} has {instance.app_slug} {instance.version}.")
    wanted = deployable(ctx.tx, project_id, instance.app_slug, body.version)
    check_inputs(wanted.manifest, instance.inputs)
    admit(ctx, wanted, members_of(ctx.tx, instance_id))
    versions = {"from_version": instance.version, "to_version": wanted.version}
    return _queue(ctx, instance, "upgrade", details=versions)


def roll_back(ctx: Context, project_id: str, instance_id: str, *, reason: str | None = None) -> schemas.AcceptedView:
    """Queue a rollback to the version before the last upgrade or, if that upgrade failed, to the version it started
    from."""
    instance, _ = _allowed(ctx, project_id, instance_id, "rollback")
    versions = {"from_version": instance.version, "to_version": instance.previous_version}
    last = last_operation(ctx.tx, instance)
    if last is not None and actions.half_upgraded(instance, last):
        versions = {"from_version": last.to_version, "to_version": last.from_version}
    params = {"reason": reason} if reason else None
    return _queue(ctx, instance, "rollback", params=params, details=versions)


def _allowed(
    ctx: Context, project_id: str, instance_id: str, kind: str, *, lock: bool = True
) -> tuple[InstanceRow, Manifest]:
    instance = instance_row(ctx.tx, project_id, instance_id, lock=lock)
    ctx.resource_id = instance_id
    manifest = manifest_of(ctx.tx, instance)
    live, last = live_operations(ctx.tx, instance_id), last_operation(ctx.tx, instance)
    if refusal := actions.of_instance(kind, instance, manifest, live, last):
        raise refusal
    return instance, manifest


def _queue(
    ctx: Context, instance: InstanceRow, kind: str, *, params: Json | None = None, details: Json | None = None
) -> schemas.AcceptedView:
    operation = queue_operation(ctx, instance, kind, params=params, details=details)
    health = {"health_status": "progressing", "health_sentence": f"Waiting for the app's controller: {kind}"}
    move_instance(ctx, instance, KINDS[kind].ask or "", health, operation_id=operation.id)
    return accepted_view(ctx.tx, operation)
