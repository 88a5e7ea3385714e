"""Plans: what would happen, on which hosts, who pays. Asked for with `validate_only`; nothing is written."""

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
        said = {"app_slug": instance.app_slug, "version": instance.version, "topology": instance.topology}
        said["inputs"] = instance.inputs
    return schemas.PlannedView(plan=schemas.PlanView(summary=summary, hosts=hosts, charged_to=project_id, **said))
