"""Bringing machines and holding them: `gpuaas node enrol`, `gpuaas allocation create`, `request`, `extend`, `release`.

Adds commands to the `node` and `allocation` groups of listing.py; main.py loads both groups from this module. The
administration of an enrolled machine is in node.py.
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
    """Invite a machine: prints one line to run on it, which works once and for ten minutes.

    Example: gpuaas node enrol gpu-box-1
    Example: gpuaas node enrol gpu-box-1 --tenant acme -o json
    Example: gpuaas node enrol gpu-box-1 --region eu-west --sku h100-8x

    Parameters
    ----------
    name
        What the machine will be called.
    region
        Where it stands; policies allow and deny by this name.
    sku
        What kind of machine it is; policies allow and deny by this name.
    pool
        The tenant's pool it joins (`gpuaas pool list`).
    reached_at
        The platform's address as the machine reaches it, if that is not the one you use.
    """
    with session(common) as at:
        invited = at.client.create_enrolment(at.tenant_id(tenant), node_name=name, region=region, sku=sku, pool=pool)
        line = enrol_command.line(reached_at or at.api, invited, at.client.get_agent())
    enrol_command.tell(common, invited, line, f"Then: gpuaas node list, and gpuaas allocation create {name}")


@allocation.command
def create(
    machine: str,
    *,
    name: str | None = None,
    expires_in_s: int | None = None,
    lost_after_s: int | None = None,
    common: Changing = Changing(),
) -> None:
    """Hold a machine for the project, and wait until the machine itself agreed.

    Example: gpuaas allocation create gpu-box-1 --project research

    Parameters
    ----------
    machine
        Name or id of the node.
    name
        What to call the allocation; the node's name by default.
    expires_in_s
        Seconds after which it is given back, unless something is on it.
    lost_after_s
        Seconds of silence after which the machine is lost; ten minutes by default.
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
        sentence = f"{made.node_name} has not taken up the allocation yet ({made.state})."
        raise CliError(sentence, "Is its agent running? On the machine: gpuaas-agent status", failures.UNAVAILABLE)
    print(f"{made.name} is held: {show.gpus(made.facts)}, {show.size(made.facts)}. {made.id}")
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
    """Hold machines of a kind; the platform picks them. All that were asked for, or none.

    Example: gpuaas allocation request --sku h100-8x --region eu-west --count 2

    Parameters
    ----------
    count
        How many.
    sku
        What kind of machine (`gpuaas sku list`).
    region
        Where (`gpuaas region list`).
    pool
        Only from this pool.
    name
        What to call them: NAME-1, NAME-2 and so on; the machines' own names by default.
    expires_in_s
        Seconds after which they are given back, unless something is on them.
    lost_after_s
        Seconds of silence after which a machine is lost; ten minutes by default.
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
    """Move the end of an allocation's lease, counted from now; without a number it has no end any more.

    Example: gpuaas allocation extend gpu-box-1 --expires-in-s 86400

    Parameters
    ----------
    name
        Name or id of the allocation.
    expires_in_s
        Seconds from now.
    """
    with session(common) as at:
        allocation_id = at.allocation_id(name, at.allocations())
        moved = at.client.extend_allocation(at.project_id, allocation_id, expires_in_s=expires_in_s)
    if common.json:
        return show.as_json(moved)
    print(f"{moved.name} is held {f'until {moved.expires_at}' if moved.expires_at else 'without an end'}.")
    return None


@allocation.command
def release(name: str, *, common: Destroying = Destroying()) -> None:
    """Give a machine back. Refused while an instance is on it.

    Example: gpuaas allocation release gpu-box-1 --project research

    Parameters
    ----------
    name
        Name or id of the allocation, or the name of its machine.
    """
    with session(common) as at:
        allocation_id = at.allocation_id(name, at.allocations())
        gone = at.client.release_allocation(at.project_id, allocation_id)
    if common.json:
        return show.as_json(gone)
    print(f"{gone.name} is being given back; free once the machine forgot it (gpuaas allocation list).")
    return None
