"""`gpuaas instance deploy|list|show|watch|stop|start|restart|update|upgrade|rollback|decommission`, `gpuaas access`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gpuaas_sdk as sdk
from cyclopts import App, Parameter

from .. import adapter_detail, failures, show
from ..destructive import ask
from ..failures import CliError
from ..operation_stream import LIVE, sequence_now
from ..options import Changing, Common, Destroying, Flag, Instance, Looking, Many, NoWait, Reason
from ..placement import choose_topology, read_inputs, read_manifest, read_places
from ..session import Session, pick, session
from ..wait import print_next, print_result, wait_for_end

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import AcceptedView, InstanceView, PlannedHost, PlannedView

app = App(name="instance", help="Deploy, manage and decommission instances of apps.")


@app.command
def deploy(
    app_slug: Annotated[str, Parameter(name="APP")],
    /,
    *,
    name: str,
    place: Annotated[list[str] | None, Many] = None,
    version: str | None = None,
    topology: str | None = None,
    input: Annotated[list[str] | None, Many] = None,
    inputs: Path | None = None,
    operator: str | None = None,
    plan: Annotated[bool, Flag] = False,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int | None:
    """Deploy an app on the nodes you choose, and show the progress.

    Example: gpuaas instance deploy slurm --name train --place controller=node-a
    Example: gpuaas instance deploy slurm --name train --place controller=node-a --place worker=node-b,node-c
    Example: gpuaas instance deploy slurm --name train --place controller=node-a --plan

    Parameters
    ----------
    app_slug
        The app's name in `gpuaas catalog`.
    name
        The instance's name: lowercase letters, digits and hyphens.
    place
        COMPONENT=ALLOCATION[,ALLOCATION…], once per component. ALLOCATION: allocation name, node name or id.
    version
        The app's version. Default: the newest published version.
    topology
        A topology of the app's manifest. Default: the first topology that fits the placement.
    input
        KEY=VALUE: an input for the app; the value may be JSON. May be repeated.
    inputs
        A JSON file with inputs for the app; - reads standard input.
    operator
        The only service account that may operate the instance. Default: any controller of the app.
    plan
        Change nothing; check the request and print what would happen on which node.
    """
    wanted: dict[str, Any] = {"name": name, "app_slug": app_slug, "version": version}
    wanted["inputs"] = read_inputs(input or [], inputs)
    with session(common) as at:
        manifest = read_manifest(at, app_slug, version)
        wanted["placement_intent"] = read_places(at, place or [], manifest)
        if chosen := choose_topology(topology, wanted["placement_intent"], manifest):
            wanted["topology"] = chosen
        if operator:
            known = list(at.client.every(sdk.Calls.list_service_accounts, at.project_id))
            wanted["operator_id"] = pick("service account", operator, known, "gpuaas service-account list").id
        if plan:
            return show_plan(at, at.client.plan(at.project_id, **wanted), common)
        before = sequence_now(at.client, at.project_id)
        accepted = at.client.deploy(at.project_id, **wanted)
        return follow(at, accepted, no_wait, common, after=before)


def follow(at: Session, accepted: AcceptedView, no_wait: bool, common: Common, after: int | None = None) -> int:
    if not no_wait:
        return wait_for_end(at, accepted, after=after, json=common.json)
    if common.json:
        show.as_json(accepted)
    else:
        print(f"Accepted: {accepted.operation.kind} of {accepted.instance.name} ({accepted.operation.id}).")
        print_next((f"gpuaas instance watch {accepted.instance.name}", "follow its progress"))
    return failures.OK


def show_plan(at: Session, planned: PlannedView, common: Common) -> None:
    if common.json:
        return show.as_json(planned)
    plan = planned.plan
    print(plan.summary)
    for warning in plan.warnings or []:
        print(f"Warning: {warning}")
    print()
    if plan.changes:
        rows = [(one.field, _short(one.old), _short(one.new), one.effect, one.sentence) for one in plan.changes]
        show.table(("INPUT", "CURRENT", "NEW", "EFFECT", "DETAIL"), rows)
        print()
    priced = any(h.currency for h in plan.hosts)  # a machine type without a record has no price
    hosts = [(h.node_name, h.address, ", ".join(h.components), *([_hourly_price(h)] * priced)) for h in plan.hosts]
    show.table(("NODE", "ADDRESS", "COMPONENTS", *(["PER HOUR"] * priced)), hosts, empty="No node is affected.")
    payer = f"project {at.project.slug}" if plan.charged_to == at.project_id else plan.charged_to
    print(f"\nCharged to {payer}. Nothing was changed. Run it without --plan to apply.")
    return None


def _hourly_price(host: PlannedHost) -> str:
    return show.price(host.price_micros_per_hour or 0, host.currency) if host.currency else "-"


def _short(value: Any) -> str:
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else text[:39] + "…"


@app.command(name="list")
def list_instances(*, deleted: Annotated[bool, Flag] = False, common: Looking = Looking()) -> None:
    """List the instances of the project, with state and health.

    Example: gpuaas instance list
    Example: gpuaas instance list --deleted -o json

    Parameters
    ----------
    deleted
        Include deleted instances.
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_instances, at.project_id, deleted=deleted or None))
    if common.json:
        return show.as_json(found)
    if not found:
        print("No instances yet. See the apps: gpuaas catalog")
        return None
    rows = [
        (i.name, f"{i.app_slug} {i.version}", i.state, i.health.status, i.health.sentence, show.ago(i.created_at), i.id)
        for i in found
    ]
    return show.table(("NAME", "APP", "STATE", "HEALTH", "DETAIL", "CREATED", "ID"), rows)


