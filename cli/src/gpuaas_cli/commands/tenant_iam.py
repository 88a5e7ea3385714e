"""Custom roles, role bindings and invitations of a tenant: more commands of `gpuaas iam`."""

from __future__ import annotations

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Destroying, Looking, Tenant
from ..session import session


def add_commands(app: App) -> None:
    app.command(bindings)
    app.command(create_role, name="create-role")
    app.command(delete_role, name="delete-role")
    app.command(invitations)
    app.command(revoke_invitation, name="revoke-invitation")


def bindings(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List all role bindings of the tenant and its projects.

    Example: gpuaas iam bindings --tenant acme
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_role_bindings, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    rows = [(b.principal_id, b.role, f"{b.scope_kind} {b.scope_id}", show.ago(b.created_at), b.id) for b in found]
    return show.table(("ACCOUNT", "ROLE", "SCOPE", "SINCE", "BINDING"), rows)


def create_role(name: str, /, *permissions: str, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Create a custom role. A role can only contain permissions that you have.

    Example: gpuaas iam create-role night-shift apps.instance.read apps.instance.restart

    Parameters
    ----------
    name
        The role's name: lowercase letters, digits and hyphens.
    permissions
        Permission keys, for example apps.instance.read.
    """
    with session(common) as at:
        made = at.client.create_role(at.tenant_id(tenant), name=name, permissions=list(permissions))
    if common.json:
        return show.as_json(made)
    count = len(made.permissions)
    print(f"Created the role {made.name} with {count} permission(s). Grant it: gpuaas iam bind WHO {made.name}")
    return None


def delete_role(name: str, /, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Delete a custom role that is not bound to any account.

    Example: gpuaas iam delete-role night-shift

    Parameters
    ----------
    name
        A name from `gpuaas iam roles`.
    """
    with session(common) as at:
        gone = at.client.delete_role(at.tenant_id(tenant), name)
    if common.json:
        return show.as_json(gone)
    print(f"Deleted the role {gone.name}.")
    return None


def invitations(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the invitations of the tenant and their states.

    Example: gpuaas iam invitations
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_invitations, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    rows = [(i.email, i.state, i.role or "-", i.invited_by, i.expires_at, i.id) for i in found]
    return show.table(("E-MAIL", "STATE", "ROLE", "INVITED BY", "UNTIL", "ID"), rows, empty="No invitations.")


def revoke_invitation(invitation: str, /, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Revoke an invitation. The token of the invitation stops working.

    Example: gpuaas iam revoke-invitation inv_01h…

    Parameters
    ----------
    invitation
        Id of the invitation, see `gpuaas iam invitations`.
    """
    with session(common) as at:
        gone = at.client.revoke_invitation(at.tenant_id(tenant), invitation)
    if common.json:
        return show.as_json(gone)
    print(f"Revoked the invitation of {gone.email}.")
    return None
