"""Plans: what would happen, on which hosts, who pays. Asked for with `validate_only`; nothing is written."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

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


def planned(
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
    return schemas.PlannedView(plan=schemas.PlanView(summary=summary, hosts=hosts, charged_to=project_id, **said))
