"""What a host must trust at the moment: a generation number and the full picture, applied whole or not at all.

A generation rises with every change; the agent reports the one it applied; allocations become usable (or free) then.
A machine may know more than the store: after a restore, say. Then it is told everything anew, under a number it has
not seen yet, and until it has applied that nothing it said counts.
"""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..access.context import Context
from ..custody import authorities
from ..ledger.events import declare
from .schemas import TrustView
from .tables import allocations, nodes

declare({"capacity.node.retold": "A machine knew of newer trust than the store has; it is told everything anew."})

LOGIN_USER = "root"
LAST_GENERATION = 2_000_000_000  # what a machine may say; the store's column holds more


def trust_of(tx: Connection, node: Row[Any]) -> TrustView:
    held = select(allocations.c.id).where(
        allocations.c.node_id == node.id, allocations.c.state.in_(["requested", "active"])
    )
    return TrustView(
        generation=node.trust_generation,
        user_ca_public_keys=[authorities.public_key(tx, node.tenant_id, "user")],
        principals={LOGIN_USER: [row.id for row in tx.execute(held.order_by(allocations.c.id))]},
        host_certificate=node.host_certificate,
        host_ca_public_key=authorities.public_key(tx, node.tenant_id, "host"),
        login_user=LOGIN_USER,
    )


def next_generation(tx: Connection, node_id: str) -> int:
    bump = update(nodes).where(nodes.c.id == node_id).values(trust_generation=nodes.c.trust_generation + 1)
    return tx.execute(bump.returning(nodes.c.trust_generation)).scalar_one()


def knows_more(node: Row[Any], generation: int) -> bool:
    """Whether the machine has what the store never gave it, or has, and the store never heard so."""
    return generation > node.trust_generation or generation >= node.trust_generation > node.trust_applied


def believable(node: Row[Any], generation: int) -> int:
    return min(generation, max(LAST_GENERATION, node.trust_generation))


def tell_anew(ctx: Context, node: Row[Any], generation: int) -> None:
    newer = {"trust_generation": max(believable(node, generation), node.trust_generation) + 1}
    ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(**newer))
    waiting = (allocations.c.node_id == node.id) & allocations.c.state.in_(["requested", "releasing"])
    ctx.tx.execute(update(allocations).where(waiting).values(**newer))
    ctx.emit("capacity.node.retold", node.id, {"node_name": node.name, "state": node.state})
    ctx.ring(f"node:{node.id}")
