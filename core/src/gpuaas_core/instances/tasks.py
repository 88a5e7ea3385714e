"""What a controller has a machine do: only for an operation it holds, only on that instance's allocations.

Beside machine access (`claimed.grant_access`) this is the other way to a machine, fenced the same way: the task carries
the claim's epoch, and what a former claim asked for is taken back unless a machine has begun it.
"""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..capacity.reads import allocations_by_id, node_row
from ..kit.ids import new_id
from ..node_tasks import kinds, service
from ..node_tasks.artifact_fetch import FETCH, resolve_fetch
from ..node_tasks.schemas import AskTask
from .claimed import held
from .errors import AllocationNotOfOperation
from .fencing import check_not_fenced
from .reads import members_of


def ask(ctx: Context, project_id: str, operation_id: str, body: AskTask) -> Row[Any]:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    on = {member.allocation_id for member in members_of(ctx.tx, instance.id)}
    allocation = allocations_by_id(ctx.tx, project_id, [body.allocation_id]).get(body.allocation_id)
    if body.allocation_id not in on or allocation is None or allocation.state != "active":
        raise AllocationNotOfOperation(f"{body.allocation_id!r} is not an active allocation of this instance.")
    check_not_fenced(ctx, row, body.allocation_id)
    kind = kinds.asked_for(body.kind, body.arguments, kinds.CONTROLLER)
    node, arguments = node_row(ctx.tx, allocation.node_id), body.arguments
    task_id = new_id("task")
    if body.kind == FETCH:
        whose = {"project_id": project_id, "app_slug": instance.app_slug, "task_id": task_id}
        arguments = resolve_fetch(ctx, node, arguments, **whose)
        kinds.check(kind.arguments, arguments)
    who = {"allocation": allocation, "operation_id": row.id, "epoch": row.claim_epoch, "task_id": task_id}
    return service.queue(ctx, node, body.kind, arguments, **who)
