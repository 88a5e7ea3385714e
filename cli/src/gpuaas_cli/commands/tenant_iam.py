"""Roles of the tenant's own, who holds what in all of it, and invitations: further commands of `gpuaas iam`."""

from __future__ import annotations

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Destroying, Looking, Tenant
from ..session import session


def hang_on(app: App) -> None:
    app.command(bindings)
    app.command(create_role, name="create-role")
    app.command(delete_role, name="delete-role")
    app.command(invitations)
    app.command(revoke_invitation, name="revoke-invitation")


def bindings(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """Every role given in the tenant and its projects.

    Example: gpuaas iam bindings --tenant acme
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_role_bindings, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    rows = [(b.principal_id, b.role, f"{b.scope_kind} {b.scope_id}", show.ago(b.created_at), b.id) for b in found]
    return show.table(("WHO", "ROLE", "AT", "SINCE", "BINDING"), rows)


def create_role(name: str, /, *permissions: str, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Make a role of the tenant's own; nobody puts into it what they do not hold.

    Example: gpuaas iam create-role night-shift apps.instance.read apps.instance.restart

    Parameters
    ----------
    name
        Small letters, digits and dashes.
    permissions
        Keys of contracts/permissions.json.
    """
    with session(common) as at:
        made = at.client.create_role(at.tenant_id(tenant), name=name, permissions=list(permissions))
    if common.json:
        return show.as_json(made)
    print(f"The role {made.name} holds {len(made.permissions)} permission(s). Give it: gpuaas iam bind WHO {made.name}")
    return None


def delete_role(name: str, /, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Delete a role of the tenant's own.

    Example: gpuaas iam delete-role night-shift

    Parameters
    ----------
    name
        As `gpuaas iam roles` shows it.
    """
    with session(common) as at:
        gone = at.client.delete_role(at.tenant_id(tenant), name)
    if common.json:
        return show.as_json(gone)
    print(f"The role {gone.name} is gone.")
    return None


def invitations(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """Who is invited to the tenant, by whom, and whether they came.

    Example: gpuaas iam invitations
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_invitations, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    rows = [(i.email, i.state, i.role or "-", i.invited_by, i.expires_at, i.id) for i in found]
    return show.table(("E-MAIL", "STATE", "ROLE", "INVITED BY", "UNTIL", "ID"), rows, empty="Nobody is invited.")


def revoke_invitation(invitation: str, /, *, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Take an invitation back; its token opens nothing any more.

    Example: gpuaas iam revoke-invitation inv_01h…

    Parameters
    ----------
    invitation
        Its id, see `gpuaas iam invitations`.
    """
    with session(common) as at:
        gone = at.client.revoke_invitation(at.tenant_id(tenant), invitation)
    if common.json:
        return show.as_json(gone)
    print(f"The invitation of {gone.email} is taken back.")
    return None
