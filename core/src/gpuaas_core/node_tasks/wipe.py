"""Wipes a released node before it can be allocated again.

A node whose agent never requested a task is not wiped: it is free as soon as it no longer trusts the allocation. After
a failed wipe the node stays unavailable until an operator repeats the wipe or confirms that the node is clean
(`again`).
"""

from sqlalchemy import Connection, bindparam

from ..authz.context import Context
from ..capacity import allocation_service
from ..capacity.reads import find_allocation, hold_leaving, node_row
from . import schemas, service
from .errors import NothingToWipe, WipeUnderWay
from .kinds import WIPE
from .reads import TASKS
from .rows import TaskRow
from .states import RUNNING
from .tables import node_tasks

_LIVE = TASKS.where(
    node_tasks.c.allocation_id == bindparam("allocation"), node_tasks.c.kind == WIPE, node_tasks.c.ended_at.is_(None)
).locked()


def on_release(ctx: Context, allocation_id: str, generation: int) -> None:
    """Queue a wipe of the node of a released allocation; the node becomes free after the wipe. A node whose agent never
    requested a task is not wiped."""
    row = find_allocation(ctx.tx, allocation_id)
    if row is None:
        return
    node = node_row(ctx.tx, row.node_id)
    if node.tasks_at is not None:
        allocation_service.await_wipe(ctx, allocation_id)
        service.queue(ctx, node, WIPE, {}, allocation=row)


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


def _live(tx: Connection, allocation_id: str) -> list[TaskRow]:
    return _LIVE.all(tx, allocation=allocation_id)
