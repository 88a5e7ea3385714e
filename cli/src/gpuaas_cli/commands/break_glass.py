"""Looking into a tenant when it must be: `gpuaas break-glass open`, `approve`, `close`, `list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Common, Looking
from ..session import session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import BreakGlassView

app = App(
    name="break-glass", help="For platform administrators: look into a tenant, announced and for an hour at most."
)


@app.command(name="open")
def open_glass(
    tenant: str,
    *,
    reason: str,
    ticket: str,
    mode: Literal["look", "operate"] = "look",
    minutes: int = 30,
    common: Changing = Changing(),
) -> None:
    """Look into a tenant. It is told at once who, why and for how long, and sees every request.

    Example: gpuaas break-glass open ten_01h… --reason "deploys hang" --ticket OPS-17

    Parameters
    ----------
    tenant
        Name or id of the tenant.
    reason
        Why; the tenant reads it.
    ticket
        Where the matter is tracked.
    mode
        `look` reads only and begins at once; `operate` can change things and needs a second administrator.
    minutes
        How long, at most 60.
    """
    with session(common) as at:
        made = at.client.open_break_glass(
            tenant_id=at.tenant_id(tenant), mode=mode, reason=reason, ticket=ticket, minutes=minutes
        )
    _tell(made, common)


@app.command
def approve(break_glass: str, *, common: Changing = Changing()) -> None:
    """Approve what another administrator asked for; its time begins now.

    Example: gpuaas break-glass approve brk_01h…

    Parameters
    ----------
    break_glass
        Its id, see `gpuaas break-glass list`.
    """
    with session(common) as at:
        _tell(at.client.approve_break_glass(break_glass), common)


@app.command
def close(break_glass: str, *, common: Changing = Changing()) -> None:
    """End it before its time; the tenant is told.

    Example: gpuaas break-glass close brk_01h…

    Parameters
    ----------
    break_glass
        Its id, see `gpuaas break-glass list`.
    """
    with session(common) as at:
        _tell(at.client.close_break_glass(break_glass), common)


@app.command(name="list")
def list_glass(*, tenant: str | None = None, common: Looking = Looking()) -> None:
    """All there were: on the platform, or, as an administrator of a tenant, on that tenant.

    Example: gpuaas break-glass list
    Example: gpuaas break-glass list --tenant ten_01h…

    Parameters
    ----------
    tenant
        Name or id of a tenant; the whole platform if left out.
    """
    with session(common) as at:
        if tenant is None:
            found = list(at.client.every(sdk.Calls.list_break_glass))
        else:
            found = list(at.client.every(sdk.Calls.list_tenant_break_glass, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    rows = [(b.id, b.state, b.mode, b.tenant_id, b.opened_by, b.ticket, b.reason) for b in found]
    return show.table(("ID", "STATE", "MODE", "TENANT", "BY", "TICKET", "WHY"), rows, empty="There were none.")


def _tell(one: BreakGlassView, common: Common) -> None:
    if common.json:
        return show.as_json(one)
    said = {
        "awaiting_approval": f"waits for another administrator: gpuaas break-glass approve {one.id}",
        "active": f"is active until {one.expires_at}; the tenant was told",
    }
    print(f"{one.id} {said.get(one.state, 'has ended; the tenant was told')}.")
    return None
