"""Queries for nodes and allocations, used by this room and by others."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Connection, Table, bindparam, exists, select

from ..authz.evaluate import PLATFORM, Scope
from ..authz.ids import TenantId
from ..authz.rules import ScopeAndRules, rules_in, with_rules_at
from ..kit.problems import UNSEEN, NotFound
from ..kit.rows import Query, Statement
from .holds import used_by
from .rows import AllocationId, AllocationRow, NodeRow, PlacedAllocationRow, SeenNodeRow
from .schemas import AllocationView
from .tables import allocations, node_contacts, nodes

_a, _n = allocations.c, nodes.c
_TENANT = select(_n.tenant_id).where(_n.id == bindparam("node"))


def joined_with_node(table: Table, node_id: ColumnElement[str]) -> Statement:
    """Return a query for the rows of `table`,
    joined with the columns of their node that views show (name, region and others)."""
    of_node = (
        _n.name.label("node_name"),
        _n.state.label("node_state"),
        _n.address,
        _n.ssh_port,
        _n.region,
        _n.sku,
        _n.facts,
        _n.tenant_id,
    )
    return select(table, *of_node).join(nodes, _n.id == node_id)


NODES = Query(select(nodes), NodeRow)
SEEN_NODES = Query(
    select(nodes, node_contacts.c.last_seen_at).join(node_contacts, node_contacts.c.node_id == _n.id), SeenNodeRow
)
_SEEN_NODE = SEEN_NODES.where(_n.id == bindparam("node"))
ALLOCATION_STATES = select(_a.id, _a.state).subquery("allocation_states")  # for rooms above, to join with
ALLOCATION_NODES = (
    select(_a.id.label("allocation_id"), _n.id.label("node_id"), _n.name.label("node_name"), _n.trust_applied)
    .join(nodes, _n.id == _a.node_id)
    .subquery("allocation_nodes")
)
ALLOCATIONS = Query(select(allocations), AllocationRow)
PLACED = Query(joined_with_node(allocations, _a.node_id), PlacedAllocationRow)
_NODE = NODES.where(_n.id == bindparam("node"))
_NODE_LOCKED = _NODE.locked()
_ALLOCATION = PLACED.where(_a.id == bindparam("allocation"))
_ALLOCATION_LOCKED = _ALLOCATION.locked(allocations)
_OF_PROJECT = _ALLOCATION.where(_a.project_id == bindparam("project"))
_OF_PROJECT_LOCKED = _OF_PROJECT.locked(allocations)
_SEVERAL = PLACED.where(_a.project_id == bindparam("project"), _a.id.in_(bindparam("ids", expanding=True))).order_by(
    _a.id
)
_SEVERAL_LOCKED = _SEVERAL.locked(allocations)
_LEAVING = ALLOCATIONS.where(_a.node_id == bindparam("node"), _a.state == "releasing", _a.wipe.is_not(None)).locked()
_HOLDING_PROJECT = select(_a.project_id).where(
    _a.node_id == bindparam("node"), _a.state.not_in(("releasing", "released"))
)


def node_row(tx: Connection, node_id: str, *, lock: bool = False) -> NodeRow:
    """Return the node, or raise NotFound. `lock` is for changes of the node or its allocations.
    Lock order: node, allocation, instance."""
    row = (_NODE_LOCKED if lock else _NODE).first(tx, node=node_id)
    if row is None:
        raise NotFound(UNSEEN)
    return row


def node_scope(tx: Connection, node_id: str) -> Scope:
    tenant_id: TenantId | None = tx.execute(_TENANT, {"node": node_id}).scalar()
    if tenant_id is None:
        raise NotFound(UNSEEN)
    return scope_of(node_id, tenant_id)


def scope_of(node_id: str, tenant_id: TenantId) -> Scope:
    return Scope((("node", node_id), ("tenant", tenant_id), PLATFORM), tenant_id=tenant_id)


def holder_of(tx: Connection, node_id: str) -> str | None:
    """Return the project whose allocation holds the node, or None. A releasing allocation does not count."""
    return tx.execute(_HOLDING_PROJECT, {"node": node_id}).scalar()


def nodes_of(tenant_id: str) -> Query[SeenNodeRow]:
    return SEEN_NODES.where(_n.tenant_id == tenant_id)


def seen_node(tx: Connection, node_id: str) -> SeenNodeRow:
    """Return the node with the time of its last contact, or raise NotFound."""
    row = _SEEN_NODE.first(tx, node=node_id)
    if row is None:
        raise NotFound(UNSEEN)
    return row


def allocation_row(tx: Connection, project_id: str, allocation_id: str, *, lock: bool = False) -> PlacedAllocationRow:
    query = _OF_PROJECT_LOCKED if lock else _OF_PROJECT
    row = query.first(tx, project=project_id, allocation=allocation_id)
    if row is None:
        raise NotFound("The project has no such allocation.")
    return row


def find_allocation(tx: Connection, allocation_id: str) -> PlacedAllocationRow | None:
    """Return the allocation of any project, or None. The caller must check that the allocation may be used."""
    return _ALLOCATION.first(tx, allocation=allocation_id)


def lock_allocation(tx: Connection, allocation_id: str) -> PlacedAllocationRow | None:
    """Lock and return the allocation of any project, or None. It cannot be released until the transaction ends."""
    return _ALLOCATION_LOCKED.first(tx, allocation=allocation_id)


def hold_leaving(tx: Connection, node_id: str) -> AllocationRow | None:
    """Lock and return the node's releasing allocation that needs a wipe, or None. The caller has locked the node."""
    return _LEAVING.first(tx, node=node_id)


