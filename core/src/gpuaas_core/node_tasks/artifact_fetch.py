"""Prepares a task that fetches an artifact: the caller names the artifact, and the node gets the id of a delivery."""

from ..artifacts import deliveries
from ..authz.context import Context
from ..kit.json_types import Json
from .rows import Node, TaskRow

FETCH = "fetch_artifact"


def resolve_fetch(ctx: Context, node: Node, arguments: Json, *, project_id: str, app_slug: str, task_id: str) -> Json:
    """Create a delivery and return the arguments with `delivery`, `sha256` and `size` instead of `artifact_id`."""
    document = dict(arguments)
    artifact_id = str(document.pop("artifact_id"))
    delivery = deliveries.create(ctx, artifact_id, project_id, node.id, task_id, app_slug)
    return document | {"delivery": delivery.id, "sha256": delivery.sha256, "size": delivery.size}


def ended(ctx: Context, task: TaskRow) -> None:
    """Close the deliveries of an ended fetch task; do nothing for other kinds. A successful fetch means that the node
    verified the digest."""
    if task.kind == FETCH:
        deliveries.end_of_task(ctx, task.id, received=task.state == "succeeded")
