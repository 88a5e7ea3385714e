"""Permissions denied to everyone, whatever their role: `gpuaas deny-rule list`, `create`, `remove`."""

from __future__ import annotations

from typing import Any, Literal

from cyclopts import App

from .. import failures, show
from ..failures import CliError
from ..options import Changing, Destroying, Looking, Tenant
from ..session import Session, session

app = App(name="deny-rule", help="Deny permissions to everyone, whatever their roles.")
Level = Literal["platform", "tenant"]
CALLS = {"platform": "{}_platform_deny_rule{}", "tenant": "{}_deny_rule{}"}


def _call(at: Session, verb: str, level: Level, plural: str = "") -> Any:
    return getattr(at.client, CALLS[level].format(verb, plural))


def _where(at: Session, level: Level, tenant: str | None) -> tuple[str, ...]:
    return () if level == "platform" else (at.tenant_id(tenant),)


@app.command(name="list")
def list_rules(*, level: Level = "tenant", tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the deny rules of a tenant and its projects, or of the platform.

    Example: gpuaas deny-rule list
    Example: gpuaas deny-rule list --level platform

    Parameters
    ----------
    level
        `tenant` or `platform`.
    """
    with session(common) as at:
        found = _call(at, "list", level, "s")(*_where(at, level, tenant)).items
    if common.json:
        return show.as_json(found)
    if not found:
        print("No deny rules.")
        return None
    rows = [(", ".join(r.permissions), f"{r.scope_kind} {r.scope_id}", r.reason, r.id) for r in found]
    return show.table(("DENIED", "SCOPE", "REASON", "ID"), rows)


@app.command
def create(
    *permissions: str,
    reason: str,
    level: Level = "tenant",
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Deny permissions to everyone: in the project named with --project, otherwise in the whole tenant.

    Example: gpuaas deny-rule create apps.instance.create --reason "freeze until Monday"
    Example: gpuaas deny-rule create custody.credential.import --project red --reason "audit finding 7"

    Parameters
    ----------
    permissions
        Permission keys, for example apps.instance.create.
    reason
        Shown to everyone whose request is denied.
    level
        `tenant`, or `platform` to deny them on the whole platform.
    """
    if not permissions:
        raise CliError("No permission key was named.", "Add one, for example apps.instance.create.", failures.USAGE)
    with session(common) as at:
        more = {"project_id": at.project_id} if common.project and level == "tenant" else {}
        rule = {"permissions": list(permissions), "reason": reason}
        made = _call(at, "create", level)(*_where(at, level, tenant), **rule, **more)
    if common.json:
        return show.as_json(made)
    print(f"Denied at {made.scope_kind} {made.scope_id}: {', '.join(made.permissions)}. {made.id}")
    return None


@app.command
def remove(rule: str, /, *, level: Level = "tenant", tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Delete a deny rule. Roles grant the permissions again at once.

    Example: gpuaas deny-rule remove deny_01h…

    Parameters
    ----------
    rule
        Id of the rule, see `gpuaas deny-rule list`.
    level
        `tenant` or `platform`.
    """
    with session(common) as at:
        gone = _call(at, "remove", level)(*_where(at, level, tenant), rule)
    if common.json:
        return show.as_json(gone)
    print(f"Deleted the deny rule for {', '.join(gone.permissions)}.")
    return None