def allocations_of(project_id: str, state: str | None) -> Query[PlacedAllocationRow]:
    return PLACED.where(_a.project_id == project_id, _in_state(state))


def allocations_in(
    tenant_id: str, *, project_id: str | None, region: str | None, sku: str | None, state: str | None
) -> Query[PlacedAllocationRow]:
    """Return the query for the allocations of all projects of a tenant. A filter that is None matches everything, but
    `state=None` leaves out released allocations."""
    named = ((_a.project_id, project_id), (_n.region, region), (_n.sku, sku))
    wanted = [column == value for column, value in named if value is not None]
    return PLACED.where(_n.tenant_id == tenant_id, _in_state(state), *wanted)


def allocations_by_id(
    tx: Connection, project_id: str, ids: Collection[str], *, lock: bool = False
) -> dict[str, PlacedAllocationRow]:
    """Return the project's allocations with these ids; unknown ids are left out.
    `lock`: they cannot be released until the transaction ends."""
    rows = (_SEVERAL_LOCKED if lock else _SEVERAL).all(tx, project=project_id, ids=list(ids))
    return {row.id: row for row in rows}


def allocation_views(tx: Connection, rows: Collection[PlacedAllocationRow]) -> list[AllocationView]:
    """Return the views of these allocations. The instances that use them are read once for all."""
    users = used_by(tx, [row.id for row in rows])
    return [AllocationView.model_validate(vars(row) | {"in_use_by": users.get(row.id)}) for row in rows]


def allocation_view(tx: Connection, row: PlacedAllocationRow) -> AllocationView:
    return allocation_views(tx, [row])[0]


def on_node(node_id: str, *states: str) -> Statement:
    """Return the SQL query for the ids of a node's allocations, optionally only of those in these states."""
    here = select(_a.id).where(_a.node_id == node_id)
    return here.where(_a.state.in_(states)) if states else here


def nodes_under(tx: Connection, allocation_ids: Collection[str]) -> dict[AllocationId, str]:
    """Return the node id of each allocation."""
    found = tx.execute(select(_a.id, _a.node_id).where(_a.id.in_(allocation_ids)))
    return {AllocationId(allocation): node for allocation, node in found}


def trusts_allocation(allocation_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the SQL condition that the allocation's node has not yet applied
    the trust generation that removes the allocation."""
    return exists().where(_a.id == allocation_id, _n.id == _a.node_id, _n.trust_applied < _a.trust_generation)


_RULED_NODE = with_rules_at(nodes, nodes.c.tenant_id, ("node", nodes.c.id), ("tenant", nodes.c.tenant_id))


def node_with_rules(tx: Connection, node_id: str) -> ScopeAndRules:
    """Return the scope of a node and its deny rules, or raise NotFound. One query reads both, because every request of
    the node's agent needs both."""
    rows = _RULED_NODE.all(tx, place=node_id)
    if not rows:
        raise NotFound(UNSEEN)
    tenant_id = rows[0].tenant_id
    return Scope((("node", node_id), ("tenant", tenant_id), PLATFORM), tenant_id=tenant_id), rules_in(rows)


def _in_state(state: str | None) -> ColumnElement[bool]:
    return _a.state == state if state else _a.state != "released"
