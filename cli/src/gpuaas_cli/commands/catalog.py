"""Apps and their versions, and which project may deploy them: `gpuaas app …` and `gpuaas entitlement …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import App, Parameter

from .. import show
from ..options import Changing, Common, Destroying, Looking, Many
from ..placement import read_object
from ..session import session
from .policy import read_rules, rules_of

app = App(name="app", help="Manage apps and their versions.")
entitlement = App(name="entitlement", help="Manage which apps a project may deploy.")
DAY_S = 24 * 3600


@app.command(name="list")
def list_apps(*, common: Looking = Looking()) -> None:
    """List all apps of the platform. `gpuaas catalog` lists the apps that your project may deploy.

    Example: gpuaas app list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_apps))
    if common.json:
        return show.as_json(found)
    rows = [(a.slug, a.name, a.description, show.ago(a.created_at)) for a in found]
    return show.table(("APP", "TITLE", "DESCRIPTION", "ADDED"), rows)


@app.command(name="show")
def show_app(name: str, /, *, version: str | None = None, common: Looking = Looking()) -> None:
    """Show an app, or with --version one of its versions and the manifest.

    Example: gpuaas app show slurm
    Example: gpuaas app show slurm --version 1.2.0 -o yaml

    Parameters
    ----------
    name
        Name of the app.
    version
        A version from `gpuaas app versions`.
    """
    with session(common) as at:
        found = at.client.get_version(name, version) if version else at.client.get_app(name)
    if common.json:
        return show.as_json(found)
    if isinstance(found, sdk.models.AppView):
        return show.facts([("app", found.slug), ("title", found.name), ("description", found.description)])
    offers = {key: [one.get("key", "") for one in found.manifest.get(key, [])] for key in ("topologies", "actions")}
    facts = [
        ("version", f"{found.app_slug} {found.version}"),
        ("state", found.state),
        ("reason", found.state_reason or ""),
    ]
    return show.facts([*facts, *((key, ", ".join(dict.fromkeys(words))) for key, words in offers.items())])


@app.command
def create(name: str, /, *, title: str | None = None, description: str = "", common: Changing = Changing()) -> None:
    """Create an app (app teams). Then add its first version with `gpuaas app add-version`.

    Example: gpuaas app create slurm --title Slurm --description "A batch scheduler."

    Parameters
    ----------
    name
        The app's name: lowercase letters, digits and hyphens.
    title
        Display name. Default: the name.
    description
        What the app is, in one sentence.
    """
    with session(common) as at:
        made = at.client.create_app(slug=name, name=title or name, description=description)
    if common.json:
        return show.as_json(made)
    print(f"Created {made.slug}. Next: gpuaas app add-version {made.slug} manifest.json")
    return None


@app.command(name="add-version")
def add_version(
    name: str, manifest: Annotated[Path, Parameter(allow_leading_hyphen=True)], /, *, common: Changing = Changing()
) -> None:
    """Add an app version with its manifest (app teams). The version can be deployed after `gpuaas app publish`.

    Example: gpuaas app add-version slurm manifest.json

    Parameters
    ----------
    name
        Name of the app.
    manifest
        The manifest as JSON; - reads standard input.
    """
    content = read_object(manifest)
    with session(common) as at:
        made = at.client.create_version(name, version=str(content.get("version", "")), manifest=content)
    if common.json:
        return show.as_json(made)
    print(f"{made.app_slug} {made.version} is added. Next: gpuaas app publish {made.app_slug} {made.version}")
    return None


