"""`gpuaas ssh-authority …`: what signs a tenant's certificates, and how one authority takes over from another."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App
from gpuaas_sdk.client.models import AuthoritiesView

from .. import show
from ..options import Changing, Common, Flag, Looking, Tenant
from ..session import session

app = App(
    name="ssh-authority", help="The tenant's SSH authorities: user (who may log in), host (which machine is which)."
)
Purpose = Literal["user", "host"]


def _show(common: Common, found: AuthoritiesView) -> None:
    if common.json:
        return show.as_json(found)
    rows = [
        (a.purpose, str(a.number), a.state, show.ago(a.created_at), a.fingerprint, ", ".join(a.waits_for) or "-")
        for a in found.items
    ]
    return show.table(("PURPOSE", "NUMBER", "STATE", "MADE", "FINGERPRINT", "WAITS FOR"), rows)


@app.command(name="list")
def list_authorities(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """The authorities there are, and who still needs an old one.

    Example: gpuaas ssh-authority list
    """
    with session(common) as at:
        return _show(common, at.client.list_ssh_authorities(at.tenant_id(tenant)))


@app.command
def rotate(purpose: Purpose, /, *, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Begin: the new one is trusted beside the old one, signs once everybody trusts it; then the old one goes.

    Example: gpuaas ssh-authority rotate user

    Parameters
    ----------
    purpose
        user or host
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
    """Take the next step of a rotation now; it comes by itself unless somebody lags.

    Example: gpuaas ssh-authority finish user --force

    Parameters
    ----------
    purpose
        user or host
    force
        Although somebody lags (`ssh-authority list` names them): they are locked out until they have caught up.
    """
    with session(common) as at:
        asked = {"purpose": purpose, "force": force or None}
        return _show(common, at.client.finish_ssh_authority_rotation(at.tenant_id(tenant), **asked))
