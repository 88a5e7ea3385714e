"""Delegated permissions: `gpuaas delegation create`, `list`, `revoke`."""

from __future__ import annotations

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Destroying, Looking
from ..session import session

app = App(name="delegation", help="Delegate your permissions to service accounts.")


@app.command
def create(account: str, *permissions: str, reason: str, days: int = 30, common: Changing = Changing()) -> None:
    """Delegate some of your permissions in the project to a service account, which then acts on your behalf.

    The audit trail records that the service account acts for you. When you lose a permission, the service account loses
    it, too.

    Example: gpuaas delegation create sa_01h… apps.instance.read tenancy.project.read --reason "shared runtime"

    Parameters
    ----------
    account
        Id of a service account of this project or of another project of the tenant.
    permissions
        Permission keys that you have in the project.
    reason
        Recorded in the audit trail and shown with the delegation.
    days
        Duration in days, at most 90.
    """
    with session(common) as at:
        lasts = {"expires_in_s": days * 24 * 3600, "reason": reason}
        made = at.client.create_delegation(at.project_id, grantee_id=account, permissions=list(permissions), **lasts)
    if common.json:
        return show.as_json(made)
    print(f"{made.id}: {account} may {', '.join(made.permissions)} until {made.expires_at}.")
    return None


@app.command(name="list")
def list_delegations(*, common: Looking = Looking()) -> None:
    """List the delegations of the project, ended delegations included.

    Example: gpuaas delegation list --project red
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_delegations, at.project_id))
    if common.json:
        return show.as_json(found)
    rows = [
        (d.id, d.state, d.grantor_id, d.grantee_id, f"{len(d.effective)} of {len(d.permissions)}", d.reason)
        for d in found
    ]
    return show.table(("ID", "STATE", "FROM", "TO", "EFFECTIVE", "REASON"), rows, empty="No delegations.")


@app.command
def revoke(delegation: str, *, common: Destroying = Destroying()) -> None:
    """Revoke a delegation. The service account loses the permissions at once.

    Example: gpuaas delegation revoke dlg_01h…

    Parameters
    ----------
    delegation
        Id of the delegation, see `gpuaas delegation list`.
    """
    with session(common) as at:
        gone = at.client.revoke_delegation(at.project_id, delegation)
    if common.json:
        return show.as_json(gone)
    print(f"{gone.grantee_id} no longer acts on behalf of {gone.grantor_id} here.")
    return None
