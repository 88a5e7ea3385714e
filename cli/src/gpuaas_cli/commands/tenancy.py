"""The platform, tenants, projects and users: `gpuaas about`, `tenant …`, `project …`, `user …`."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import failures, show
from ..config import Config
from ..failures import CliError
from ..options import Changing, Destroying, Flag, Looking, Tenant
from ..session import Session, connect, pick, session
from ..wait import print_next

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import PrincipalView, TenantView

tenant_app = App(name="tenant", help="List, show and create tenants.")
project_app = App(name="project", help="List, show and create projects.")
user_app = App(name="user", help="List, create, disable and enable users of a tenant.")


def about(*, common: Looking = Looking()) -> None:
    """Show the version, features and retention periods of a platform. Works without sign-in.

    Example: gpuaas about --api https://gpu.example
    """
    config = Config.effective(common.api, common.context)
    if not config.api:
        raise CliError("No platform address is known.", "Add --api https://…", failures.USAGE)
    with connect(config.api) as client:
        found = client.about()
    if common.json:
        return show.as_json(found)
    print(f"{found.name} {found.version} at {config.api}.")
    offered = [(name.replace("_", " "), _text(value)) for name, value in found.features.items()]
    return show.facts([("issuer", found.issuer), *offered])


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)


@tenant_app.command(name="list")
def list_tenants(*, common: Looking = Looking()) -> None:
    """List the tenants you can see.

    Example: gpuaas tenant list
    """
    with session(common) as at:
        found = _tenants(at)
    if common.json:
        return show.as_json(found)
    return show.table(("NAME", "TITLE", "SINCE", "ID"), [(t.slug, t.name, show.ago(t.created_at), t.id) for t in found])


def _tenants(at: Session) -> list[TenantView]:
    """Return all tenants for platform administrators, otherwise the caller's own tenants."""
    from gpuaas_sdk.client.errors import Denied

    try:
        return list(at.client.every(sdk.Calls.list_tenants))
    except Denied:
        return at.client.whoami().tenants


@tenant_app.command(name="show")
def show_tenant(tenant: Tenant = None, /, *, common: Looking = Looking()) -> None:
    """Show a tenant.

    Example: gpuaas tenant show acme
    """
    with session(common) as at:
        found = at.client.get_tenant(at.tenant_id(tenant))
    if common.json:
        return show.as_json(found)
    return show.facts([("tenant", found.slug), ("title", found.name), ("id", found.id), ("since", found.created_at)])


@tenant_app.command(name="create")
def create_tenant(name: str, /, *, title: str | None = None, common: Changing = Changing()) -> None:
    """Create a tenant (platform administrators).

    Example: gpuaas tenant create acme --title "Acme Corporation"

    Parameters
    ----------
    name
        The tenant's name: lowercase letters, digits and hyphens.
    title
        Display name. Default: the name.
    """
    with session(common) as at:
        made = at.client.create_tenant(slug=name, name=title or name)
    if common.json:
        return show.as_json(made)
    print(f"Created the tenant {made.slug} ({made.id}).")
    return print_next(
        (f"gpuaas user create EMAIL --tenant {made.slug}", "create its first administrator"),
        (f"gpuaas iam bind EMAIL tenant_admin --tenant {made.slug}", "and let them create projects"),
    )


@project_app.command(name="list")
def list_projects(*, common: Looking = Looking()) -> None:
    """List the projects you can see, in all your tenants.

    Example: gpuaas project list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_projects, limit=200))
    if common.json:
        return show.as_json(found)
    rows = [(p.slug, p.name, p.tenant_id, show.ago(p.created_at), p.id) for p in found]
    return show.table(("NAME", "TITLE", "TENANT", "SINCE", "ID"), rows)


@project_app.command(name="show")
def show_project(*, common: Looking = Looking()) -> None:
    """Show the current project, or the project named with --project.

    Example: gpuaas project show --project red
    """
    with session(common) as at:
        found = at.client.get_project(at.project_id)
    if common.json:
        return show.as_json(found)
    facts = [("project", found.slug), ("title", found.name), ("tenant", found.tenant_id)]
    return show.facts([*facts, ("id", found.id), ("since", found.created_at)])


@project_app.command(name="create")
def create_project(
    name: str, /, *, title: str | None = None, tenant: Tenant = None, common: Changing = Changing()
) -> None:
    """Create a project in a tenant.

    Example: gpuaas project create research --title "Research" --tenant acme

    Parameters
    ----------
    name
        The project's name: lowercase letters, digits and hyphens.
    title
        Display name. Default: the name.
    """
    with session(common) as at:
        made = at.client.create_project(at.tenant_id(tenant), slug=name, name=title or name)
    if common.json:
        return show.as_json(made)
    print(f"Created the project {made.slug} ({made.id}). Next: gpuaas iam bind WHO ROLE --project {made.slug}")
    return None


@user_app.command(name="list")
def list_users(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the users of a tenant.

    Example: gpuaas user list
    """
    with session(common) as at:
        found = _users(at, at.tenant_id(tenant))
    if common.json:
        return show.as_json(found)
    rows = [(u.name, u.email or "-", "disabled" if u.disabled else "enabled", u.id) for u in found]
    return show.table(("NAME", "E-MAIL", "STATE", "ID"), rows)


def _users(at: Session, tenant_id: str) -> list[PrincipalView]:
    return list(at.client.every(sdk.Calls.list_users, tenant_id))


def _user_id(at: Session, tenant_id: str, who: str) -> str:
    if who.startswith("usr_"):
        return who
    known = _users(at, tenant_id)
    by_mail = [one for one in known if one.email == who]
    return (by_mail[0] if by_mail else pick("user", who, known, "gpuaas user list")).id


@user_app.command(name="create")
def create_user(
    email: str,
    /,
    *,
    name: str | None = None,
    password_stdin: Annotated[bool, Flag] = False,
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Create a user with a password that you choose. Prefer `gpuaas iam invite`: the invited user chooses the password.

    Example: gpuaas user create ada@example.com --name Ada --password-stdin < password

    Parameters
    ----------
    email
        E-mail address for sign-in.
    name
        Display name. Default: the address.
    password_stdin
        Read the password from standard input instead of asking for it.
    """
    password = sys.stdin.readline().rstrip("\n") if password_stdin else getpass.getpass("Password: ")
    with session(common) as at:
        made = at.client.create_user(at.tenant_id(tenant), email=email, name=name or email, password=password)
    if common.json:
        return show.as_json(made)
    where = f" --tenant {tenant}" if tenant else ""
    print(f"{made.email} can sign in ({made.id}). Grant a role: gpuaas iam bind {made.email} ROLE{where}")
    return None


@user_app.command
def disable(who: str, /, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Disable a user: end all sessions of the user and block sign-in.

    Example: gpuaas user disable ada@example.com

    Parameters
    ----------
    who
        E-mail address, name or id of the user.
    """
    return _decide("disable_user", who, tenant, common, "is signed out and disabled")


@user_app.command
def enable(who: str, /, *, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Re-enable a user, so that the user can sign in again.

    Example: gpuaas user enable ada@example.com

    Parameters
    ----------
    who
        E-mail address, name or id of the user.
    """
    return _decide("enable_user", who, tenant, common, "may sign in again")


def _decide(call: str, who: str, tenant: str | None, common: Changing, now: str) -> None:
    with session(common) as at:
        tenant_id = at.tenant_id(tenant)
        found: PrincipalView = getattr(at.client, call)(tenant_id, _user_id(at, tenant_id, who))
    if common.json:
        return show.as_json(found)
    print(f"{found.name} {now}.")
    return None
