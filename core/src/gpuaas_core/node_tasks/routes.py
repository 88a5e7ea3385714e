"""Routes: tasks as a node's agent fetches them, and as operators see them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import agent_upgrade, reads, schemas, service, wipe
from .tables import node_tasks

router = APIRouter(prefix="/v1/nodes/{node_id}/tasks", tags=["tasks"])
beside = APIRouter(prefix="/v1/nodes/{node_id}", tags=["tasks"])
_REPORT = needs("capacity.node.report", "node")
_READ = needs("capacity.task.read", "node")


@router.post(
    "/claim",
    response_model=schemas.LeasedTask,
    responses={204: {"description": "no task within `wait_s`"}},
    **_REPORT,
)
async def claim_task(call: Caller, node_id: str, body: schemas.ClaimTask) -> Response:
    """Long poll by a node without a task. Nothing is leased to a caller that has disconnected."""
    deadline = call.now + body.wait_s * 1000
    if not await call.read(lambda ctx: wipe.knows_tasks(ctx.tx, node_id)):
        await call.write(lambda ctx: wipe.note_agent(ctx, node_id), repeats=False, audited=False)
    while True:
        due_at = await call.read(lambda ctx: service.next_due(ctx, node_id))
        if due_at and await call.read(lambda ctx: service.waits(ctx, node_id)):
            answer = await call.write(lambda ctx: service.lease(ctx, call.vault, node_id), repeats=False)
            if answer.status_code != 204:
                return answer
        left = (deadline - call.platform.clock()) / 1000
        if left > 0:
            await call.wait(f"tasks:{node_id}", left, due_at=due_at)
        if left <= 0 or await call.request.is_disconnected():
            return Response(status_code=204)


@router.post("/{task_id}/renew", response_model=schemas.TaskLeaseView, **_REPORT)
async def renew_task(call: Caller, node_id: str, task_id: str, body: schemas.RenewTask) -> Response:
    """The node starts or continues its leased task."""
    return await call.write(lambda ctx: service.renew(ctx, node_id, task_id, body), repeats=False, audited=False)


@router.post("/{task_id}/result", response_model=schemas.TaskView, **_REPORT)
async def report_task(call: Caller, node_id: str, task_id: str, body: schemas.ReportTask) -> Response:
    """Report the result. Safe to repeat: an attempt ends once."""
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
    """Resolve a failed wipe: repeat it, or confirm that an operator cleaned the node by hand. Then the node is free."""
    return await call.write(lambda ctx: wipe.again(ctx, node_id, body))


@beside.post("/upgrade-agent", response_model=schemas.TaskView, **needs("capacity.node.upgrade", "node"))
async def upgrade_agent(call: Caller, node_id: str) -> Response:
    """Upgrade the agent to the version this platform ships. The node tests it and rolls back if it fails."""
    return await call.write(lambda ctx: view(agent_upgrade.ask(ctx, node_id)), status=202)


def view(row: Any) -> schemas.TaskView:
    return schemas.TaskView.model_validate(row)
