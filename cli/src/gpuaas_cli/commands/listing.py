"""Lists of apps, allocations and nodes: `gpuaas catalog`, `allocation list`, `node list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Common, Looking, Tenant
from ..session import session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import AllocationView

allocation = App(name="allocation", help="Allocate nodes to a project, and release them.")
node = App(name="node", help="Manage the nodes of a tenant.")


def catalog(*, common: Looking = Looking()) -> None:
    """List the apps, and whether the project can deploy each app.

    Example: gpuaas catalog
    Example: gpuaas catalog --project red -o json
    """
    with session(common) as at:
        entries = at.client.get_catalog(at.project_id).items
        if common.json:
            return show.as_json(entries)
        if not entries:
            print("The catalog is empty. Ask your platform administrator to publish an app.")
            return None
    rows = [(e.app.slug, e.version or "-", "; ".join([e.reason, *e.warnings]), e.app.description) for e in entries]
    return show.table(("APP", "VERSION", "STATE", "DESCRIPTION"), rows)


@allocation.command(name="list")
def list_allocations(*, state: str | None = None, tenant: str | None = None, common: Looking = Looking()) -> None:
    """List the nodes allocated to the project, with hardware and use.

    Example: gpuaas allocation list
    Example: gpuaas allocation list --state active -o json
    Example: gpuaas allocation list --tenant acme

    Parameters
    ----------
    state
        List only allocations in this state: requested, active or released.
    tenant
        List the allocations of all projects of this tenant (tenant administrators).
    """
    with session(common) as at:
        if tenant:
            return _of_tenant(
                list(at.client.every(sdk.Calls.list_tenant_allocations, at.tenant_id(tenant), state=state)), common
            )
        found = list(at.client.every(sdk.Calls.list_allocations, at.project_id, state=state))
    if common.json:
        return show.as_json(found)
    if not found:
        print("The project has no allocations. A tenant administrator can allocate nodes to it.")
        return None
    rows = [(a.name, a.node_name, a.state, show.gpus(a.facts), show.size(a.facts), _user(a), a.id) for a in found]
    return show.table(("NAME", "NODE", "STATE", "GPUS", "SIZE", "USED BY", "ID"), rows)


@allocation.command(name="show")
def show_allocation(name: str, /, *, common: Looking = Looking()) -> None:
    """Show an allocation in detail: node, lease and use.

    Example: gpuaas allocation show gpu-box-1

    Parameters
    ----------
    name
        Name or id of the allocation, or the name of its node.
    """
    with session(common) as at:
        which = name if name.startswith("alloc_") else at.allocation_id(name, at.allocations())
        found = at.client.get_allocation(at.project_id, which)
    if common.json:
        return show.as_json(found)
    return show.facts(
        [
            ("allocation", found.name),
            ("state", found.state),
            ("node", f"{found.node_name} ({found.address}), {found.node_state}"),
            ("hardware", f"{show.gpus(found.facts)}, {show.size(found.facts)}"),
            ("used by", _user(found)),
            ("until", found.expires_at or "no end date"),
            ("overdue since", found.overdue_since or ""),
            ("wipe", found.wipe or ""),
            ("id", found.id),
        ]
    )


def _of_tenant(found: list[AllocationView], common: Common) -> None:
    if common.json:
        return show.as_json(found)
    rows = [(a.name, a.project_id, a.node_name, a.state, a.region, a.sku, str(a.gpus), _user(a), a.id) for a in found]
    return show.table(("NAME", "PROJECT", "NODE", "STATE", "REGION", "SKU", "GPUS", "USED BY", "ID"), rows)


def _user(allocation: AllocationView) -> str:
    return allocation.in_use_by.instance_name if allocation.in_use_by else "-"


@node.command(name="list")
def list_nodes(*, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the nodes of the tenant.

    Example: gpuaas node list
    Example: gpuaas node list --tenant acme -o json
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_nodes, at.tenant_id(tenant)))
    if common.json:
        return show.as_json(found)
    if not found:
        print("The tenant has no nodes yet. Enrol one: gpuaas node enrol NAME")
        return None
    rows = [
        (
            n.name,
            n.state,
            n.address,
            n.region,
            n.sku,
            show.gpus(n.facts),
            show.size(n.facts),
            show.ago(n.last_seen_at),
            n.id,
        )
        for n in found
    ]
    return show.table(("NAME", "STATE", "ADDRESS", "REGION", "SKU", "GPUS", "SIZE", "LAST SEEN", "ID"), rows)
