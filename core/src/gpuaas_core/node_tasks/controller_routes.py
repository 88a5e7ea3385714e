"""HTTP routes for tasks that the controller of a claimed operation runs on the operation's machines."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..http.call import Caller, needs
from . import controller_tasks
from .reads import task_of_operation
from .routes import view
from .schemas import LONGEST_WAIT_S, AskTask, TaskView
from .states import LIVE

router = APIRouter(prefix="/v1/projects/{project_id}/operations/{operation_id}/tasks", tags=["controllers"])
_ASK = needs("apps.task.ask", "project")


@router.post("", status_code=201, response_model=TaskView, **_ASK)
async def ask_task(call: Caller, project_id: str, operation_id: str, body: AskTask) -> Response:
    """Queue a task for the agent of one of the claimed operation's machines. contracts/node-tasks.json lists the
    kinds."""
    return await call.write(
        lambda ctx: view(controller_tasks.ask(ctx, project_id, operation_id, body)),
        status=201,
        location=lambda made: f"/v1/projects/{project_id}/operations/{operation_id}/tasks/{made.id}",
    )


@router.get("/{task_id}", **_ASK)
async def get_task(
    call: Caller,
    project_id: str,
    operation_id: str,
    task_id: str,
    wait_s: Annotated[int, Query(ge=0, le=LONGEST_WAIT_S)] = 0,
) -> TaskView:
    """Get a task as soon as it has ended, or its current state after `wait_s` seconds (long poll)."""
    deadline = call.now + wait_s * 1000
    while True:
        row = await call.read(lambda ctx: task_of_operation(ctx.tx, project_id, operation_id, task_id))
        left = (deadline - call.platform.clock()) / 1000
        if row.state not in LIVE or left <= 0 or await call.request.is_disconnected():
            return view(row)
        await call.wait(f"task:{task_id}", left)
