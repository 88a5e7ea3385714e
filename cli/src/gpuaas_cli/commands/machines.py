"""Enrolment and allocation: `gpuaas node enrol`, `gpuaas allocation create`, `request`, `extend`, `release`.

Adds commands to the `node` and `allocation` groups of listing.py; main.py loads both groups from this module. The
administration of an enrolled node is in node.py.
"""

from __future__ import annotations

import time
from typing import Any

import gpuaas_sdk as sdk

from .. import enrol_command, failures, show
from ..failures import CliError
from ..options import Changing, Destroying, Tenant
from ..session import pick, session
from . import node as _node_commands  # noqa: F401 - adds commands to the `node` group
from .listing import allocation, node

__all__ = ["allocation", "node"]

PATIENCE_S = 60


@node.command
def enrol(
    name: str,
    *,
    region: str | None = None,
    sku: str | None = None,
    pool: str | None = None,
    tenant: Tenant = None,
    reached_at: str | None = None,
    common: Changing = Changing(),
) -> None:
    """Enrol a machine as a node. Prints a command to run on the machine, valid once and for ten minutes.

    Example: gpuaas node enrol gpu-box-1
    Example: gpuaas node enrol gpu-box-1 --tenant acme -o json
    Example: gpuaas node enrol gpu-box-1 --region eu-west --sku h100-8x

    Parameters
    ----------
    name
        Name of the new node.
    region
        Region of the node, see `gpuaas region list`; policies can restrict regions.
    sku
        Machine type (SKU) of the node, see `gpuaas sku list`; policies can restrict SKUs.
    pool
        Pool of the node, see `gpuaas pool list`.
    reached_at
        The platform's address as seen from the machine. Default: the address that you use.
    """
    with session(common) as at:
        enrolment = at.client.create_enrolment(at.tenant_id(tenant), node_name=name, region=region, sku=sku, pool=pool)
        line = enrol_command.line(reached_at or at.api, enrolment, at.client.get_agent())
    enrol_command.print_command(
        common, enrolment, line, f"Next: gpuaas node list, then gpuaas allocation create {name}"
    )


@allocation.command
def create(
    machine: str,
    *,
    name: str | None = None,
    expires_in_s: int | None = None,
    lost_after_s: int | None = None,
    common: Changing = Changing(),
) -> None:
    """Allocate a node to the project, and wait until the node confirms the allocation.

    Example: gpuaas allocation create gpu-box-1 --project research

    Parameters
    ----------
    machine
        Name or id of the node.
    name
        The allocation's name. Default: the node's name.
    expires_in_s
        Seconds after which the allocation is released, unless an instance uses it.
    lost_after_s
        Seconds without a heartbeat after which the node counts as lost. Default: ten minutes.
    """
    with session(common) as at:
        node_id = machine
        if not machine.startswith("node_"):
            known = list(at.client.every(sdk.Calls.list_nodes, at.project.tenant_id))
            node_id = pick("node", machine, known, "gpuaas node list").id
        terms: dict[str, Any] = {"expires_in_s": expires_in_s, "lost_after_s": lost_after_s}
        made = at.client.create_allocation(at.project_id, node_id=node_id, name=name, **terms)
        deadline = time.monotonic() + PATIENCE_S
        while made.state == "requested" and time.monotonic() < deadline:
            time.sleep(0.3)
            made = at.client.get_allocation(at.project_id, made.id)
    if common.json:
        return show.as_json(made)
    if made.state != "active":
        sentence = f"{made.node_name} has not confirmed the allocation yet ({made.state})."
        raise CliError(sentence, "Check its agent on the host: gpuaas-agent status", failures.UNAVAILABLE)
    print(f"Allocated {made.name}: {show.gpus(made.facts)}, {show.size(made.facts)}. {made.id}")
    return None


@allocation.command
def request(
    *,
    count: int = 1,
    sku: str | None = None,
    region: str | None = None,
    pool: str | None = None,
    name: str | None = None,
    expires_in_s: int | None = None,
    lost_after_s: int | None = None,
    common: Changing = Changing(),
) -> None:
    """Allocate nodes of a machine type; the platform chooses them. Allocates all requested nodes, or none.

    Example: gpuaas allocation request --sku h100-8x --region eu-west --count 2

    Parameters
    ----------
    count
        Number of nodes.
    sku
        Machine type, see `gpuaas sku list`.
    region
        Region, see `gpuaas region list`.
    pool
        Allocate only nodes of this pool.
    name
        Prefix of the allocations' names: NAME-1, NAME-2, …. Default: the nodes' names.
    expires_in_s
        Seconds after which the allocations are released, unless an instance uses them.
    lost_after_s
        Seconds without a heartbeat after which a node counts as lost. Default: ten minutes.
    """
    with session(common) as at:
        kind: dict[str, Any] = {"sku": sku, "region": region, "pool": pool}
        terms: dict[str, Any] = {"expires_in_s": expires_in_s, "lost_after_s": lost_after_s}
        made = at.client.request_allocations(at.project_id, count=count, name=name, **kind, **terms)
    if common.json:
        return show.as_json(made.items)
    rows = [(a.name, a.node_name, a.state, a.region, a.sku, str(a.gpus), a.id) for a in made.items]
    return show.table(("NAME", "NODE", "STATE", "REGION", "SKU", "GPUS", "ID"), rows)


@allocation.command
def extend(name: str, *, expires_in_s: int | None = None, common: Changing = Changing()) -> None:
    """Change the end of an allocation's lease. Without --expires-in-s the lease has no end.

    Example: gpuaas allocation extend gpu-box-1 --expires-in-s 86400

    Parameters
    ----------
    name
        Name or id of the allocation.
    expires_in_s
        Seconds from now until the lease ends.
    """
    with session(common) as at:
        allocation_id = at.allocation_id(name, at.allocations())
        moved = at.client.extend_allocation(at.project_id, allocation_id, expires_in_s=expires_in_s)
    if common.json:
        return show.as_json(moved)
    print(f"{moved.name} is allocated {f'until {moved.expires_at}' if moved.expires_at else 'without an end date'}.")
    return None


@allocation.command
def release(name: str, *, common: Destroying = Destroying()) -> None:
    """Release an allocation, so that its node is free again. Refused while an instance uses the allocation.

    Example: gpuaas allocation release gpu-box-1 --project research

    Parameters
    ----------
    name
        Name or id of the allocation, or the name of its node.
    """
    with session(common) as at:
        allocation_id = at.allocation_id(name, at.allocations())
        gone = at.client.release_allocation(at.project_id, allocation_id)
    if common.json:
        return show.as_json(gone)
    print(f"Releasing {gone.name}. It is free after the node confirms: gpuaas allocation list")
    return None
