"""A released node is wiped before it is allocated again.

Nodes whose agent never requested tasks are free as soon as they no longer trust the allocation.
A failed wipe keeps the node held until `again` is called.
"""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..authz.context import Context
from ..capacity import allocation_service
from ..capacity.reads import allocation_row, hold_leaving, node_row
from ..capacity.tables import nodes
from . import schemas, service
from .errors import NothingToWipe, WipeUnderWay
from .kinds import WIPE
from .states import RUNNING
from .tables import node_tasks


def release(ctx: Context, project_id: str, allocation_id: str) -> Row[Any]:
    """Release an allocation; the caller has checked that nothing uses it."""
    row = allocation_service.release_allocation(ctx, project_id, allocation_id)
    node = node_row(ctx.tx, row.node_id)
    if node.tasks_at is not None:
        allocation_service.await_wipe(ctx, allocation_id)
        service.queue(ctx, node, WIPE, {}, allocation=row)
    return allocation_row(ctx.tx, project_id, allocation_id)


def again(ctx: Context, node_id: str, body: schemas.WipeNode) -> schemas.WipeView:
    node = node_row(ctx.tx, node_id, lock=True)
    leaving = hold_leaving(ctx.tx, node_id)
    ctx.resource_id = node_id
    if leaving is None:
        raise NothingToWipe(f"The node {node.name!r} has no allocation with a pending wipe.")
    live = _live(ctx.tx, leaving.id)
    if any(task.state == RUNNING for task in live) or (live and not body.by_hand):
        raise WipeUnderWay(f"The node {node.name!r} is already being wiped ({live[0].id}).")
    if body.by_hand:
        service.take_back(ctx, live, "An operator cleaned the node by hand.")
        allocation_service.wiped(ctx, node, leaving, clean=True, reason=body.reason)
        return schemas.WipeView(node_id=node_id, allocation_id=leaving.id, wipe="done", task_id=None)
    allocation_service.await_wipe(ctx, leaving.id)
    task = service.queue(ctx, node, WIPE, {}, allocation=leaving)
    return schemas.WipeView(node_id=node_id, allocation_id=leaving.id, wipe="pending", task_id=task.id)


def knows_tasks(tx: Connection, node_id: str) -> bool:
    return tx.execute(select(nodes.c.tasks_at).where(nodes.c.id == node_id)).scalar() is not None


def note_agent(ctx: Context, node_id: str) -> None:
    ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(tasks_at=ctx.now))


def _live(tx: Connection, allocation_id: str) -> list[Row[Any]]:
    t = node_tasks.c
    mine = select(node_tasks).where(t.allocation_id == allocation_id, t.kind == WIPE, t.ended_at.is_(None))
    return list(tx.execute(mine.with_for_update()))
