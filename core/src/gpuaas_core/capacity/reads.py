"""Reads of nodes and allocations, also for other rooms."""

from typing import Any

from sqlalchemy import Connection, Row, Select, select

from ..authz.evaluate import PLATFORM, Scope
from ..kit.problems import UNSEEN, NotFound
from .schemas import AllocationView, UsedBy
from .tables import allocations, nodes


def node_row(tx: Connection, node_id: str, *, lock: bool = False) -> Row[Any]:
    """`lock`: to change the node or its allocations. Lock order: node, allocation, instance."""
    query = select(nodes).where(nodes.c.id == node_id)
    row = tx.execute(query.with_for_update(key_share=True) if lock else query).first()
    if row is None:
        raise NotFound(UNSEEN)
    return row


def node_scope(tx: Connection, node_id: str) -> Scope:
    row = node_row(tx, node_id)
    return Scope((("node", row.id), ("tenant", row.tenant_id), PLATFORM), tenant_id=row.tenant_id)


def holder_of(tx: Connection, node_id: str) -> str | None:
    """The project whose allocation holds the node now; a releasing allocation does not."""
    a = allocations.c
    held = select(a.project_id).where(a.node_id == node_id, a.state.not_in(("releasing", "released")))
    return tx.execute(held).scalar()


def nodes_of(tenant_id: str) -> Select[Any]:
    return select(nodes).where(nodes.c.tenant_id == tenant_id)


def allocation_row(tx: Connection, project_id: str, allocation_id: str, *, lock: bool = False) -> Row[Any]:
    query = _with_node(project_id).where(allocations.c.id == allocation_id)
    row = tx.execute(_locked(query) if lock else query).first()
    if row is None:
        raise NotFound("The project has no such allocation.")
    return row


def hold_leaving(tx: Connection, node_id: str) -> Row[Any] | None:
    """The releasing allocation with a pending wipe, locked; the caller has locked the node."""
    a = allocations.c
    leaving = select(allocations).where(a.node_id == node_id, a.state == "releasing", a.wipe.is_not(None))
    return tx.execute(leaving.with_for_update(key_share=True)).first()


def allocations_of(project_id: str, state: str | None) -> Select[Any]:
    return _with_node(project_id).where(_in_state(state))


def allocations_in(
    tenant_id: str, *, project_id: str | None, region: str | None, sku: str | None, state: str | None
) -> Select[Any]:
    """Of all projects of a tenant; a node and its allocation always belong to the same tenant."""
    named = {allocations.c.project_id: project_id, nodes.c.region: region, nodes.c.sku: sku}
    wanted = [column == value for column, value in named.items() if value is not None]
    query = joined_with_node(allocations, allocations.c.node_id)
    return query.where(nodes.c.tenant_id == tenant_id, _in_state(state), *wanted)


def allocations_by_id(tx: Connection, project_id: str, ids: list[str], *, lock: bool = False) -> dict[str, Row[Any]]:
    """`lock`: they cannot be released while something is placed on them."""
    query = _with_node(project_id).where(allocations.c.id.in_(ids)).order_by(allocations.c.id)
    rows = tx.execute(_locked(query) if lock else query)
    return {row.id: row for row in rows}


def allocation_view(row: Row[Any], used_by: dict[str, UsedBy]) -> AllocationView:
    return AllocationView.model_validate(dict(row._mapping) | {"in_use_by": used_by.get(row.id)})


def joined_with_node(table: Any, node_id: Any) -> Select[Any]:
    """Rows of resources on a node, with the node's columns that people want to see."""
    of_node = [
        nodes.c.name.label("node_name"),
        nodes.c.state.label("node_state"),
        nodes.c.address,
        nodes.c.ssh_port,
        nodes.c.region,
        nodes.c.sku,
        nodes.c.facts,
        nodes.c.tenant_id,
    ]
    query: Any = select(table, *of_node)
    return query.join(nodes, nodes.c.id == node_id)


def _in_state(state: str | None) -> Any:
    return allocations.c.state == state if state else allocations.c.state != "released"


def _locked(query: Select[Any]) -> Select[Any]:
    return query.with_for_update(key_share=True, of=allocations)


def _with_node(project_id: str) -> Select[Any]:
    return joined_with_node(allocations, allocations.c.node_id).where(allocations.c.project_id == project_id)
