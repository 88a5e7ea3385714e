"""What people ask of an instance that runs: stop, start, restart, new keys or inputs, another version. One operation
each."""

from typing import Any

from sqlalchemy import Row, update

from ..authz.context import Context
from ..catalog.admission import admit
from ..catalog.manifest import check_inputs
from ..catalog.reads import deployable
from ..http.etags import Preconditions, of_what_was_asked
from ..kit.wire import counted
from ..operations.rows import Json
from . import actions, input_effects, schemas
from .errors import VersionUnchanged
from .plans import hosts_of_members, planned
from .reads import instance_row, last_operation, live_operations, manifest_of, members_of
from .states import KINDS
from .tables import instances
from .targets import queue_operation
from .transitions import move_instance
from .views import accepted_view, instance_view

NOT_APPLIED = "The last change of inputs was not applied. What is compared here is what was asked for, not what runs."


def ask(
    ctx: Context, project_id: str, instance_id: str, kind: str, *, reason: str | None = None
) -> schemas.AcceptedView:
    """Stop, start, restart or rotate keys."""
    instance, _ = _allowed(ctx, project_id, instance_id, kind)
    return _queue(ctx, instance, kind, params={"reason": reason} if reason else None)


def change_inputs(
    ctx: Context, project_id: str, instance_id: str, body: schemas.UpdateInstance, if_match: str | None
) -> schemas.AcceptedView:
    """New inputs are a new generation, whoever gets to apply it and when."""
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    now = instance_view(ctx.tx, instance).etag
    Preconditions(of_what_was_asked(if_match, now)).check(now)
    _, manifest = _allowed(ctx, project_id, instance_id, "reconfigure")
    check_inputs(manifest, body.inputs)
    input_effects.check_changes(input_effects.changes(manifest, instance.inputs, body.inputs))
    change = {"inputs": body.inputs, "generation": instance.generation + 1}
    ctx.tx.execute(update(instances).where(instances.c.id == instance_id).values(**change))
    return _queue(ctx, instance, "reconfigure", params={"generation": change["generation"]})


def plan_update(
    ctx: Context, project_id: str, instance_id: str, body: schemas.UpdateInstance, if_match: str | None
) -> schemas.PlannedView:
    """Every changed input with its effect, also those that would be refused; nothing is written."""
    instance, manifest = _allowed(ctx, project_id, instance_id, "reconfigure", lock=False)
    if if_match is not None:
        Preconditions(if_match).check(instance_view(ctx.tx, instance).etag)
    check_inputs(manifest, body.inputs)
    found = input_effects.changes(manifest, instance.inputs, body.inputs)
    refused = sum(one.effect == input_effects.REFUSED for one in found)
    summary = f"Change {counted(len(found), 'input')} of {instance.name!r}."
    if refused:
        summary += f" The update would be refused: {counted(refused, 'input')} cannot change."
    behind = instance.observed_generation < instance.generation
    hosts = hosts_of_members(members_of(ctx.tx, instance_id))
    said = {"inputs": body.inputs, "changes": found, "warnings": [NOT_APPLIED] if behind else []}
    return planned(ctx.tx, summary, hosts, project_id, instance=instance, **said)


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
    """To the version before the last upgrade; after an upgrade that failed, to the version it started from."""
    instance, _ = _allowed(ctx, project_id, instance_id, "rollback")
    versions = {"from_version": instance.version, "to_version": instance.previous_version}
    last = last_operation(ctx.tx, instance)
    if last is not None and actions.half_upgraded(instance, last):
        versions = {"from_version": last.to_version, "to_version": last.from_version}
    params = {"reason": reason} if reason else None
    return _queue(ctx, instance, "rollback", params=params, details=versions)


def _allowed(
    ctx: Context, project_id: str, instance_id: str, kind: str, *, lock: bool = True
) -> tuple[Row[Any], actions.Manifest]:
    instance = instance_row(ctx.tx, project_id, instance_id, lock=lock)
    ctx.resource_id = instance_id
    manifest = manifest_of(ctx.tx, instance)
    live, last = live_operations(ctx.tx, instance_id), last_operation(ctx.tx, instance)
    if refusal := actions.of_instance(kind, instance, manifest, live, last):
        raise refusal
    return instance, manifest


def _queue(
    ctx: Context, instance: Row[Any], kind: str, *, params: Json | None = None, details: Json | None = None
) -> schemas.AcceptedView:
    operation = queue_operation(ctx, instance, kind, params=params, details=details)
    health = {"health_status": "progressing", "health_sentence": f"Waiting for the app's controller: {kind}"}
    move_instance(ctx, instance, KINDS[kind].ask or "", operation_id=operation.id, **health)
    return accepted_view(ctx.tx, operation)
