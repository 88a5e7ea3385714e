"""Tasks requested by controllers. A controller may request them only for an operation whose claim it holds, and only on
the allocations of the operation's target.

Controllers reach a machine by tasks and by SSH certificates (`operations.access`), and both are fenced in the same way:
a task carries the claim's epoch, and tasks of a former claim are canceled unless a machine has started them.
"""

from ..authz.context import Context
from ..capacity.reads import allocations_by_id, node_row
from ..kit.ids import new_id
from ..machine_access.errors import AllocationNotOfOperation, HostFenced
from ..operations.claims import held_with_target
from . import kinds, service
from .artifact_fetch import FETCH, resolve_fetch
from .rows import TaskRow
from .schemas import AskTask


def ask(ctx: Context, project_id: str, operation_id: str, body: AskTask) -> TaskRow:
    operation, target, row = held_with_target(ctx, project_id, operation_id, body.claim_epoch)
    allocation = allocations_by_id(ctx.tx, project_id, [body.allocation_id]).get(body.allocation_id)
    serves = body.allocation_id in target.allocations(ctx.tx, row)
    if not serves or allocation is None or allocation.state != "active":
        raise AllocationNotOfOperation(f"{body.allocation_id!r} is not an active allocation of this instance.")
    if body.allocation_id in target.fenced(ctx.tx, row, operation):
        raise HostFenced(f"The machine of {body.allocation_id!r} was declared gone.")
    kind = kinds.asked_for(body.kind, body.arguments, kinds.CONTROLLER)
    node, arguments = node_row(ctx.tx, allocation.node_id), body.arguments
    task_id = new_id("task")
    if body.kind == FETCH:
        arguments = resolve_fetch(
            ctx, node, arguments, project_id=project_id, app_slug=operation.app_slug, task_id=task_id
        )
        kinds.check(kind.arguments, arguments)
    return service.queue(
        ctx,
        node,
        body.kind,
        arguments,
        allocation=allocation,
        operation_id=operation.id,
        epoch=operation.claim_epoch,
        task_id=task_id,
    )
