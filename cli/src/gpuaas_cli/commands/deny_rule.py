"""What nobody may do, whatever their role: `gpuaas deny-rule list`, `create`, `remove`."""

from __future__ import annotations

from typing import Any, Literal

from cyclopts import App

from .. import failures, show
from ..failures import CliError
from ..options import Changing, Destroying, Looking, Tenant
from ..session import Session, session

app = App(name="deny-rule", help="What nobody may do, whatever their role.")
Level = Literal["platform", "tenant"]
CALLS = {"platform": "{}_platform_deny_rule{}", "tenant": "{}_deny_rule{}"}


def _call(at: Session, verb: str, level: Level, plural: str = "") -> Any:
    return getattr(at.client, CALLS[level].format(verb, plural))


def _where(at: Session, level: Level, tenant: str | None) -> tuple[str, ...]:
    return () if level == "platform" else (at.tenant_id(tenant),)


@app.command(name="list")
def list_rules(*, level: Level = "tenant", tenant: Tenant = None, common: Looking = Looking()) -> None:
    """The deny rules of a tenant and its projects, or of the platform.

    Example: gpuaas deny-rule list
    Example: gpuaas deny-rule list --level platform

    Parameters
    ----------
    level
        Whose.
    """
    with session(common) as at:
        found = _call(at, "list", level, "s")(*_where(at, level, tenant)).items
    if common.json:
        return show.as_json(found)
    if not found:
        print("No deny rules.")
        return None
    rows = [(", ".join(r.permissions), f"{r.scope_kind} {r.scope_id}", r.reason, r.id) for r in found]
    return show.table(("NOBODY MAY", "AT", "WHY", "ID"), rows)


@app.command
def create(
    *permissions: str,
    reason: str,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Take permissions from everybody: in a project with --project, else in the tenant. No role lifts it.

    Example: gpuaas deny-rule create apps.instance.create --reason "freeze until Monday"
    Example: gpuaas deny-rule create custody.credential.import --project red --reason "audit finding 7"

    Parameters
    ----------
    permissions
        Keys of contracts/permissions.json.
    reason
        Why; everybody it refuses is told.
    level
        platform: for everybody on the platform.
    """
    if not permissions:
        raise CliError("What may nobody do?", "Name permission keys: apps.instance.create", failures.USAGE)
    with session(common) as at:
        more = {"project_id": at.project_id} if common.project and level == "tenant" else {}
        said = {"permissions": list(permissions), "reason": reason}
        made = _call(at, "create", level)(*_where(at, level, tenant), **said, **more)
    if common.json:
        return show.as_json(made)
    print(f"Nobody may {', '.join(made.permissions)} at {made.scope_kind} {made.scope_id} any more. {made.id}")
    return None


@app.command
def remove(rule: str, /, *, level: Level = "tenant", tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Take a deny rule away; roles count again at once.

    Example: gpuaas deny-rule remove deny_01h…

    Parameters
    ----------
    rule
        Its id, see `gpuaas deny-rule list`.
    level
        Whose it is.
    """
    with session(common) as at:
        gone = _call(at, "remove", level)(*_where(at, level, tenant), rule)
    if common.json:
        return show.as_json(gone)
    print(f"The rule about {', '.join(gone.permissions)} is gone.")
    return None
