"""Prepares a fetch task: the caller names an artifact, the node gets the delivery created for it."""

from typing import Any

from sqlalchemy import Row

from ..artifacts import deliveries
from ..authz.context import Context

FETCH = "fetch_artifact"


def resolve_fetch(
    ctx: Context, node: Row[Any], arguments: dict[str, Any], *, project_id: str, app_slug: str, task_id: str
) -> dict[str, Any]:
    """Replace `artifact_id` by `delivery`, `sha256` and `size`; other arguments are kept."""
    document = dict(arguments)
    delivery = deliveries.create(ctx, document.pop("artifact_id"), project_id, node.id, task_id, app_slug)
    return document | {"delivery": delivery.id, "sha256": delivery.sha256, "size": delivery.size}


def ended(ctx: Context, task: Row[Any]) -> None:
    """Close the deliveries of a task. A successful fetch means that the node verified the digest."""
    if task.kind == FETCH:
        deliveries.end_of_task(ctx, task.id, received=task.state == "succeeded")
