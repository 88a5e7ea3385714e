"""What a host must trust now: a generation number and the full state, applied atomically.

The generation rises with every change; the agent reports the one it applied; allocations become usable (or free) then.
A node may report a newer generation than the database has, for example after a restore. Then its full trust is re-sent
under a new number, and until it applied that, its earlier reports do not count.
"""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..authz.context import Context
from ..custody import authorities, grants, task_keys
from ..custody.vault import Vault
from ..events.event_log import declare
from .schemas import TaskKey, TrustView
from .tables import allocations, nodes

declare({"capacity.node.trust_reset": "A node reported newer trust than the database has; full trust was re-sent."})

LOGIN_USER = "root"
HOLDING = ("requested", "active")  # the states in which an allocation may log in
LAST_GENERATION = 2_000_000_000  # the largest a node may report; the column holds more


def trust_of(tx: Connection, vault: Vault, node: Row[Any], now: int) -> TrustView:
    here = select(allocations.c.id).where(allocations.c.node_id == node.id)
    holding = here.where(allocations.c.state.in_(HOLDING)).order_by(allocations.c.id)
    held = list(tx.execute(holding).scalars())
    users = authorities.trusted(tx, node.tenant_id, authorities.USER)
    return TrustView(
        generation=node.trust_generation,
        user_ca_public_keys=[row.public_key for row in users],
        principals={LOGIN_USER: held},
        people=[people_of(allocation_id) for allocation_id in held],
        host_certificate=node.host_certificate,
        host_ca_public_key=host_authorities(tx, node.tenant_id)[-1].public_key,
        login_user=LOGIN_USER,
        revoked_serials=[str(serial) for serial in grants.revoked_serials(tx, here, now)],
        task_keys=[TaskKey(**key) for key in task_keys.public_keys(vault)],
    )


def people_of(allocation_id: str) -> str:
    """The principal of people, separate from the controllers': it logs in as an unprivileged user."""
    return f"{allocation_id}.people"


def host_authorities(tx: Connection, tenant_id: str) -> list[Row[Any]]:
    """All authorities that clients must accept; the signing one last."""
    rows = authorities.trusted(tx, tenant_id, authorities.HOST)
    return sorted(rows, key=lambda row: row.state == "active")


def next_generation(tx: Connection, node_id: str, **more: Any) -> int:
    bump = update(nodes).where(nodes.c.id == node_id)
    bump = bump.values(trust_generation=nodes.c.trust_generation + 1, **more)
    return tx.execute(bump.returning(nodes.c.trust_generation)).scalar_one()


def next_authority_generation(tx: Connection, node_id: str, **more: Any) -> int:
    """A generation that changes an authority: the host trusts (or presents) it only after applying this."""
    return next_generation(tx, node_id, authority_generation=nodes.c.trust_generation + 1, **more)


def knows_more(node: Row[Any], generation: int) -> bool:
    """Whether the node reports trust that the database never issued, or never recorded as applied."""
    return generation > node.trust_generation or generation >= node.trust_generation > node.trust_applied


def believable(node: Row[Any], generation: int) -> int:
    return min(generation, max(LAST_GENERATION, node.trust_generation))


def tell_anew(ctx: Context, node: Row[Any], generation: int) -> None:
    newer = {"trust_generation": max(believable(node, generation), node.trust_generation) + 1}
    ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(**newer))
    waiting = (allocations.c.node_id == node.id) & allocations.c.state.in_(["requested", "releasing"])
    ctx.tx.execute(update(allocations).where(waiting).values(**newer))
    ctx.emit("capacity.node.trust_reset", node.id, {"node_name": node.name, "state": node.state})
    ctx.notify(f"node:{node.id}")
