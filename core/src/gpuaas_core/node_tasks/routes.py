"""HTTP routes for tasks of a node: for the agent that runs them, and for operators."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import agent_upgrade, reads, schemas, service, wipe
from .rows import TaskRow
from .tables import node_tasks

router = APIRouter(prefix="/v1/nodes/{node_id}/tasks", tags=["tasks"])
beside = APIRouter(prefix="/v1/nodes/{node_id}", tags=["tasks"])
_REPORT = needs("capacity.node.report", "node")
_READ = needs("capacity.task.read", "node")


@router.post("/{task_id}/renew", response_model=schemas.TaskLeaseView, **_REPORT)
async def renew_task(call: Caller, node_id: str, task_id: str, body: schemas.RenewTask) -> Response:
    """Renew the lease of a task, as the agent of its node. The first renewal reports that the node starts the task."""
    return await call.write(lambda ctx: service.renew(ctx, node_id, task_id, body), repeats=False, audited=False)


@router.post("/{task_id}/result", response_model=schemas.TaskView, **_REPORT)
async def report_task(call: Caller, node_id: str, task_id: str, body: schemas.ReportTask) -> Response:
    """Report the result of a task, as the agent of its node. A repeated report changes nothing."""
    return await call.write(lambda ctx: view(service.report(ctx, node_id, task_id, body)), repeats=False)


@router.get("", **_READ)
async def list_node_tasks(
    call: Caller,
    node_id: str,
    state: Annotated[str | None, Query(max_length=20)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[schemas.TaskView]:
    query = reads.tasks_of(node_id, state)
    return await call.read(lambda ctx: page(ctx, query, node_tasks.c.id, limit, cursor, view))


@router.get("/{task_id}", **_READ)
async def get_node_task(call: Caller, node_id: str, task_id: str) -> schemas.TaskView:
    return await call.read(lambda ctx: view(reads.task_of_node(ctx.tx, node_id, task_id)))


@beside.post("/wipe", response_model=schemas.WipeView, **needs("capacity.node.wipe", "node"))
async def wipe_node(call: Caller, node_id: str, body: schemas.WipeNode) -> Response:
    """Resolve a failed wipe: repeat it, or confirm that an operator cleaned the node by hand. The node is free after a
    successful wipe or a confirmation."""
    return await call.write(lambda ctx: wipe.again(ctx, node_id, body))


@beside.post("/upgrade-agent", response_model=schemas.TaskView, **needs("capacity.node.upgrade", "node"))
async def upgrade_agent(call: Caller, node_id: str) -> Response:
    """Upgrade the agent of a node to the version that this platform ships. The node tests the new agent, and rolls back
    if the test fails."""
    return await call.write(lambda ctx: view(agent_upgrade.ask(ctx, node_id)), status=202)


def view(row: TaskRow) -> schemas.TaskView:
    return schemas.TaskView.model_validate(row)
