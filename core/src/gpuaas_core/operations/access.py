"""Machine access for the controller that holds a claim: certificates for the machines of the operation's target, and
notes about its allocations.

This access ends with the claim, so the purpose `operation` of machine access is implemented here.
"""

from collections.abc import Iterator

from sqlalchemy import Connection, or_, select

from ..authz.context import Context
from ..capacity import allocation_service
from ..capacity.reads import lock_allocation
from ..capacity.rows import PlacedAllocationRow
from ..custody.vault import Vault
from ..events.event_log import declare
from ..machine_access import certificates
from ..machine_access.errors import AllocationNotOfOperation, HostFenced
from ..machine_access.grants import LIVE
from ..machine_access.rows import Ended, Reason
from ..machine_access.schemas import GrantView
from . import schemas
from .claims import held_with_target
from .tables import operations

declare({"apps.access.granted": "A controller was issued a short-lived SSH certificate for the host of an allocation."})

OPERATION = "operation"
_o = operations.c
_ENDED = (
    select(LIVE.c.id, LIVE.c.claim_epoch, _o.claim_epoch.label("newest"))
    .outerjoin(operations, _o.id == LIVE.c.operation_id)
    .where(
        LIVE.c.purpose == OPERATION, or_(_o.id.is_(None), _o.claim_epoch != LIVE.c.claim_epoch, _o.status != "running")
    )
)


class OperationPurpose:
    name = OPERATION
    renewable = False

    def ended(self, tx: Connection, now: int) -> Iterator[Ended]:
        for grant_id, epoch, newest in tx.execute(_ENDED, {"now": now}).all():
            taken_over = newest is not None and newest != epoch
            yield Ended(
                grant_id,
                "a newer claim holds its operation" if taken_over else "no claim holds its operation any more",
            )


def grant_access(
    ctx: Context, vault: Vault, scope_id: str | None, operation_id: str, body: schemas.AskAccess
) -> GrantView:
    operation, target, row = held_with_target(ctx, scope_id, operation_id, body.claim_epoch)
    if body.allocation_id in target.fenced(ctx.tx, row, operation):
        raise HostFenced(f"The machine of {body.allocation_id!r} was declared gone.")
    allocation = certificates.allocation_serving(ctx, target.allocations(ctx.tx, row), body.allocation_id)
    reason = Reason(
        purpose=OPERATION,
        operation_id=operation.id,
        claim_epoch=operation.claim_epoch,
        subject_kind=operation.target_kind,
        subject_id=operation.target_id,
    )
    given = certificates.give(ctx, vault, allocation, body, reason)
    facts = {"operation_id": operation.id, "claim_epoch": operation.claim_epoch, "allocation_id": allocation.id}
    ctx.emit("apps.access.granted", given.id, dict(target.facts(row, operation)) | facts | {"grant_id": given.id})
    return given


def note_integration(
    ctx: Context, scope_id: str | None, operation_id: str, body: schemas.NoteIntegration
) -> PlacedAllocationRow:
    """Store a note of the controller about an allocation that it works on, replacing the previous note. The platform
    does not use the note.

    The lock order is allocation, then target.
    """
    allocation = lock_allocation(ctx.tx, body.allocation_id)
    _, target, row = held_with_target(ctx, scope_id, operation_id, body.claim_epoch)
    if allocation is None or allocation.id not in target.allocations(ctx.tx, row):
        raise AllocationNotOfOperation(f"{body.allocation_id!r} is not an allocation of this target.")
    return allocation_service.integrate(ctx, allocation, body.integration)