@app.command(name="show")
def show_instance(instance: Instance, /, *, common: Looking = Looking()) -> None:
    """Show an instance in detail: health, members and allowed actions.

    Example: gpuaas instance show train
    Example: gpuaas instance show train -o json
    """
    with session(common) as at:
        found = at.instance(instance)
    if common.json:
        return show.as_json(found)
    print(f"{found.name} is {found.state}. {found.health.sentence.removeprefix(f'{found.name}: ')}")
    print()
    show.facts(_facts(found))
    print()
    rows = [
        (f"{m.component_key}/{m.ordinal}", m.state, m.runtime_state or "-", m.node_name, m.address)
        for m in found.members
    ]
    show.table(("MEMBER", "STATE", "RUNTIME", "NODE", "ADDRESS"), rows, empty="No members.")
    return adapter_detail.drift(found.adapter_detail)


def _facts(i: InstanceView) -> list[tuple[str, str]]:
    runtime = f", {i.runtime_backend} {i.runtime_version}" if i.runtime_version else ""
    allowed = [a.action for a in i.available_actions if a.allowed]
    broken = [f"{c.type}: {c.message or c.reason}" for c in i.conditions if c.status != "True"]
    return [
        ("health", i.health.status),
        ("failed conditions", "; ".join(broken)),
        ("app", f"{i.app_slug} {i.version}{runtime}"),
        ("topology", i.topology),
        *([("operated by", i.operator_id)] if i.operator_id else []),
        ("allowed actions", ", ".join(allowed)),
        ("operation", i.current_operation_id or i.last_operation_id or ""),
        ("created", show.ago(i.created_at)),
        ("id", i.id),
        ("correlation", i.correlation_id),
    ]


@app.command
def watch(instance: Instance, /, *, common: Common = Common()) -> int:
    """Follow the running operation of an instance until the operation ends.

    Example: gpuaas instance watch train
    """
    with session(common) as at:
        found = at.instance(instance, deleted=True)
        operation = at.newest_operation(found, live=True) or at.operation(found.id)
        if operation.status in LIVE:
            running = sdk.models.AcceptedView(instance=found, operation=operation)
            return wait_for_end(at, running, after=None, json=common.json)
        if not common.json:
            print(f"{found.name} has no running operation. The last one ended {show.ago(operation.finished_at)}.")
        return print_result(at.client, at.project_id, operation.id, found.id, json=common.json)


