"""Policies: what may be deployed where. `gpuaas policy show`, `explain`, `list`, `set`, `remove`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import gpuaas_sdk as sdk
from cyclopts import App

from .. import failures, show
from ..failures import CliError
from ..options import Changing, Destroying, Looking, Many
from ..session import Session, session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import EffectiveView, FieldView, PolicyView

app = App(name="policy", help="Manage policies: what may be deployed where.")
Level = Literal["platform", "tenant", "project"]


@app.command(name="show")
def show_effective(*, app: str | None = None, common: Looking = Looking()) -> None:
    """Show the effective policy of the project.

    Example: gpuaas policy show --project red
    Example: gpuaas policy show --project red --app slurm

    Parameters
    ----------
    app
        Include the restrictions of the project's entitlement to this app.
    """
    with session(common) as at:
        found = at.client.get_effective_policy(at.project_id, app_slug=app)
    if common.json:
        return show.as_json(found)
    return _effective(found)


def _effective(found: EffectiveView) -> None:
    show.table(("FIELD", "ALLOWED", "DENIED"), [(f.field, _left(f), ", ".join(f.denied) or "-") for f in found.fields])
    narrowed = [v for f in found.fields for v in f.values if not v.allowed]
    if narrowed:
        print()
        show.table(
            ("NOT ALLOWED", "DECIDED BY", "REASON"), [(str(v.value), v.level or "-", v.reason) for v in narrowed]
        )
    managed = found.enables.get("platform_managed") if found.enables else None
    if managed:
        print(f"\nManaged by the platform: {', '.join(managed)}.")


def _left(field: FieldView) -> str:
    if field.only is not None:
        return ", ".join(field.only) or "nothing"
    return "everything except the denied values" if field.denied else "everything"


@app.command
def explain(field: str, value: str, *, app: str | None = None, common: Looking = Looking()) -> None:
    """Explain whether the policies of the project allow a value of a field, and which policy decides.

    Example: gpuaas policy explain regions eu-west --project red
    Example: gpuaas policy explain operating_modes platform_managed --app slurm

    Parameters
    ----------
    field
        apps, regions, skus, artifact_sources, operating_modes, control_plane_scopes, tenant_boundary_modes or
        runtime_backends.
    value
        A value of the field, for example eu-west.
    app
        Include the restrictions of the project's entitlement to this app.
    """
    with session(common) as at:
        found = at.client.explain_policy(at.project_id, field=field, value=value, app_slug=app)
    if common.json:
        return show.as_json(found)
    print(f"{value} is {'allowed' if found.allowed else 'not allowed'}: {found.reason}.")
    if found.matched:
        print(f"Policies: {', '.join(found.matched)}")
    return None


@app.command(name="list")
def list_policies(*, level: Level = "project", tenant: str | None = None, common: Looking = Looking()) -> None:
    """List the policies of the platform, the tenant or the project (--level).

    Example: gpuaas policy list --project red
    Example: gpuaas policy list --level tenant

    Parameters
    ----------
    level
        platform, tenant or project.
    tenant
        Name or id of the tenant, with --level tenant; not needed if you belong to one tenant.
    """
    with session(common) as at:
        found = list(at.client.every(*_at(at, level, tenant, LISTS)))
    if common.json:
        return show.as_json(found)
    if not found:
        print(f"No policy is set at the {level}.")
        return None
    rows = [(p.name, rules_of(p), p.reason or "-", show.ago(p.updated_at), p.id) for p in found]
    return show.table(("NAME", "RULES", "REASON", "CHANGED", "ID"), rows)


@app.command(name="set")
def set_policy(
    name: str,
    *,
    level: Level = "project",
    only: Annotated[list[str], Many] = [],  # noqa: B006 - cyclopts reads the default
    deny: Annotated[list[str], Many] = [],  # noqa: B006
    enable_managed: Annotated[list[str], Many] = [],  # noqa: B006
    file: str | None = None,
    reason: str | None = None,
    tenant: str | None = None,
    common: Changing = Changing(),
) -> None:
    """Create a policy, or replace the policy of this name. A policy can only restrict what is allowed.

    Example: gpuaas policy set eu-only --level tenant --only regions=eu-west,eu-north --reason "data stays in the EU"
    Example: gpuaas policy set no-a100 --project red --deny skus=a100-80g
    Example: gpuaas policy set offers --level platform --enable-managed slurm

    Parameters
    ----------
    name
        The policy's name. Lowercase letters, digits and hyphens.
    level
        platform, tenant or project.
    only
        FIELD=VALUE,VALUE: allow only these values. FIELD= allows no value. May be repeated.
    deny
        FIELD=VALUE,VALUE: deny these values, whatever other policies allow.
    enable_managed
        Platform only: name of an app that the platform may operate itself.
    file
        Read the rules from a JSON file; `-` for standard input.
    reason
        Shown with every request that the policy refuses.
    tenant
        Name or id of the tenant, with --level tenant; not needed if you belong to one tenant.
    """
    rules = _read(file) if file else read_rules(only, deny)
    policy: dict[str, Any] = {"rules": rules, "reason": reason}
    if enable_managed:
        policy["enables"] = {"platform_managed": enable_managed}
    with session(common) as at:
        before = _find(at, level, tenant, name)
        call, *where = _at(at, level, tenant, SETS)
        made = getattr(at.client, call)(*where, name, **policy, etag=before.etag if before else None)
    if common.json:
        return show.as_json(made)
    done = "Changed" if before else "Created"
    print(f"{done} the {level} policy {name}: {rules_of(made)}. Running instances are not affected.")
    return None


@app.command
def remove(
    name: str, *, level: Level = "project", tenant: str | None = None, common: Destroying = Destroying()
) -> None:
    """Delete a policy. Other policies still apply.

    Example: gpuaas policy remove no-a100 --project red

    Parameters
    ----------
    name
        The policy's name. Lowercase letters, digits and hyphens.
    level
        platform, tenant or project.
    tenant
        Name or id of the tenant, with --level tenant; not needed if you belong to one tenant.
    """
    with session(common) as at:
        before = _find(at, level, tenant, name)
        if before is None:
            raise CliError(f"There is no {level} policy {name}.", "See: gpuaas policy list", failures.NOT_FOUND)
        call, *where = _at(at, level, tenant, REMOVES)
        gone = getattr(at.client, call)(*where, name, etag=before.etag)
    if common.json:
        return show.as_json(gone)
    print(f"Deleted the {level} policy {name}.")
    return None


LISTS: dict[str, Any] = {
    "platform": sdk.Calls.list_platform_policies,
    "tenant": sdk.Calls.list_tenant_policies,
    "project": sdk.Calls.list_project_policies,
}
GETS = {level: f"get_{level}_policy" for level in LISTS}
SETS = {level: f"set_{level}_policy" for level in LISTS}
REMOVES = {level: f"remove_{level}_policy" for level in LISTS}


def _at(at: Session, level: Level, tenant: str | None, calls: dict[str, Any]) -> tuple[Any, ...]:
    places: dict[str, Callable[[], tuple[str, ...]]] = {
        "platform": tuple,
        "tenant": lambda: (at.tenant_id(tenant),),
        "project": lambda: (at.project_id,),
    }
    return calls[level], *places[level]()


def _find(at: Session, level: Level, tenant: str | None, name: str) -> PolicyView | None:
    call, *where = _at(at, level, tenant, GETS)
    try:
        return getattr(at.client, call)(*where, name)
    except sdk.errors.NotFound:
        return None


def read_rules(only: list[str], deny: list[str]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    for word, pairs in (("only", only), ("deny", deny)):
        for one in pairs:
            field, sign, values = one.partition("=")
            if not sign:
                raise CliError(
                    f"Invalid rule {one!r}.", "Write FIELD=VALUE,VALUE, for example --deny skus=a100", failures.USAGE
                )
            rules.setdefault(field, {}).setdefault(word, []).extend(v for v in values.split(",") if v)
    return rules


def _read(file: str) -> dict[str, Any]:
    try:
        return json.loads(sys.stdin.read() if file == "-" else Path(file).read_text())
    except (OSError, ValueError) as error:
        raise CliError(f"Cannot read {file} as JSON: {error}", "Give a JSON object.", failures.USAGE) from error


def rules_of(policy: PolicyView) -> str:
    if not policy.readable:
        return "unreadable, denies everything"
    parts = [
        f"{field} {word} {', '.join(values) or 'nothing'}"
        for field, rule in (policy.rules or {}).items()
        for word, values in rule.items()
    ]
    parts += [f"operates {', '.join(apps)}" for apps in (policy.enables or {}).values()]
    return "; ".join(parts) or "restricts nothing"
