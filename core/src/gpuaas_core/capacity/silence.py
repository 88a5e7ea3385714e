"""Detects silent nodes. Called by housekeeping, and once after a restore.

A node whose poll is overdue becomes `unknown`. It becomes `lost` after ten minutes without contact, or after the time
that its allocation sets. Time in which no core served does not count, because no node could report then.
"""

from dataclasses import dataclass

from sqlalchemy import BigInteger, bindparam, func, select, update

from ..authz.context import Context
from ..authz.ids import TenantId
from ..events.event_log import declare
from ..kit.rows import Query
from .reads import node_row, scope_of
from .states import NODE, STANDINGS
from .tables import allocations, node_contacts, nodes
from .trust import tell_anew

declare(
    {
        "capacity.node.unknown": "A node stopped reporting; its state is unknown.",
        "capacity.node.lost": "A node was marked as lost: it has not reported for a long time.",
    }
)

OVERDUE_MS = 15_000  # a node is silent when its poll is this much overdue
FIRST_MINUTE_MS = 60_000  # nodes that waited for a core to serve again have this time to poll
AT_ONCE = 200  # nodes marked in one transaction
GENERATIONS_LOST = 1_000_000  # a generation issued after the backup must never be reused
LOST_AFTER_S = 600  # default; an allocation may set another value


@dataclass(frozen=True)
class SilentNode:
    id: str
    tenant_id: TenantId
    name: str
    state: str


_COLUMNS = [nodes.c.id, nodes.c.tenant_id, nodes.c.name, nodes.c.state]
_NODES = Query(select(*_COLUMNS), SilentNode)
_STANDING = _NODES.where(nodes.c.state.in_(STANDINGS)).order_by(nodes.c.id).locked(nodes, skip_locked=True)
_PATIENCE_S = func.coalesce(
    select(allocations.c.lost_after_s)
    .where(allocations.c.node_id == nodes.c.id, allocations.c.state != "released")
    .scalar_subquery(),
    LOST_AFTER_S,
)
_HEARD = Query(_NODES.statement.join(node_contacts, node_contacts.c.node_id == nodes.c.id), SilentNode)
_OVERDUE = (
    _HEARD.where(nodes.c.state.in_(STANDINGS), node_contacts.c.due_at < bindparam("due_before"))
    .order_by(nodes.c.id)
    .limit(AT_ONCE)
    .locked(nodes, skip_locked=True)
)
_NOW, _COUNTED_FROM = bindparam("now", type_=BigInteger), bindparam("counted_from", type_=BigInteger)
_TOO_LONG = (
    _HEARD.where(
        nodes.c.state == "unknown",
        node_contacts.c.last_seen_at + 1000 * _PATIENCE_S < _NOW,
        _COUNTED_FROM + 1000 * _PATIENCE_S < _NOW,
    )
    .order_by(nodes.c.id)
    .limit(AT_ONCE)
    .locked(nodes, skip_locked=True)
)
_SET_STATE = update(nodes).where(nodes.c.id == bindparam("node")).values(state=bindparam("to"))


def lose_silent_nodes(ctx: Context, served_since: int = 0) -> int:
    """Mark up to `AT_ONCE` silent nodes as unknown, and up to as many as lost. Return the larger number, so that the
    caller can repeat a full round."""
    if ctx.now - served_since < FIRST_MINUTE_MS:
        return 0
    unknown = _OVERDUE.all(ctx.tx, due_before=ctx.now - OVERDUE_MS)
    _fall(ctx, unknown, "lose")
    lost = _TOO_LONG.all(ctx.tx, now=ctx.now, counted_from=served_since)
    _fall(ctx, lost, "give_up")
    return max(len(unknown), len(lost))


def doubt_all(ctx: Context) -> int:
    """After a restore, issue every node a new trust generation, and mark all reporting nodes as unknown until they have
    applied it. Return the number of nodes."""
    ids = list(ctx.tx.execute(select(nodes.c.id).where(nodes.c.state != "retired").order_by(nodes.c.id)).scalars())
    for node in (node_row(ctx.tx, node_id) for node_id in ids):
        ctx.scope = scope_of(node.id, node.tenant_id)
        tell_anew(ctx, node, node.trust_generation + GENERATIONS_LOST)
    _fall(ctx, _STANDING.all(ctx.tx), "lose")
    return len(ids)


def _fall(ctx: Context, silent: list[SilentNode], action: str) -> None:
    for node in silent:
        state = NODE.after(node.state, action)
        ctx.tx.execute(_SET_STATE, {"node": node.id, "to": state})
        facts = {"node_name": node.name, "state": state}
        ctx.emit(f"capacity.node.{state}", node.id, facts, scope=scope_of(node.id, node.tenant_id))
