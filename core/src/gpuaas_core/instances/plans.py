"""Plans: what would happen, where, what it costs and who pays. Asked for with `validate_only`: nothing is written."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from ..capacity.tables import allocations, nodes, skus
from . import schemas
from .placement import Placement


def hosts_of(placement: Placement, found: dict[str, Row[Any]]) -> list[schemas.PlannedHost]:
    on: dict[str, list[str]] = {}
    for component, chosen in placement.items():
        for allocation in chosen:
            on.setdefault(allocation, []).append(component)
    return [
        schemas.PlannedHost(
            allocation_id=one, node_name=found[one].node_name, address=found[one].address, components=components
        )
        for one, components in on.items()
    ]


def hosts_of_members(there: Sequence[Row[Any]]) -> list[schemas.PlannedHost]:
    placement: Placement = {}
    for member in there:
        placement.setdefault(member.component_key, []).append(member.allocation_id)
    return hosts_of(placement, {member.allocation_id: member for member in there})


def _priced(tx: Connection, hosts: list[schemas.PlannedHost]) -> list[schemas.PlannedHost]:
    """With what an hour of each costs, whoever is on it."""
    a, n, s = allocations.c, nodes.c, skus.c
    query = select(a.id, n.sku, s.price_micros_per_hour, s.currency).join(nodes, n.id == a.node_id)
    mine = a.id.in_([host.allocation_id for host in hosts])
    rows = tx.execute(query.outerjoin(skus, s.name == n.sku).where(mine))
    of = {row.id: {name: value for name, value in row._mapping.items() if name != "id"} for row in rows}
    return [host.model_copy(update=of.get(host.allocation_id, {})) for host in hosts]


def planned(
    tx: Connection,
    summary: str,
    hosts: list[schemas.PlannedHost],
    project_id: str,
    *,
    instance: Row[Any] | None = None,
    **said: Any,
) -> schemas.PlannedView:
    """`instance`: the plan is about one that exists."""
    if instance is not None:
        known = {"app_slug": instance.app_slug, "version": instance.version, "topology": instance.topology}
        said = known | {"inputs": instance.inputs} | said
    plan = schemas.PlanView(summary=summary, hosts=_priced(tx, hosts), charged_to=project_id, **said)
    return schemas.PlannedView(plan=plan)
