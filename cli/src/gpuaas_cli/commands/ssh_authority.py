"""`gpuaas ssh-authority …`: the certificate authorities of a tenant and their rotation."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App
from gpuaas_sdk.client.models import AuthoritiesView

from .. import show
from ..options import Changing, Common, Flag, Looking, Tenant
from ..session import session

app = App(
    name="ssh-authority", help="Rotate the SSH certificate authorities of the tenant (user and host certificates)."
)
Purpose = Literal["user", "host"]


def _show(common: Common, found: AuthoritiesView) -> None:
    if common.json:
        return show.as_json(found)
    rows = [
        (a.purpose, str(a.number), a.state, show.ago(a.created_at), a.fingerprint, ", ".join(a.waits_for) or "-")
        for a in found.items
    ]
    return show.table(("PURPOSE", "NUMBER", "STATE", "CREATED", "FINGERPRINT", "WAITS FOR"), rows)


@app.command(name="list")
def list_authorities(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the SSH authorities of the tenant, and which nodes still use an old authority.

    Example: gpuaas ssh-authority list
    """
    with session(common) as at:
        return _show(common, at.client.list_ssh_authorities(at.tenant_id(tenant)))


@app.command
def rotate(purpose: Purpose, /, *, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Rotate an SSH authority: the new authority signs once every node trusts it; then the old authority is retired.

    Example: gpuaas ssh-authority rotate user

    Parameters
    ----------
    purpose
        `user` or `host`.
    """
    with session(common) as at:
        return _show(common, at.client.rotate_ssh_authority(at.tenant_id(tenant), purpose=purpose))


@app.command
def finish(
    purpose: Purpose,
    /,
    *,
    force: Annotated[bool, Flag] = False,
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Advance the rotation of an SSH authority now. It advances automatically once every node trusts the new authority.

    Example: gpuaas ssh-authority finish user --force

    Parameters
    ----------
    purpose
        `user` or `host`.
    force
        Advance although some nodes do not trust the new authority yet (`ssh-authority list` names these nodes). Access
        to a node fails until it does.
    """
    with session(common) as at:
        asked = {"purpose": purpose, "force": force or None}
        return _show(common, at.client.finish_ssh_authority_rotation(at.tenant_id(tenant), **asked))
