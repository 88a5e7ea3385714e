"""Deliveries of artifacts. A delivery offers one artifact to one node for one task and expires after ten minutes; the
node's agent downloads the content.

The room that queues tasks calls `create`; the agent's requests come through `content_routes`. Every permission is
checked again at the time of the download, so a source that was disabled in between delivers nothing.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, insert, select, update

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..capacity.reads import holder_of, node_row
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.problems import UNSEEN, NotFound
from ..kit.rows import Query
from ..policy.reads import overlays_for
from ..tenancy.reads import project_scope, tenant_scope
from . import schemas
from .errors import DeliveryOver, NodeNotHeld
from .fetch import Found, Place
from .registry import place_of
from .resolution import artifact_row, require_artifact
from .rows import DeliveryId, DeliveryRow, OfferedDelivery
from .sources import STORE
from .states import DELIVERY, OFFERED
from .tables import artifact_deliveries, artifacts

_d = artifact_deliveries.c
_DELIVERY = Query(
    select(artifact_deliveries, artifacts.c.sha256, artifacts.c.size).join(artifacts, artifacts.c.id == _d.artifact_id),
    DeliveryRow,
).where(_d.id == bindparam("delivery"), _d.node_id == bindparam("node"))
_OFFERED_FOR_TASK = (
    Query(select(_d.id, _d.node_id), OfferedDelivery)
    .where(_d.task_id == bindparam("task"), _d.state == OFFERED)
    .order_by(_d.id)
    .locked()
)
_COUNT_FETCH = update(artifact_deliveries).where(_d.id == bindparam("delivery")).values(fetches=_d.fetches + 1)

LASTS_MS = 10 * 60 * 1000
KEPT_MS = 7 * 24 * 3600 * 1000

declare(
    {
        "artifacts.delivery.offered": (
            "A delivery was offered: a node can download an artifact for one task within ten minutes."
        ),
        "artifacts.delivery.received": "A node received an artifact and verified its digest.",
        "artifacts.delivery.ended": "The delivery of an artifact ended because its task ended.",
    }
)


@dataclass(frozen=True)
class Ready:
    """A delivery that the node may fetch: the digest and size of the content, and the place at the source to read it
    from. `place` is None if the content is in the core's own store."""

    view: schemas.DeliveryView
    wanted: Found
    place: Place | None


def create(
    ctx: Context,
    artifact_id: str,
    project_id: str | None,
    node_id: str,
    task_id: str | None = None,
    app_slug: str | None = None,
) -> schemas.DeliveryView:
    """Offer an artifact to a node for a task. Raises an error if the project may not use the artifact or does not hold
    the node. Without `project_id` the platform makes the offer, to any node whose tenant's policies allow the
    artifact."""
    scope = _scope(ctx.tx, node_id, project_id)
    artifact = artifact_row(ctx.tx, scope, artifact_id)
    require_artifact(ctx.tx, overlays_for(ctx.tx, scope, app_slug), artifact)
    _check_held(ctx.tx, scope, node_id)
    delivery_id = new_id("dlv")
    row = {
        "id": delivery_id,
        "artifact_id": artifact_id,
        "tenant_id": scope.tenant_id,
        "project_id": project_id,
        "node_id": node_id,
        "task_id": task_id,
        "app_slug": app_slug,
        "state": OFFERED,
        "expires_at": ctx.now + LASTS_MS,
        "fetches": 0,
        "created_by": ctx.principal.id,
        "created_at": ctx.now,
    }
    ctx.tx.execute(insert(artifact_deliveries).values(**row))
    return _emit(ctx, _row(ctx.tx, node_id, delivery_id), "offered")


def ready(ctx: Context, vault: Vault, node_id: str, delivery_id: str) -> Ready:
    """Return the content of the delivery, or raise an error if the node may not fetch it. Called before the source is
    contacted, and again before the first byte is sent."""
    row = _row(ctx.tx, node_id, delivery_id)
    ctx.resource_id = row.id
    if row.state != OFFERED or ctx.now >= row.expires_at:
        raise DeliveryOver(
            f"The delivery is {row.state}." if row.state != OFFERED else "The delivery expired after ten minutes."
        )
    scope = _scope(ctx.tx, node_id, row.project_id)
    artifact = artifact_row(ctx.tx, scope, row.artifact_id)
    source = require_artifact(ctx.tx, overlays_for(ctx.tx, scope, row.app_slug), artifact)
    _check_held(ctx.tx, scope, node_id)
    place = None if source.kind == STORE else place_of(ctx, vault, source, artifact.reference)
    return Ready(_view(row), Found(artifact.sha256, artifact.size), place)


def begin(ctx: Context, vault: Vault, node_id: str, delivery_id: str) -> schemas.DeliveryView:
    """Check again that the node may fetch the delivery, and count the fetch.
    The request is recorded in the audit trail."""
    delivery = ready(ctx, vault, node_id, delivery_id)
    ctx.tx.execute(_COUNT_FETCH, {"delivery": delivery_id})
    return delivery.view


def end_of_task(ctx: Context, task_id: str, *, received: bool = False) -> int:
    """End the open deliveries of a task that has ended, and return their number.

    `received`: the task succeeded, so the node has received the content and verified its digest.
    """
    rows = _OFFERED_FOR_TASK.all(ctx.tx, task=task_id)
    for row in rows:
        if received:
            _change(ctx, row.id, state=DELIVERY.after(OFFERED, "receive"), received_at=ctx.now)
        else:
            _change(ctx, row.id, state=DELIVERY.after(OFFERED, "end"))
        _emit(ctx, _row(ctx.tx, row.node_id, row.id), "received" if received else "ended")
    return len(rows)


def forget_old(tx: Connection, now: int) -> int:
    return delete_some(tx, artifact_deliveries, artifact_deliveries.c.expires_at < now - KEPT_MS)


def _scope(tx: Connection, node_id: str, project_id: str | None) -> Scope:
    return project_scope(tx, project_id) if project_id else tenant_scope(tx, node_row(tx, node_id).tenant_id)


def _check_held(tx: Connection, scope: Scope, node_id: str) -> None:
    """Raise NodeNotHeld unless the node belongs to the scope's tenant and, for a project,
    is allocated to the project now."""
    foreign = node_row(tx, node_id).tenant_id != scope.tenant_id
    if foreign or (scope.project_id and holder_of(tx, node_id) != scope.project_id):
        raise NodeNotHeld("No allocation of the project holds this node.")


def _row(tx: Connection, node_id: str, delivery_id: str) -> DeliveryRow:
    row = _DELIVERY.first(tx, delivery=delivery_id, node=node_id)
    if row is None:
        raise NotFound(UNSEEN)
    return row


def _change(ctx: Context, delivery_id: DeliveryId, **change: object) -> None:
    ctx.tx.execute(update(artifact_deliveries).where(artifact_deliveries.c.id == delivery_id).values(**change))


def _view(row: DeliveryRow) -> schemas.DeliveryView:
    return schemas.DeliveryView.model_validate(row)


def _emit(ctx: Context, row: DeliveryRow, what: str) -> schemas.DeliveryView:
    data = {"delivery_id": row.id, "artifact_id": row.artifact_id, "node_id": row.node_id, "task_id": row.task_id}
    data |= {"sha256": row.sha256, "size_bytes": row.size}
    ctx.emit(f"artifacts.delivery.{what}", row.id, data, scope=_scope(ctx.tx, row.node_id, row.project_id))
    return _view(row)
