"""Apps and their versions, and which project may deploy them: `gpuaas app …` and `gpuaas entitlement …`."""

from __future__ import annotations

from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Common, Many
from ..session import session
from .policy import rules_of, spoken

app = App(name="app", help="Apps and their versions.")
entitlement = App(name="entitlement", help="Which apps a project may deploy.")
DAY_S = 24 * 3600


@app.command
def versions(name: str, *, common: Common = Common()) -> None:
    """The versions of an app, and what may be done with each.

    Example: gpuaas app versions slurm
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_versions, name))
    if common.json:
        return show.as_json(found)
    rows = [(v.version, v.state, v.state_reason or "-", show.ago(v.created_at)) for v in found]
    return show.table(("VERSION", "STATE", "WHY", "ADDED"), rows)


@app.command
def publish(name: str, version: str, *, common: Common = Common()) -> None:
    """Let entitled projects deploy a version; also again, after it was deprecated.

    Example: gpuaas app publish slurm 1.2.0
    """
    with session(common) as at:
        moved = at.client.publish_version(name, version)
    return _told(common, moved, "can be deployed")


@app.command
def deprecate(name: str, version: str, *, reason: str = "", common: Common = Common()) -> None:
    """Warn whoever deploys a version; it still deploys.

    Example: gpuaas app deprecate slurm 1.1.0 --reason "1.2.0 is out, please use it"

    Parameters
    ----------
    reason
        Why, and what to use instead; everybody who meets the version is told.
    """
    with session(common) as at:
        moved = at.client.deprecate_version(name, version, reason=reason)
    return _told(common, moved, "deploys with a warning")


@app.command
def withdraw(name: str, version: str, *, reason: str = "", common: Common = Common()) -> None:
    """Stop new deploys of a version and upgrades to it, for good; what runs stays.

    Example: gpuaas app withdraw slurm 1.1.0 --reason "loses accounting records"

    Parameters
    ----------
    reason
        Why, and what to use instead; everybody who asks for the version is told.
    """
    with session(common) as at:
        moved = at.client.withdraw_version(name, version, reason=reason)
    return _told(common, moved, "can no longer be deployed; what runs stays")


def _told(common: Common, moved: sdk.models.VersionView, now: str) -> None:
    if common.json:
        return show.as_json(moved)
    print(f"{moved.app_slug} {moved.version} is {moved.state}: it {now}.")
    return None


@entitlement.command(name="list")
def list_entitlements(*, common: Common = Common()) -> None:
    """What the project is entitled to, until when, and narrowed how.

    Example: gpuaas entitlement list --project red
    """
    with session(common) as at:
        found = at.client.list_entitlements(at.project_id).items
    if common.json:
        return show.as_json(found)
    if not found:
        print("The project is entitled to nothing yet: gpuaas entitlement enable APP")
        return None
    rows = [(e.app_slug, _state(e), e.expires_at or "-", rules_of(e.overlay) if e.overlay else "-") for e in found]
    return show.table(("APP", "STATE", "UNTIL", "NARROWED TO"), rows)


@entitlement.command
def enable(
    name: str,
    *,
    only: Annotated[list[str], Many] = [],  # noqa: B006 - cyclopts reads the default
    deny: Annotated[list[str], Many] = [],  # noqa: B006
    reason: str | None = None,
    days: int | None = None,
    common: Common = Common(),
) -> None:
    """Let the project deploy an app. An overlay stays until another is given.

    Example: gpuaas entitlement enable slurm --project red
    Example: gpuaas entitlement enable slurm --only regions=eu-west --days 90

    Parameters
    ----------
    name
        The app.
    only
        FIELD=VALUE,VALUE: nothing but these, for this app in this project.
    deny
        FIELD=VALUE,VALUE: never these.
    reason
        Why it is narrowed; everybody it refuses is told.
    days
        After so many days it ends by itself.
    """
    overlay = spoken(only, deny) or None
    ends = days * DAY_S if days else None
    with session(common) as at:
        made = at.client.entitle(at.project_id, app_slug=name, overlay=overlay, reason=reason, expires_in_s=ends)
    if common.json:
        return show.as_json(made)
    until = f" until {made.expires_at}" if made.expires_at else ""
    narrowed = f", narrowed: {rules_of(made.overlay)}" if made.overlay else ""
    print(f"The project may deploy {name}{until}{narrowed}.")
    return None


@entitlement.command
def disable(name: str, *, common: Common = Common()) -> None:
    """Stop new deploys of an app in the project; says what keeps running.

    Example: gpuaas entitlement disable slurm --project red
    """
    with session(common) as at:
        gone = at.client.disentitle(at.project_id, name)
    if common.json:
        return show.as_json(gone)
    stays = f"These keep running: {', '.join(gone.keeps_running)}." if gone.keeps_running else "Nothing of it runs."
    print(f"The project may no longer deploy {name}. {stays}")
    return None


def _state(one: sdk.models.EntitlementView) -> str:
    return "active" if one.active else "expired" if one.enabled else "disabled"
