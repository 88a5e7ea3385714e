"""Emergency access to a tenant: `gpuaas break-glass open`, `approve`, `close`, `list`."""

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
    name="break-glass",
    help="Open temporary, announced access to a tenant, for at most one hour (platform administrators).",
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
    """Open temporary access to a tenant. The tenant is notified at once and sees every request.

    Example: gpuaas break-glass open ten_01h… --reason "deploys hang" --ticket OPS-17

    Parameters
    ----------
    tenant
        Name or id of the tenant.
    reason
        Why you need access; shown to the tenant.
    ticket
        Id of the ticket in your ticket system.
    mode
        `look` is read-only and starts at once; `operate` allows changes and needs approval by a second administrator.
    minutes
        Duration of the access in minutes, at most 60.
    """
    with session(common) as at:
        made = at.client.open_break_glass(
            tenant_id=at.tenant_id(tenant), mode=mode, reason=reason, ticket=ticket, minutes=minutes
        )
    _print(made, common)


@app.command
def approve(break_glass: str, *, common: Changing = Changing()) -> None:
    """Approve another administrator's request for access to a tenant. The access starts now.

    Example: gpuaas break-glass approve brk_01h…

    Parameters
    ----------
    break_glass
        Id of the access, see `gpuaas break-glass list`.
    """
    with session(common) as at:
        _print(at.client.approve_break_glass(break_glass), common)


@app.command
def close(break_glass: str, *, common: Changing = Changing()) -> None:
    """End break-glass access to a tenant early. The tenant is notified.

    Example: gpuaas break-glass close brk_01h…

    Parameters
    ----------
    break_glass
        Id of the access, see `gpuaas break-glass list`.
    """
    with session(common) as at:
        _print(at.client.close_break_glass(break_glass), common)


@app.command(name="list")
def list_glass(*, tenant: str | None = None, common: Looking = Looking()) -> None:
    """List all uses of break-glass access on the platform, or with --tenant those on one tenant.

    Example: gpuaas break-glass list
    Example: gpuaas break-glass list --tenant ten_01h…

    Parameters
    ----------
    tenant
        Name or id of a tenant. Default: the whole platform.
    """
    with session(common) as at:
        if tenant is None:
            found = list(at.client.every(sdk.Calls.list_break_glass))
        else:
            found = list(at.client.every(sdk.Calls.list_tenant_break_glass, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    rows = [(b.id, b.state, b.mode, b.tenant_id, b.opened_by, b.ticket, b.reason) for b in found]
    return show.table(
        ("ID", "STATE", "MODE", "TENANT", "OPENED BY", "TICKET", "REASON"), rows, empty="Break-glass was never used."
    )


def _print(one: BreakGlassView, common: Common) -> None:
    if common.json:
        return show.as_json(one)
    states = {
        "awaiting_approval": f"waits for another administrator: gpuaas break-glass approve {one.id}",
        "active": f"is active until {one.expires_at}; the tenant was notified",
    }
    print(f"{one.id} {states.get(one.state, 'has ended; the tenant was notified')}.")
    return None
