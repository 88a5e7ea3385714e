"""Adds nodes and applies decisions of administrators (cordon, uncordon, drain, retire). Called by the node routes and
by enrolment; the transitions are in `states`."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..events.event_log import declare
from ..identity import node_principals
from ..kit.json_types import Json
from ..kit.lifecycle import WrongMoment
from ..kit.problems import Problem
from ..kit.wire import ActionView
from . import allocation_service
from .errors import MachineHeld, NodeHeld
from .reads import ALLOCATIONS, NODES, node_row
from .rows import AllocationRow, NodeRow
from .states import DECISIONS, NODE, UNHEARD
from .tables import allocations, nodes

declare(
    {
        "capacity.node.ready": "A node became ready: it reports and can be allocated.",
        "capacity.node.cordoned": (
            "A node was cordoned: it accepts no new allocations. Existing allocations are not affected."
        ),
        "capacity.node.draining": (
            "The drain of a node was started: the node accepts no new allocations, and existing allocations should be "
            "released."
        ),
        "capacity.node.retired": "A node was retired; its keys are rejected from now on.",
    }
)


_n, _a = nodes.c, allocations.c
_HELD = ALLOCATIONS.where(_a.node_id == bindparam("node"), _a.state != "released")
_NAMED = select(_n.id).where(_n.tenant_id == bindparam("tenant"), _n.state != "retired", _n.name == bindparam("name"))
_WITH_HOST_KEY = NODES.where(
    _n.tenant_id == bindparam("tenant"), _n.ssh_host_public_key == bindparam("key"), _n.state != "retired"
).order_by(_n.id)


def decide(ctx: Context, node_id: str, action: str, reason: str) -> None:
    """Cordon, uncordon or drain a node: at once if the node reports, otherwise as soon as it reports again."""
    node = node_row(ctx.tx, node_id, lock=True)
    if problem := refusal(ctx.tx, node, action):
        raise problem
    standing = NODE.after(node.standing, action)
    state = NODE.after(node.state, action)
    change = {"standing": standing, "state": state, "standing_reason": reason or None}
    ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(**change))
    ctx.resource_id = node_id
    ctx.emit(f"capacity.node.{standing}", node_id, {"node_name": node.name, "state": state, "reason": reason})


def retire(ctx: Context, node_id: str, reason: str) -> None:
    """Retire a node, or raise NodeHeld if an allocation holds it. On a silent node a pending release counts as done."""
    node = node_row(ctx.tx, node_id, lock=True)
    if problem := refusal(ctx.tx, node, "retire"):
        raise problem
    for row in _held(ctx.tx, node_id):
        allocation_service.finish(ctx, row, node.tenant_id)
    change = {"state": NODE.after(node.state, "retire"), "standing_reason": reason or None}
    ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(**change))
    node_principals.close_node_principal(ctx.tx, node_id, ctx.now)
    ctx.rights_changed(node_id)
    ctx.resource_id = node_id
    ctx.emit("capacity.node.retired", node_id, {"node_name": node.name, "state": "retired", "reason": reason})
    ctx.notify(f"node:{node_id}")


def refusal(tx: Connection, node: NodeRow, action: str) -> Problem | None:
    """Return the error that forbids the action, or None if the action is allowed.
    Called before the action, and to list the available actions."""
    try:
        NODE.after(node.state, action)
        if action not in ("retire", "readmit"):
            NODE.after(node.standing, action)
    except WrongMoment as problem:
        return problem
    held = _held(tx, node.id) if action == "retire" else []
    waiting = [row for row in held if row.state != "releasing" or node.state not in UNHEARD]
    if waiting:
        return NodeHeld(f"The node {node.name!r} is held by the allocation {waiting[0].name!r} ({waiting[0].id}).")
    return None


def actions(tx: Connection, node: NodeRow) -> list[ActionView]:
    refusals = [(action, refusal(tx, node, action)) for action in DECISIONS]
    return [ActionView(action=name, allowed=no is None, reason=no.detail if no else "") for name, no in refusals]


def replace(ctx: Context, node: NodeRow, by: str) -> None:
    """Retire the former node of a machine that enrolled again under another name.

    Raises MachineHeld if an allocation holds the former node, which must then be readmitted instead.
    """
    if held := _held(ctx.tx, node.id):
        raise MachineHeld(
            f"This machine is the node {node.name!r}, held by the allocation {held[0].name!r} ({held[0].id})."
        )
    change = {"state": NODE.after(node.state, "replace"), "standing_reason": f"replaced by {by}"}
    ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(**change))
    node_principals.close_node_principal(ctx.tx, node.id, ctx.now)
    ctx.rights_changed(node.id)
    data = {"node_name": node.name, "state": "retired", "reason": change["standing_reason"]}
    ctx.emit("capacity.node.retired", node.id, data)
    ctx.notify(f"node:{node.id}")


def _held(tx: Connection, node_id: str) -> list[AllocationRow]:
    return _HELD.all(tx, node=node_id)


def name_taken(tx: Connection, tenant_id: str, name: str) -> bool:
    return tx.execute(_NAMED, {"tenant": tenant_id, "name": name}).first() is not None


def add_node(tx: Connection, node: NodeRow) -> bool:
    """Insert the node and return True, or return False if the tenant has a node of this name that is not retired."""
    try:
        with tx.begin_nested():
            tx.execute(insert(nodes).values(**vars(node)))
    except IntegrityError:
        return False
    return True


def with_host_key(tx: Connection, tenant_id: str, host_key: str) -> list[NodeRow]:
    """Return the nodes of a tenant with this SSH host key that are not retired."""
    return _WITH_HOST_KEY.all(tx, tenant=tenant_id, key=host_key)


def suspend_node(tx: Connection, node: NodeRow, reason: str) -> None:
    change = {"state": NODE.after(node.state, "suspend"), "standing_reason": reason}
    tx.execute(update(nodes).where(nodes.c.id == node.id).values(**change))


def rejoin_node(tx: Connection, node: NodeRow, change: Mapping[str, str | int | Json]) -> str:
    """Write `change` (new facts and host certificate) to a node that enrolled again, and return its new state."""
    state = NODE.after(node.state, "rejoin")
    standing_reason = None if node.state == "suspended" else node.standing_reason
    trust = {"trust_generation": node.trust_generation + 1, "trust_applied": 0}
    tx.execute(
        update(nodes)
        .where(nodes.c.id == node.id)
        .values(state=state, standing_reason=standing_reason, **trust, **change)
    )
    return state