@app.command
def versions(name: str, *, common: Looking = Looking()) -> None:
    """List the versions of an app and their states.

    Example: gpuaas app versions slurm

    Parameters
    ----------
    name
        A name from `gpuaas app list`.
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_versions, name))
    if common.json:
        return show.as_json(found)
    rows = [(v.version, v.state, v.state_reason or "-", show.ago(v.created_at)) for v in found]
    return show.table(("VERSION", "STATE", "REASON", "ADDED"), rows)


@app.command
def publish(name: str, version: str, *, common: Changing = Changing()) -> None:
    """Publish an app version, so that entitled projects can deploy it. Also reverts a deprecation.

    Example: gpuaas app publish slurm 1.2.0

    Parameters
    ----------
    name
        A name from `gpuaas app list`.
    version
        A version from `gpuaas app versions`.
    """
    with session(common) as at:
        moved = at.client.publish_version(name, version)
    return _print(common, moved, "can be deployed")


@app.command
def deprecate(name: str, version: str, *, reason: str = "", common: Changing = Changing()) -> None:
    """Deprecate an app version: every deploy of the version shows a warning.

    Example: gpuaas app deprecate slurm 1.1.0 --reason "1.2.0 is out, please use it"

    Parameters
    ----------
    name
        A name from `gpuaas app list`.
    version
        A version from `gpuaas app versions`.
    reason
        Reason and alternative, shown with the version.
    """
    with session(common) as at:
        moved = at.client.deprecate_version(name, version, reason=reason)
    return _print(common, moved, "deploys with a warning")


@app.command
def withdraw(name: str, version: str, *, reason: str = "", common: Destroying = Destroying()) -> None:
    """Withdraw an app version: no new deploys and no upgrades to the version, permanently. Running instances stay.

    Example: gpuaas app withdraw slurm 1.1.0 --reason "loses accounting records"

    Parameters
    ----------
    name
        A name from `gpuaas app list`.
    version
        A version from `gpuaas app versions`.
    reason
        Reason and alternative, shown to users who request the version.
    """
    with session(common) as at:
        moved = at.client.withdraw_version(name, version, reason=reason)
    return _print(common, moved, "can no longer be deployed; running instances stay")


def _print(common: Common, moved: sdk.models.VersionView, now: str) -> None:
    if common.json:
        return show.as_json(moved)
    print(f"{moved.app_slug} {moved.version} is {moved.state}: it {now}.")
    return None


@entitlement.command(name="list")
def list_entitlements(*, common: Looking = Looking()) -> None:
    """List the apps that the project may deploy, with end dates and restrictions.

    Example: gpuaas entitlement list --project red
    """
    with session(common) as at:
        found = at.client.list_entitlements(at.project_id).items
    if common.json:
        return show.as_json(found)
    if not found:
        print("The project may deploy no app yet: gpuaas entitlement enable APP")
        return None
    rows = [(e.app_slug, _state(e), e.expires_at or "-", rules_of(e.overlay) if e.overlay else "-") for e in found]
    return show.table(("APP", "STATE", "UNTIL", "RESTRICTED TO"), rows)


@entitlement.command
def enable(
    name: str,
    *,
    only: Annotated[list[str], Many] = [],  # noqa: B006 - cyclopts reads the default
    deny: Annotated[list[str], Many] = [],  # noqa: B006
    reason: str | None = None,
    days: int | None = None,
    common: Changing = Changing(),
) -> None:
    """Let the project deploy an app. Existing restrictions stay unless you pass new restrictions.

    Example: gpuaas entitlement enable slurm --project red
    Example: gpuaas entitlement enable slurm --only regions=eu-west --days 90

    Parameters
    ----------
    name
        Name of the app.
    only
        FIELD=VALUE,VALUE: allow only these values, for this app in this project.
    deny
        FIELD=VALUE,VALUE: deny these values.
    reason
        Reason of the restriction, shown with every refused request.
    days
        End the entitlement after this number of days.
    """
    overlay = read_rules(only, deny) or None
    ends = days * DAY_S if days else None
    with session(common) as at:
        made = at.client.entitle(at.project_id, app_slug=name, overlay=overlay, reason=reason, expires_in_s=ends)
    if common.json:
        return show.as_json(made)
    until = f" until {made.expires_at}" if made.expires_at else ""
    narrowed = f", restricted: {rules_of(made.overlay)}" if made.overlay else ""
    print(f"The project may deploy {name}{until}{narrowed}.")
    return None


@entitlement.command
def disable(name: str, *, common: Destroying = Destroying()) -> None:
    """Stop new deploys of an app in the project, and list its running instances, which stay.

    Example: gpuaas entitlement disable slurm --project red

    Parameters
    ----------
    name
        A name from `gpuaas catalog`.
    """
    with session(common) as at:
        gone = at.client.disentitle(at.project_id, name)
    if common.json:
        return show.as_json(gone)
    stays = f"Still running: {', '.join(gone.keeps_running)}." if gone.keeps_running else "It has no instances."
    print(f"The project may no longer deploy {name}. {stays}")
    return None


def _state(one: sdk.models.EntitlementView) -> str:
    return "active" if one.active else "expired" if one.enabled else "disabled"
