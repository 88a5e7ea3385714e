"""Bringing an artifact to one machine: a promise for one task and ten minutes, which the machine's own agent redeems.

`create` is called by whoever gives machines tasks; the agent's requests come through `delivery_routes`. Everything that
allows a delivery is asked again when it is redeemed, so a source that was disabled in between delivers nothing.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from ..access.context import Context
from ..access.evaluate import Scope
from ..capacity.reads import holder_of, node_row
from ..custody.vault import Vault
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.problems import UNSEEN, NotFound
from ..ledger.events import declare
from ..policy.reads import overlays_for
from ..tenancy.reads import project_scope, tenant_scope
from . import schemas
from .errors import DeliveryOver, NodeNotHeld
from .reading import Found, Place
from .registry import place_of
from .resolving import artifact_row, require_artifact
from .sources import STORE
from .states import DELIVERY, OFFERED
from .tables import artifact_deliveries, artifacts

LASTS_MS = 10 * 60 * 1000
KEPT_MS = 7 * 24 * 3600 * 1000

declare(
    {
        "artifacts.delivery.offered": "A machine may fetch an artifact, for one task and ten minutes.",
        "artifacts.delivery.received": "A machine has the artifact, whole and with the right digest.",
        "artifacts.delivery.ended": "A delivery is over because its task is.",
    }
)


@dataclass(frozen=True)
class Ready:
    """What is delivered, and where it is read if it is not here yet."""

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
    """`project_id=None`: what the platform itself brings to a machine, held or not, as its tenant's policies allow."""
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
    return _told(ctx, _row(ctx.tx, node_id, row["id"]), "offered")


def ready(ctx: Context, vault: Vault, node_id: str, delivery_id: str) -> Ready:
    """Asked by the machine, before the source is asked and again before the first byte goes out."""
    row = _row(ctx.tx, node_id, delivery_id)
    ctx.resource_id = row.id
    if row.state != OFFERED or ctx.now >= row.expires_at:
        raise DeliveryOver(f"It was {row.state}." if row.state != OFFERED else "Its ten minutes are over.")
    scope = _scope(ctx.tx, node_id, row.project_id)
    artifact = artifact_row(ctx.tx, scope, row.artifact_id)
    source = require_artifact(ctx.tx, overlays_for(ctx.tx, scope, row.app_slug), artifact)
    _check_held(ctx.tx, scope, node_id)
    place = None if source.kind == STORE else place_of(ctx, vault, source, artifact.reference)
    return Ready(_view(row), Found(artifact.sha256, artifact.size), place)


def begin(ctx: Context, vault: Vault, node_id: str, delivery_id: str) -> schemas.DeliveryView:
    """Still allowed, and counted: the audit trail says which machine was given what."""
    found = ready(ctx, vault, node_id, delivery_id)
    d = artifact_deliveries.c
    ctx.tx.execute(update(artifact_deliveries).where(d.id == delivery_id).values(fetches=d.fetches + 1))
    return found.view


def end_of_task(ctx: Context, task_id: str, *, received: bool = False) -> int:
    """The task is over, one way or another: what was promised for it is worth nothing any more.

    `received`: it succeeded, so the machine has compared the digest.
    """
    d = artifact_deliveries.c
    mine = select(artifact_deliveries.c.id, d.node_id).where(d.task_id == task_id, d.state == OFFERED)
    found = ctx.tx.execute(mine.order_by(d.id).with_for_update()).all()
    for row in found:
        if received:
            _change(ctx, row.id, state=DELIVERY.after(OFFERED, "receive"), received_at=ctx.now)
        else:
            _change(ctx, row.id, state=DELIVERY.after(OFFERED, "end"))
        _told(ctx, _row(ctx.tx, row.node_id, row.id), "received" if received else "ended")
    return len(found)


def forget_old(tx: Connection, now: int) -> int:
    return delete_some(tx, artifact_deliveries, artifact_deliveries.c.expires_at < now - KEPT_MS)


def _scope(tx: Connection, node_id: str, project_id: str | None) -> Scope:
    return project_scope(tx, project_id) if project_id else tenant_scope(tx, node_row(tx, node_id).tenant_id)


def _check_held(tx: Connection, scope: Scope, node_id: str) -> None:
    """A machine of the tenant; for a project, one that an allocation of the project holds now."""
    foreign = node_row(tx, node_id).tenant_id != scope.tenant_id
    if foreign or (scope.project_id and holder_of(tx, node_id) != scope.project_id):
        raise NodeNotHeld("No allocation of the project holds this machine.")


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


def _told(ctx: Context, row: Row[Any], what: str) -> schemas.DeliveryView:
    told = {"delivery_id": row.id, "artifact_id": row.artifact_id, "node_id": row.node_id, "task_id": row.task_id}
    told |= {"sha256": row.sha256, "size_bytes": row.size}
    ctx.emit(f"artifacts.delivery.{what}", row.id, told, scope=_scope(ctx.tx, row.node_id, row.project_id))
    return _view(row)
