"""Administration of an enrolled node: `gpuaas node show`, `cordon`, `drain`, `retire`, `wipe`, `readmit`, …"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import gpuaas_sdk as sdk

from .. import enrol_command, show
from ..options import Changing, Common, Destroying, Flag, Looking, Reason, Tenant
from ..session import Session, pick, session
from .listing import node

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import NodeView


@node.command(name="show")
def show_node(name: str, *, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """Show a node in detail, with its allowed actions.

    Example: gpuaas node show gpu-box-1

    Parameters
    ----------
    name
        Name or id of the node.
    """
    with session(common) as at:
        found = at.client.get_node(node_id(at, name, tenant))
    if common.json:
        return show.as_json(found)
    known = [
        ("node", f"{found.name} ({found.id})"),
        ("state", found.state),
        ("administrative state", f"{found.standing}{f': {found.standing_reason}' if found.standing_reason else ''}"),
        ("location", f"{found.address}, region {found.region}"),
        ("hardware", f"{found.sku}: {show.gpus(found.facts)}, {show.size(found.facts)}"),
        ("pool", found.pool or "-"),
        ("agent", str(found.facts.get("agent_version") or "-")),
        ("last seen", show.ago(found.last_seen_at)),
    ]
    offered = [(f"{a.action}", "allowed" if a.allowed else f"not allowed: {a.reason}") for a in found.available_actions]
    return show.facts([*known, *offered])


@node.command
def cordon(name: str, *, reason: Reason = None, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Cordon a node, so that it accepts no new allocations. Running work stays.

    Example: gpuaas node cordon gpu-box-1 --reason "fan is loud"

    Parameters
    ----------
    name
        Name or id of the node.
    """
    with session(common) as at:
        found = at.client.cordon_node(node_id(at, name, tenant), reason=reason)
    _print(common, found, "accepts no new allocations")


@node.command
def uncordon(name: str, *, reason: Reason = None, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Uncordon a node, so that it accepts new allocations again.

    Example: gpuaas node uncordon gpu-box-1

    Parameters
    ----------
    name
        Name or id of the node.
    """
    with session(common) as at:
        found = at.client.uncordon_node(node_id(at, name, tenant), reason=reason)
    _print(common, found, "accepts allocations again")


@node.command
def drain(name: str, *, reason: Reason = None, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Drain a node before you retire it: it accepts no new allocations, and its projects are asked to release it.

    Example: gpuaas node drain gpu-box-1 --reason "lease of the rack ends"

    Parameters
    ----------
    name
        Name or id of the node.
    """
    with session(common) as at:
        found = at.client.drain_node(node_id(at, name, tenant), reason=reason)
    _print(common, found, "is draining")


@node.command
def retire(name: str, *, reason: Reason = None, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Retire a node without allocations: remove it from the platform. Its tokens and keys stop working at once.

    Example: gpuaas node retire gpu-box-1 --reason "sold"

    Parameters
    ----------
    name
        Name or id of the node.
    """
    with session(common) as at:
        found = at.client.retire_node(node_id(at, name, tenant), reason=reason)
    _print(common, found, "is retired; its name can be used again")


@node.command
def wipe(
    name: str,
    *,
    reason: str,
    by_hand: Annotated[bool, Flag] = False,
    tenant: Tenant = None,
    common: Destroying = Destroying(),
) -> None:
    """Retry the failed wipe of a node, or declare the node clean with --by-hand. The node is then free.

    Example: gpuaas node wipe gpu-box-1 --reason "the disk has space again"
    Example: gpuaas node wipe gpu-box-1 --by-hand --reason "reinstalled it"

    Parameters
    ----------
    name
        Name or id of the node.
    reason
        Recorded in the audit trail.
    by_hand
        Do not wipe the node: you have cleaned it yourself.
    """
    with session(common) as at:
        found = at.client.wipe_node(node_id(at, name, tenant), reason=reason, by_hand=by_hand)
    if common.json:
        return show.as_json(found)
    print(f"{name} counts as clean." if by_hand else f"{name} is being wiped: gpuaas task list {name}")
    return None


@node.command
def upgrade(name: str, *, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Upgrade a node's agent to the platform's version. If the upgrade fails, the agent keeps its current version.

    Example: gpuaas node upgrade gpu-box-1

    Parameters
    ----------
    name
        Name or id of the node.
    """
    with session(common) as at:
        found = at.client.upgrade_agent(node_id(at, name, tenant))
    if common.json:
        return show.as_json(found)
    print(f"Upgrading {name} to {found.arguments['version']}: gpuaas task list {name}")
    return None


@node.command
def readmit(
    name: str,
    *,
    reason: str,
    reached_at: str | None = None,
    tenant: Tenant = None,
    common: Changing = Changing(),
) -> None:
    """Give a node a new identity. Prints a command to run on the node. The node keeps its id and its allocations.

    Use this command for a node that was copied or reinstalled, or that lost its key. The old identity is rejected as
    soon as the printed command has run.

    Example: gpuaas node readmit gpu-box-1 --reason "the cloned disk is wiped"

    Parameters
    ----------
    name
        Name or id of the node.
    reason
        Recorded in the audit trail.
    reached_at
        The platform's address as seen from the machine. Default: the address that you use.
    """
    with session(common) as at:
        enrolment = at.client.readmit_node(node_id(at, name, tenant), reason=reason)
        line = enrol_command.line(reached_at or at.api, enrolment, at.client.get_agent())
    enrol_command.print_command(common, enrolment, line, f"Next: gpuaas node show {enrolment.node_name}")


@node.command
def pool(name: str, pool: str | None = None, /, *, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Move a node into a pool; without the name of a pool, remove the node from its pool.

    Example: gpuaas node pool gpu-box-1 night-shift

    Parameters
    ----------
    name
        Name or id of the node.
    pool
        Name of the pool. Default: no pool.
    """
    with session(common) as at:
        found = at.client.put_node_into_pool(node_id(at, name, tenant), pool=pool)
    _print(common, found, f"is in the pool {found.pool}" if found.pool else "is in no pool")


def node_id(at: Session, name: str, tenant: str | None) -> str:
    if name.startswith("node_"):
        return name
    known = [one for one in at.client.every(sdk.Calls.list_nodes, at.tenant_id(tenant)) if one.state != "retired"]
    return pick("node", name, known, "gpuaas node list").id


def _print(common: Common, found: NodeView, sentence: str) -> None:
    if common.json:
        show.as_json(found)
    else:
        print(f"{found.name} {sentence} ({found.state}).")
