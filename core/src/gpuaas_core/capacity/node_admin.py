"""What administrators decide about a node, and what its silence means. Called by the node routes, by its reports and by
housekeeping; the transitions are in `states`.
"""

from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from ..authz.context import Context
from ..events.event_log import declare
from ..identity import node_principals
from ..kit.lifecycle import WrongMoment
from ..kit.problems import Problem
from ..kit.wire import ActionView
from . import allocation_service
from .errors import MachineHeld, NodeHeld
from .reads import node_row, node_scope
from .states import DECISIONS, NODE, SILENT, STANDINGS, UNHEARD
from .tables import allocations, nodes
from .trust import tell_anew

declare(
    {
        "capacity.node.ready": "A node reports and can be allocated.",
        "capacity.node.cordoned": "A node takes no new allocations; existing ones are not affected.",
        "capacity.node.draining": "A node takes no new allocations and is to be emptied.",
        "capacity.node.unknown": "A node has stopped reporting.",
        "capacity.node.lost": "A node has been silent for too long and counts as lost.",
        "capacity.node.retired": "A node was retired; its identity is closed.",
    }
)

UNKNOWN_AFTER_MS = 30_000
GENERATIONS_LOST = 1_000_000  # a generation issued after the backup must never be reused
LOST_AFTER_S = 600  # default; an allocation may set another value


def decide(ctx: Context, node_id: str, action: str, reason: str) -> None:
    """Cordon, uncordon or drain: at once if the node reports, otherwise when it reports again."""
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
    """Only a free node. A pending release of a silent node counts as completed."""
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


def refusal(tx: Connection, node: Row[Any], action: str) -> Problem | None:
    """The error that forbids the action, or None: checked before acting, and to list the available actions."""
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


def actions(tx: Connection, node: Row[Any]) -> list[ActionView]:
    refusals = [(action, refusal(tx, node, action)) for action in DECISIONS]
    return [ActionView(action=name, allowed=no is None, reason=no.detail if no else "") for name, no in refusals]


def reported(ctx: Context, node: Row[Any]) -> None:
    """A report arrived. A new or formerly silent node moves to its standing once it has applied its current trust:
    until then it is unknown who else it lets in."""
    trusts = ctx.tx.execute(select(nodes.c.trust_applied, nodes.c.trust_generation).where(nodes.c.id == node.id)).one()
    action = "report" if node.state in STANDINGS else f"back_to_{node.standing}"
    behind = trusts.trust_applied < trusts.trust_generation
    waits = {"enrolling": trusts.trust_applied == 0} | dict.fromkeys(SILENT, behind)
    state = node.state if waits.get(node.state) else NODE.after(node.state, action)
    ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(last_seen_at=ctx.now, state=state))
    if state != node.state:
        ctx.emit(f"capacity.node.{state}", node.id, {"node_name": node.name, "state": state})


def lose_silent_nodes(ctx: Context) -> int:
    """Silent nodes become unknown, and lost after the time their allocation allows."""
    silent = nodes.c.last_seen_at < ctx.now - UNKNOWN_AFTER_MS
    patience = select(allocations.c.lost_after_s).where(_live(nodes.c.id)).scalar_subquery()
    too_long = nodes.c.last_seen_at + 1000 * func.coalesce(patience, LOST_AFTER_S) < ctx.now
    return _fall(ctx, "lose", nodes.c.state.in_(STANDINGS), silent) + _fall(
        ctx, "give_up", nodes.c.state == "unknown", too_long
    )


def doubt_all(ctx: Context) -> int:
    """After a restore: a node's trust may be newer than the database. It must apply its full trust again."""
    rows = ctx.tx.execute(select(nodes).where(nodes.c.state != "retired").order_by(nodes.c.id)).all()
    for node in rows:
        ctx.scope = node_scope(ctx.tx, node.id)
        tell_anew(ctx, node, node.trust_generation + GENERATIONS_LOST)
    _fall(ctx, "lose", nodes.c.state.in_(STANDINGS))
    return len(rows)


def _fall(ctx: Context, action: str, *which: Any) -> int:
    query = select(nodes).where(*which).order_by(nodes.c.id)
    fallen = ctx.tx.execute(query.with_for_update(key_share=True, skip_locked=True, of=nodes)).all()
    for node in fallen:
        state = NODE.after(node.state, action)
        ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(state=state))
        facts = {"node_name": node.name, "state": state}
        ctx.emit(f"capacity.node.{state}", node.id, facts, scope=node_scope(ctx.tx, node.id))
    return len(fallen)


def replace(ctx: Context, node: Row[Any], by: str) -> None:
    """The same machine enrolled again under another name: retire the former node.

    A held node must be readmitted instead.
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


def _held(tx: Connection, node_id: str) -> list[Row[Any]]:
    return list(tx.execute(select(allocations).where(_live(node_id))))


def _live(node_id: Any) -> Any:
    return (allocations.c.node_id == node_id) & (allocations.c.state != "released")
