"""What people decide about a machine: `gpuaas node show`, `cordon`, `drain`, `retire`, `wipe`, `readmit` and so on."""

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
    """All about a machine, and what may be done with it now.

    Example: gpuaas node show gpu-box-1

    Parameters
    ----------
    name
        Name or id of the machine.
    """
    with session(common) as at:
        found = at.client.get_node(node_id(at, name, tenant))
    if common.json:
        return show.as_json(found)
    known = [
        ("machine", f"{found.name} ({found.id})"),
        ("state", found.state),
        ("decided", f"{found.standing}{f': {found.standing_reason}' if found.standing_reason else ''}"),
        ("where", f"{found.address}, region {found.region}"),
        ("what", f"{found.sku}: {show.gpus(found.facts)}, {show.size(found.facts)}"),
        ("pool", found.pool or "-"),
        ("agent", str(found.facts.get("agent_version") or "-")),
        ("heard of", show.ago(found.last_seen_at)),
    ]
    offered = [(f"can {a.action}", "yes" if a.allowed else f"no: {a.reason}") for a in found.available_actions]
    return show.facts([*known, *offered])


@node.command
def cordon(name: str, *, reason: Reason = None, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Let a machine take no new allocations; what runs on it stays.

    Example: gpuaas node cordon gpu-box-1 --reason "fan is loud"

    Parameters
    ----------
    name
        Name or id of the machine.
    """
    with session(common) as at:
        found = at.client.cordon_node(node_id(at, name, tenant), reason=reason)
    _told(common, found, "takes no new allocations")


@node.command
def uncordon(name: str, *, reason: Reason = None, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Let a machine take allocations again.

    Example: gpuaas node uncordon gpu-box-1

    Parameters
    ----------
    name
        Name or id of the machine.
    """
    with session(common) as at:
        found = at.client.uncordon_node(node_id(at, name, tenant), reason=reason)
    _told(common, found, "takes allocations again")


@node.command
def drain(name: str, *, reason: Reason = None, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Have a machine emptied: nothing new comes, and what is there is to be released. Then it can be retired.

    Example: gpuaas node drain gpu-box-1 --reason "lease of the rack ends"

    Parameters
    ----------
    name
        Name or id of the machine.
    """
    with session(common) as at:
        found = at.client.drain_node(node_id(at, name, tenant), reason=reason)
    _told(common, found, "is to be emptied")


@node.command
def retire(name: str, *, reason: Reason = None, tenant: Tenant = None, common: Destroying = Destroying()) -> None:
    """Retire an empty machine for good: its tokens and keys stop working at once.

    Example: gpuaas node retire gpu-box-1 --reason "sold"

    Parameters
    ----------
    name
        Name or id of the machine.
    """
    with session(common) as at:
        found = at.client.retire_node(node_id(at, name, tenant), reason=reason)
    _told(common, found, "is retired; its name is free")


@node.command
def wipe(
    name: str,
    *,
    reason: str,
    by_hand: Annotated[bool, Flag] = False,
    tenant: Tenant = None,
    common: Destroying = Destroying(),
) -> None:
    """Wipe a machine again whose wipe failed; or say that somebody cleaned it. Then it is free.

    Example: gpuaas node wipe gpu-box-1 --reason "the disk has space again"
    Example: gpuaas node wipe gpu-box-1 --by-hand --reason "reinstalled it"

    Parameters
    ----------
    name
        Name or id of the machine.
    reason
        Why, for the record.
    by_hand
        The machine is not asked to do anything: you vouch for it.
    """
    with session(common) as at:
        found = at.client.wipe_node(node_id(at, name, tenant), reason=reason, by_hand=by_hand)
    if common.json:
        return show.as_json(found)
    print(f"{name} counts as clean." if by_hand else f"{name} is being wiped: gpuaas task list {name}")
    return None


@node.command
def upgrade(name: str, *, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Have a machine's agent become the version this platform gives out. It keeps its present one if that fails.

    Example: gpuaas node upgrade gpu-box-1

    Parameters
    ----------
    name
        Name or id of the machine.
    """
    with session(common) as at:
        found = at.client.upgrade_agent(node_id(at, name, tenant))
    if common.json:
        return show.as_json(found)
    print(f"{name} tries version {found.arguments['version']}: gpuaas task list {name}")
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
    """Give a machine a new identity: prints one line to run on it. It stays the node it was, with what it holds.

    For a machine that is suspended because its identity was copied, that was installed anew, or that lost its key. The
    former identity is closed when the line is run.

    Example: gpuaas node readmit gpu-box-1 --reason "the cloned disk is wiped"

    Parameters
    ----------
    name
        Name or id of the machine.
    reason
        For the audit trail: why it may come back.
    reached_at
        The platform's address as the machine reaches it, if that is not the one you use.
    """
    with session(common) as at:
        invited = at.client.readmit_node(node_id(at, name, tenant), reason=reason)
        line = enrol_command.line(reached_at or at.api, invited, at.client.get_agent())
    enrol_command.tell(common, invited, line, f"Then: gpuaas node show {invited.node_name}")


@node.command
def pool(name: str, pool: str | None = None, /, *, tenant: Tenant = None, common: Changing = Changing()) -> None:
    """Put a machine into a pool; without a pool's name, take it out of the one it is in.

    Example: gpuaas node pool gpu-box-1 night-shift

    Parameters
    ----------
    name
        Name or id of the machine.
    pool
        Name of the pool; left out, the machine leaves the one it is in.
    """
    with session(common) as at:
        found = at.client.put_node_into_pool(node_id(at, name, tenant), pool=pool)
    _told(common, found, f"is in the pool {found.pool}" if found.pool else "is in no pool")


def node_id(at: Session, name: str, tenant: str | None) -> str:
    if name.startswith("node_"):
        return name
    known = [one for one in at.client.every(sdk.Calls.list_nodes, at.tenant_id(tenant)) if one.state != "retired"]
    return pick("node", name, known, "gpuaas node list").id


def _told(common: Common, found: NodeView, sentence: str) -> None:
    if common.json:
        show.as_json(found)
    else:
        print(f"{found.name} {sentence} ({found.state}).")
