"""What an app's controller notes about an allocation it works on: opaque to the platform, at most 4 KiB.

Only whoever holds the claim writes it, and only for allocations of the claimed operation's instance. Each write
replaces the one before; the platform shows it and reads nothing out of it.
"""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..capacity import allocation_service
from ..capacity.reads import allocations_by_id
from .claimed import held
from .errors import AllocationNotOfOperation
from .reads import members_of
from .schemas import NoteIntegration


def note(ctx: Context, project_id: str, operation_id: str, body: NoteIntegration) -> Row[Any]:
    """The allocation is locked before the instance: that is the order of locks."""
    allocation = allocations_by_id(ctx.tx, project_id, [body.allocation_id], lock=True).get(body.allocation_id)
    _, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    on = {member.allocation_id for member in members_of(ctx.tx, instance.id)}
    if allocation is None or allocation.id not in on:
        raise AllocationNotOfOperation(f"{body.allocation_id!r} is not an allocation of this instance.")
    return allocation_service.integrate(ctx, allocation, body.integration)
