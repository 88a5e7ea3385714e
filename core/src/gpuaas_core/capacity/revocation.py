"""Revokes access before it expires: the host gets the serials, rejects them and ends their sessions.

Called through the grant routes, by the release of an allocation, and by the loop that revokes grants whose
reason no longer holds.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select

from ..authz.context import Context
from ..custody import grants
from ..custody.tables import access_grants
from .tables import allocations, nodes
from .trust import next_generation


def revoke(ctx: Context, rows: Sequence[Row[Any]], reason: str) -> None:
    """Revoke grants for one reason. Nodes are locked in the order in which they are picked."""
    on = select(allocations.c.id, allocations.c.node_id).where(
        allocations.c.id.in_({row.allocation_id for row in rows})
    )
    node_of = {row.id: row.node_id for row in ctx.tx.execute(on)}
    machines = select(nodes.c.id).where(nodes.c.id.in_(set(node_of.values()))).order_by(nodes.c.name, nodes.c.id)
    for node in ctx.tx.execute(machines.with_for_update(key_share=True)).all():
        mine = [row for row in rows if node_of.get(row.allocation_id) == node.id]
        grants.revoke(ctx, mine, reason, next_generation(ctx.tx, node.id))
        ctx.notify(f"node:{node.id}")


def of_allocation(ctx: Context, allocation_id: str, generation: int) -> None:
    """In the trust generation that removes the allocation's principal: once released, none of its sessions is open."""
    mine = (access_grants.c.allocation_id == allocation_id) & grants.live(ctx.now)
    rows = ctx.tx.execute(select(access_grants).where(mine).order_by(access_grants.c.id)).all()
    grants.revoke(ctx, rows, "its allocation was released", generation)
