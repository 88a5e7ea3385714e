"""Where a fetch gets what it fetches: a caller names an artifact, the machine is told a delivery of its own."""

from typing import Any

from sqlalchemy import Row

from ..access.context import Context
from ..artifacts import deliveries

FETCH = "fetch_artifact"


def resolve_fetch(
    ctx: Context, node: Row[Any], arguments: dict[str, Any], *, project_id: str, app_slug: str, task_id: str
) -> dict[str, Any]:
    """From `artifact_id` to `delivery`, `sha256` and `size`; everything else stays as it was asked for."""
    said = dict(arguments)
    promised = deliveries.create(ctx, said.pop("artifact_id"), project_id, node.id, task_id, app_slug)
    return said | {"delivery": promised.id, "sha256": promised.sha256, "size": promised.size}


def ended(ctx: Context, task: Row[Any]) -> None:
    """The machine has compared the digest before it calls a fetch done; whatever else happened, nothing is owed."""
    if task.kind == FETCH:
        deliveries.end_of_task(ctx, task.id, received=task.state == "succeeded")