@app.command
def stop(
    instance: Instance,
    /,
    *,
    reason: Reason = None,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int:
    """Stop an instance. The instance keeps its nodes.

    Example: gpuaas instance stop train --reason "the night"
    """
    return _ask("stop_instance", instance, no_wait, common, reason=reason)


@app.command
def start(
    instance: Instance,
    /,
    *,
    reason: Reason = None,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int:
    """Start a stopped instance.

    Example: gpuaas instance start train --reason "morning"
    """
    return _ask("start_instance", instance, no_wait, common, reason=reason)


@app.command
def restart(
    instance: Instance,
    /,
    *,
    reason: Reason = None,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int:
    """Restart an instance.

    Example: gpuaas instance restart train --reason "new certificates"
    """
    return _ask("restart_instance", instance, no_wait, common, reason=reason)


@app.command
def rotate_keys(
    instance: Instance,
    /,
    *,
    reason: Reason = None,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int:
    """Rotate the shared secrets of an instance. Running work is not interrupted.

    Example: gpuaas instance rotate-keys train --reason "a team member left"
    """
    return _ask("rotate_instance_keys", instance, no_wait, common, reason=reason)


@app.command
def update(
    instance: Instance,
    /,
    *,
    input: Annotated[list[str] | None, Many] = None,
    inputs: Path | None = None,
    without: Annotated[list[str] | None, Many] = None,
    plan: Annotated[bool, Flag] = False,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int | None:
    """Change inputs of an instance. Inputs that you do not name stay as they are.

    Example: gpuaas instance update train --input default_time_limit_minutes=120
    Example: gpuaas instance update train --inputs new.json --plan

    Parameters
    ----------
    input
        KEY=VALUE: an input for the app; the value may be JSON. May be repeated.
    inputs
        A JSON file with inputs for the app; - reads standard input.
    without
        An input to reset to its default. May be repeated.
    plan
        Change nothing; print what would change, and the effect of each change.
    """
    with session(common) as at:
        found = at.instance(instance)
        kept = {key: value for key, value in found.inputs.items() if key not in (without or [])}
        wanted = {**kept, **read_inputs(input or [], inputs)}
        if plan:
            return show_plan(at, at.client.plan_update(at.project_id, found.id, inputs=wanted), common)
        before = sequence_now(at.client, at.project_id)
        accepted = at.client.update_instance(at.project_id, found.id, inputs=wanted, etag=found.etag or "")
        return follow(at, accepted, no_wait, common, after=before)


@app.command
def upgrade(instance: Instance, version: str, /, *, no_wait: NoWait = False, common: Changing = Changing()) -> int:
    """Upgrade an instance to another version of its app.

    Example: gpuaas instance upgrade train 1.1.0

    Parameters
    ----------
    version
        A published version, see `gpuaas app versions`.
    """
    return _ask("upgrade_instance", instance, no_wait, common, version=version)


@app.command
def rollback(
    instance: Instance,
    /,
    *,
    reason: Reason = None,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int:
    """Roll an instance back to the version before its last upgrade, also after a failed upgrade.

    Example: gpuaas instance rollback train --reason "jobs break"
    """
    return _ask("roll_back_instance", instance, no_wait, common, reason=reason)


def _ask(call: str, instance: str, no_wait: bool, common: Common, **options: Any) -> int:
    with session(common) as at:
        found = at.instance(instance)
        before = sequence_now(at.client, at.project_id)
        accepted = getattr(at.client, call)(at.project_id, found.id, **options)
        return follow(at, accepted, no_wait, common, after=before)


@app.command
def decommission(
    instance: Instance,
    /,
    *,
    reason: Reason = None,
    plan: Annotated[bool, Flag] = False,
    no_wait: NoWait = False,
    common: Destroying = Destroying(),
) -> int | None:
    """Remove an instance from its nodes and clean the nodes. Asks for confirmation; without a terminal, requires --yes.

    Example: gpuaas instance decommission train
    Example: gpuaas instance decommission train --plan
    Example: gpuaas instance decommission train --yes --reason "end of the course"

    Parameters
    ----------
    plan
        Change nothing; print what would be removed, and from which nodes.
    """
    with session(common) as at:
        found = at.instance(instance)
        if plan:
            return show_plan(at, at.client.plan_decommission(at.project_id, found.id), common)
        if not common.yes:
            _confirm(found)
        before = sequence_now(at.client, at.project_id)
        accepted = at.client.decommission(at.project_id, found.id, reason=reason)
        return follow(at, accepted, no_wait, common, after=before)


def _confirm(found: InstanceView) -> None:
    machines = ", ".join(sorted({m.node_name for m in found.members})) or "no node"
    consequence = f"This removes {found.name} ({found.app_slug}) from {machines}. Jobs on it end."
    ask(consequence, f"Type {found.name} to continue: ", [found.name])


def access(instance: Instance, /, *, common: Looking = Looking()) -> None:
    """Show how to use an instance: addresses, paths and commands, as its app reports them.

    Example: gpuaas access train
    Example: gpuaas access train -o json
    """
    with session(common) as at:
        found = at.instance(instance)
    if not found.access:
        way_out = f"It is {found.state}. Follow its progress: gpuaas instance watch {found.name}"
        raise CliError(f"{found.name} cannot be used yet.", way_out, failures.CONFLICT)
    if common.json:
        return show.as_json(found.access)
    print(f"How to use {found.name}. {found.health.sentence}")
    print()
    return show.bundle(found.access)
