"""Delivering an artifact to one node: an offer for one task, valid for ten minutes, which the node's agent fetches.

The room that queues tasks calls `create`; the agent's requests come through `delivery_routes`. Every permission is
checked again at the time of the fetch, so a source that was disabled in between delivers nothing.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..capacity.reads import holder_of, node_row
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.problems import UNSEEN, NotFound
from ..policy.reads import overlays_for
from ..tenancy.reads import project_scope, tenant_scope
from . import schemas
from .errors import DeliveryOver, NodeNotHeld
from .fetch import Found, Place
from .registry import place_of
from .resolution import artifact_row, require_artifact
from .sources import STORE
from .states import DELIVERY, OFFERED
from .tables import artifact_deliveries, artifacts

LASTS_MS = 10 * 60 * 1000
KEPT_MS = 7 * 24 * 3600 * 1000

declare(
    {
        "artifacts.delivery.offered": "A node may fetch an artifact for one task within ten minutes.",
        "artifacts.delivery.received": "A node received the artifact and verified its digest.",
        "artifacts.delivery.ended": "A delivery ended because its task ended.",
    }
)


@dataclass(frozen=True)
class Ready:
    """The content to deliver, and where to read it if the store does not have it yet."""

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
    """`project_id=None`: a delivery by the platform itself, to any node, subject to its tenant's policies."""
    scope = _scope(ctx.tx, node_id, project_id)
    artifact = artifact_row(ctx.tx, scope, artifact_id)
    require_artifact(ctx.tx, overlays_for(ctx.tx, scope, app_slug), artifact)
    _check_held(ctx.tx, scope, node_id)
    row = {
        "id": new_id("dlv"),
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
    return _emit(ctx, _row(ctx.tx, node_id, row["id"]), "offered")


def ready(ctx: Context, vault: Vault, node_id: str, delivery_id: str) -> Ready:
    """Called for the node's request: before the source is contacted, and again before the first byte is sent."""
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
    """Check again and count the delivery: the audit trail records which node received what."""
    delivery = ready(ctx, vault, node_id, delivery_id)
    d = artifact_deliveries.c
    ctx.tx.execute(update(artifact_deliveries).where(d.id == delivery_id).values(fetches=d.fetches + 1))
    return delivery.view


def end_of_task(ctx: Context, task_id: str, *, received: bool = False) -> int:
    """The task ended: close the deliveries that were offered for it.

    `received`: the task succeeded, so the node has verified the digest.
    """
    d = artifact_deliveries.c
    offered = select(artifact_deliveries.c.id, d.node_id).where(d.task_id == task_id, d.state == OFFERED)
    rows = ctx.tx.execute(offered.order_by(d.id).with_for_update()).all()
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
    """A node of the tenant; for a project, one that an allocation of the project currently holds."""
    foreign = node_row(tx, node_id).tenant_id != scope.tenant_id
    if foreign or (scope.project_id and holder_of(tx, node_id) != scope.project_id):
        raise NodeNotHeld("No allocation of the project holds this node.")


def _row(tx: Connection, node_id: str, delivery_id: str) -> Row[Any]:
    d = artifact_deliveries.c
    query: Any = select(artifact_deliveries, artifacts.c.sha256, artifacts.c.size)
    query = query.join(artifacts, artifacts.c.id == d.artifact_id).where(d.id == delivery_id, d.node_id == node_id)
    row = tx.execute(query).first()
    if row is None:
        raise NotFound(UNSEEN)
    return row


def _change(ctx: Context, delivery_id: str, **change: Any) -> None:
    ctx.tx.execute(update(artifact_deliveries).where(artifact_deliveries.c.id == delivery_id).values(**change))


def _view(row: Row[Any]) -> schemas.DeliveryView:
    return schemas.DeliveryView.model_validate(dict(row._mapping))


def _emit(ctx: Context, row: Row[Any], what: str) -> schemas.DeliveryView:
    data = {"delivery_id": row.id, "artifact_id": row.artifact_id, "node_id": row.node_id, "task_id": row.task_id}
    data |= {"sha256": row.sha256, "size_bytes": row.size}
    ctx.emit(f"artifacts.delivery.{what}", row.id, data, scope=_scope(ctx.tx, row.node_id, row.project_id))
    return _view(row)
