"""Roles and permissions: `gpuaas iam explain`, `permissions`, `members`, `roles`, `bind`, `unbind`, `invite`.

Commands about the whole tenant are in tenant_iam.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Destroying, Flag, Looking, Tenant
from ..session import Session, pick, session
from .tenant_iam import add_commands

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import ExplainView

app = App(name="iam", help="Manage roles, permissions and invitations.")
add_commands(app)


@app.command
def explain(permission: str, *, who: str | None = None, tenant: str | None = None, common: Looking = Looking()) -> None:
    """Explain why an account has or does not have a permission in the project.

    Example: gpuaas iam explain apps.instance.create
    Example: gpuaas iam explain apps.instance.create --who ada@example.com --project red
    Example: gpuaas iam explain tenancy.user.create --who usr_01h… --tenant acme

    Parameters
    ----------
    permission
        A permission key; a 403 error names the missing key.
    who
        Id, name or e-mail of a member of the project. Default: yourself.
    tenant
        Check in this tenant instead of a project; --who must then be an id.
    """
    with session(common) as at:
        if who is None:
            place = {"tenant_id": at.tenant_id(tenant)} if tenant else {"project_id": at.project_id}
            found = at.client.explain_myself(permission=permission, **place)
        elif tenant:
            found = at.client.explain_in_tenant(at.tenant_id(tenant), permission=permission, principal_id=who)
        else:
            found = at.client.explain(at.project_id, permission=permission, principal_id=_principal(at, who))
    if common.json:
        return show.as_json(found)
    print(f"{found.principal_name} {'may' if found.allowed else 'may not'} {permission}: {found.reason}.")
    return _rules(found)


def _rules(found: ExplainView) -> None:
    if found.matched:
        print()
        rows = [(m.kind, m.role or m.reason or "-", f"{m.scope_kind} {m.scope_id}", m.id) for m in found.matched]
        show.table(("DECIDED BY", "RULE", "SCOPE", "ID"), rows)
    elif not found.allowed and found.roles_that_hold_it:
        print(f"Roles with this permission: {', '.join(found.roles_that_hold_it)}.")


def _principal(at: Session, who: str) -> str:
    if who.startswith(("usr_", "sa_", "node_")):
        return who
    members = at.client.list_project_members(at.project_id).items
    by_mail = [m for m in members if m.email == who]
    return (by_mail[0] if by_mail else pick("member", who, _once(members), "gpuaas iam members")).principal_id


def _once(members: list) -> list:
    return list({m.principal_id: m for m in members}.values())


@app.command
def permissions(*, common: Looking = Looking()) -> None:
    """List your permissions in the project.

    Example: gpuaas iam permissions --project red
    """
    with session(common) as at:
        found = at.client.my_permissions(project_id=at.project_id)
    if common.json:
        return show.as_json(found)
    return print("\n".join(found.permissions))


@app.command
def members(*, common: Looking = Looking()) -> None:
    """List the members of the project, their roles, and whether a role comes from the project or its tenant.

    Example: gpuaas iam members --project red
    """
    with session(common) as at:
        found = at.client.list_project_members(at.project_id).items
    if common.json:
        return show.as_json(found)
    rows = [
        (m.name, m.email or "-", m.kind, m.role, m.scope_kind, "disabled" if m.disabled else "", m.binding_id)
        for m in found
    ]
    return show.table(("NAME", "E-MAIL", "KIND", "ROLE", "FROM", "", "BINDING"), rows)


@app.command
def roles(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the roles of the tenant: system roles and custom roles.

    Example: gpuaas iam roles
    """
    with session(common) as at:
        found = at.client.list_roles(at.tenant_id(tenant)).items
    if common.json:
        return show.as_json(found)
    rows = [
        (r.name, "system" if r.system else "custom", ", ".join(r.bindable_at), str(len(r.permissions))) for r in found
    ]
    return show.table(("ROLE", "KIND", "BINDABLE AT", "PERMISSIONS"), rows)


@app.command
def bind(
    who: str,
    role: str,
    *,
    whole_tenant: Annotated[bool, Flag] = False,
    tenant: str | None = None,
    common: Changing = Changing(),
) -> None:
    """Grant an account a role in the project. You can only grant permissions that you have.

    Example: gpuaas iam bind ada@example.com project_member --project red
    Example: gpuaas iam bind usr_01h… project_viewer --whole-tenant
    Example: gpuaas iam bind ada@acme.example tenant_admin --tenant acme

    Parameters
    ----------
    who
        Id or e-mail of a user, or id of a service account.
    role
        A name from `gpuaas iam roles`.
    whole_tenant
        Grant the role in every project of the tenant.
    tenant
        Grant the role in every project of this tenant (name or id). Platform administrators can name any tenant.
    """
    with session(common) as at:
        tenant_id = at.tenant_id(tenant) if tenant else at.project.tenant_id
        if not who.startswith(("usr_", "sa_")):
            users = list(at.client.every(sdk.Calls.list_users, tenant_id))
            known = [u for u in users if u.email == who]
            who = (known[0] if known else pick("user", who, users, "gpuaas user list")).id
        project_id = None if whole_tenant or tenant else at.project.id
        made = at.client.create_role_binding(tenant_id, principal_id=who, role=role, project_id=project_id)
    if common.json:
        return show.as_json(made)
    print(f"Granted {role} at {made.scope_kind} {made.scope_id}. {made.id}")
    return None


@app.command
def unbind(binding: str, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Revoke a role of an account. The account loses the role at once.

    Example: gpuaas iam unbind bind_01h…

    Parameters
    ----------
    binding
        Id of the role binding, see `gpuaas iam members`.
    """
    with session(common) as at:
        gone = at.client.remove_role_binding(at.tenant_id(tenant), binding)
    if common.json:
        return show.as_json(gone)
    print(f"{gone.principal_id} no longer has {gone.role} at {gone.scope_kind} {gone.scope_id}.")
    return None


@app.command
def invite(
    email: str,
    *,
    name: str | None = None,
    role: str | None = None,
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Invite a person to the tenant. Prints a token that works once, within seven days.

    Example: gpuaas iam invite ada@example.com --role project_member --project red

    Parameters
    ----------
    email
        The e-mail address of the person.
    name
        Display name. Default: the address.
    role
        The person's role after they accept: in the project with --project, otherwise in the whole tenant.
    """
    with session(common) as at:
        project_id = at.project_id if role and common.project else None
        tenant_id = at.project.tenant_id if common.project and not tenant else at.tenant_id(tenant)
        made = at.client.invite(tenant_id, email=email, name=name or email, role=role, project_id=project_id)
        api = at.api
    if common.json:
        return show.as_json(made)
    print(f"{email} is invited until {made.expires_at}. Send them, over a channel you trust:\n")
    print(f"  gpuaas accept --api {api}\n  token: {made.token}")
    return None
