"""`gpuaas grant …`: which certificates for machines work now, and taking one back."""

from __future__ import annotations

from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Destroying, Flag, Looking
from ..session import session

app = App(
    name="grant",
    help="Certificates that controllers and people were given for machines, until they end or are revoked.",
)


@app.command(name="list")
def list_grants(*, revoked: Annotated[bool, Flag] = False, common: Looking = Looking()) -> None:
    """Who can enter which machine now, or is in there, and for which operation.

    Example: gpuaas grant list

    Parameters
    ----------
    revoked
        Also those that were revoked and have not expired yet.
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_access_grants, at.project_id, revoked=revoked or None))
    if common.json:
        return show.as_json(found)
    if not found:
        print("No certificate works now.")
        return None
    rows = [(g.id, g.node_name, g.principal_name, _reason(g), show.ago(g.created_at), _state(g)) for g in found]
    return show.table(("ID", "MACHINE", "GIVEN TO", "FOR", "GIVEN", "STATE"), rows)


def _reason(grant: sdk.models.AccessGrantView) -> str:
    if grant.purpose == "observation":
        return "a look between operations"
    return grant.member_id or f"{grant.operation_id}/{grant.claim_epoch}"


def _state(grant: sdk.models.AccessGrantView) -> str:
    if grant.revoked_at is None:
        return "works"
    return "gone from its machine" if grant.enforced else "revoked, its machine has not said so yet"


@app.command
def revoke(grant: str, /, *, reason: str, common: Destroying = Destroying()) -> None:
    """Take a certificate back: its machine refuses it and ends its sessions within seconds.

    Example: gpuaas grant revoke grant_01m7… --reason "a laptop was stolen"

    Parameters
    ----------
    grant
        Its id.
    reason
        Kept, and told to whoever looks later.
    """
    with session(common) as at:
        done = at.client.revoke_access_grant(at.project_id, grant, reason=reason)
    if common.json:
        return show.as_json(done)
    print(f"{done.id} opens {done.node_name} no more. `gpuaas grant list --revoked` says when its sessions are gone.")
    return None
