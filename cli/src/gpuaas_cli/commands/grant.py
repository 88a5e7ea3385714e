"""`gpuaas grant …`: certificates for access to hosts, and their revocation."""

from __future__ import annotations

from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Destroying, Flag, Looking
from ..session import session

app = App(
    name="grant",
    help="List and revoke the SSH certificates of controllers and people for access to hosts.",
)


@app.command(name="list")
def list_grants(*, revoked: Annotated[bool, Flag] = False, common: Looking = Looking()) -> None:
    """List the valid SSH certificates: who can access which host, and for which operation.

    Example: gpuaas grant list

    Parameters
    ----------
    revoked
        Include certificates that are revoked but not yet expired.
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_access_grants, at.project_id, revoked=revoked or None))
    if common.json:
        return show.as_json(found)
    if not found:
        print("No valid certificates.")
        return None
    rows = [(g.id, g.node_name, g.principal_name, _reason(g), show.ago(g.created_at), _state(g)) for g in found]
    return show.table(("ID", "NODE", "ISSUED TO", "FOR", "ISSUED", "STATE"), rows)


def _reason(grant: sdk.models.AccessGrantView) -> str:
    if grant.purpose == "observation":
        return "observation"
    return grant.member_id or f"{grant.operation_id}/{grant.claim_epoch}"


def _state(grant: sdk.models.AccessGrantView) -> str:
    if grant.revoked_at is None:
        return "valid"
    return "revoked, confirmed by the host" if grant.enforced else "revoked, not yet confirmed by the host"


@app.command
def revoke(grant: str, /, *, reason: str, common: Destroying = Destroying()) -> None:
    """Revoke an SSH certificate. Within seconds the host rejects the certificate and ends the sessions opened with it.

    Example: gpuaas grant revoke grant_01m7… --reason "a laptop was stolen"

    Parameters
    ----------
    grant
        Id of the certificate, see `gpuaas grant list`.
    reason
        Recorded in the audit trail.
    """
    with session(common) as at:
        done = at.client.revoke_access_grant(at.project_id, grant, reason=reason)
    if common.json:
        return show.as_json(done)
    print(f"{done.id} is revoked on {done.node_name}. Confirmation by the host: gpuaas grant list --revoked")
    return None
