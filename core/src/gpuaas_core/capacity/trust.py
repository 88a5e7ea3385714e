"""The trust generation of a node: a number that rises with each change of what its host must trust (`machine_access`).

The agent reports the generation that it applied; allocations that waited for it become active or released then. A node
may report a newer generation than the database has, for example after a restore. Then its full trust is sent again
under a new number, and its reports of earlier numbers do not count.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from ..authz.context import Context
from ..events.event_log import declare
from .reads import NODES
from .rows import NodeId, NodeRow
from .tables import allocations, nodes

declare(
    {
        "capacity.node.trust_reset": (
            "A node reported newer SSH trust settings than the database has; all settings were sent to the node again."
        )
    }
)

DEAD = ("retired", "lost")  # nodes a rotation of authorities does not wait for
_n = nodes.c
_LIVING = NODES.where(_n.tenant_id == bindparam("tenant"), _n.state != "retired").order_by(_n.name, _n.id).locked()
_ENDING = select(_n.id).where(_n.host_certified_until < bindparam("before"), _n.state != "retired").limit(1)
_BEHIND = (
    select(_n.name)
    .where(_n.tenant_id == bindparam("tenant"), _n.state.not_in(DEAD), _n.trust_applied < _n.authority_generation)
    .order_by(_n.name, _n.id)
)
Change = Mapping[str, str | int | ColumnElement[int]]
HOLDING = ("requested", "active")  # the states in which an allocation has access to its node
LAST_GENERATION = 2_000_000_000  # the largest a node may report; the column holds more


class HasTrust(Protocol):
    @property
    def trust_generation(self) -> int: ...
    @property
    def trust_applied(self) -> int: ...


def lock_nodes(tx: Connection, node_ids: Collection[str]) -> list[NodeId]:
    """Lock these nodes and return their ids. All code locks several nodes in this order, to avoid deadlocks."""
    query = select(nodes.c.id).where(nodes.c.id.in_(node_ids)).order_by(nodes.c.name, nodes.c.id)
    return list(tx.execute(query.with_for_update(key_share=True)).scalars())


def lock_living(tx: Connection, tenant_id: str) -> list[NodeRow]:
    """Lock and return all nodes of a tenant that are not retired."""
    return _LIVING.all(tx, tenant=tenant_id)


def lock_certified(
    tx: Connection, *, tenant_id: str | None = None, ends_before: int | None = None, most: int | None = None
) -> list[NodeRow]:
    """Lock and return the nodes that are not retired: of one tenant, with a host certificate that ends before a time,
    and at most so many. An argument that is None does not restrict the nodes."""
    query = NODES.where(nodes.c.state != "retired")
    query = query if tenant_id is None else query.where(nodes.c.tenant_id == tenant_id)
    query = query if ends_before is None else query.where(nodes.c.host_certified_until < ends_before)
    query = query.order_by(nodes.c.name, nodes.c.id)
    return (query if most is None else query.limit(most)).locked().all(tx)


def certificates_end(tx: Connection, before: int) -> bool:
    return tx.execute(_ENDING, {"before": before}).first() is not None


def behind(tx: Connection, tenant_id: str, most: int) -> list[str]:
    """Return the names of the tenant's nodes that have not applied the last change of an SSH authority,
    except lost and retired nodes."""
    return list(tx.execute(_BEHIND.limit(most), {"tenant": tenant_id}).scalars())


def next_generation(tx: Connection, node_id: str, change: Change | None = None) -> int:
    """Increase the node's trust generation and return the new number. `change`: other columns of the node to write."""
    bump = update(nodes).where(nodes.c.id == node_id)
    bump = bump.values(trust_generation=nodes.c.trust_generation + 1, **(change or {}))
    return tx.execute(bump.returning(nodes.c.trust_generation)).scalar_one()


def next_authority_generation(tx: Connection, node_id: str, change: Change | None = None) -> int:
    """Increase the node's trust generation because an SSH authority changed, and store the new number also as the
    node's `authority_generation`. Return the number."""
    return next_generation(tx, node_id, {"authority_generation": nodes.c.trust_generation + 1} | dict(change or {}))


def knows_more(node: HasTrust, generation: int) -> bool:
    """Return whether the node reports a trust generation that the database never issued,
    or issued but never recorded as applied."""
    return generation > node.trust_generation or generation >= node.trust_generation > node.trust_applied


def believable(node: NodeRow, generation: int) -> int:
    return min(generation, max(LAST_GENERATION, node.trust_generation))


def tell_anew(ctx: Context, node: NodeRow, generation: int) -> None:
    newer = {"trust_generation": max(believable(node, generation), node.trust_generation) + 1}
    ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(**newer))
    waiting = (allocations.c.node_id == node.id) & allocations.c.state.in_(["requested", "releasing"])
    ctx.tx.execute(update(allocations).where(waiting).values(**newer))
    ctx.emit("capacity.node.trust_reset", node.id, {"node_name": node.name, "state": node.state})
    ctx.notify(f"node:{node.id}")
