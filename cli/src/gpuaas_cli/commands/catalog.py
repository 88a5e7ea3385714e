"""Apps and their versions, and which project may deploy them: `gpuaas app …` and `gpuaas entitlement …`."""

from __future__ import annotations

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Common
from ..session import session

app = App(name="app", help="Apps and their versions.")


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
