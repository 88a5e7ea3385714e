"""Leases end here, because only this room knows what runs on an allocation. Called by housekeeping.

An allocation whose time is up is given back, unless an instance is on it: then that is told once, and it is given back
as soon as it is free, or lives on if somebody extends it.
"""

from sqlalchemy import exists, select

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..capacity import allocation_service
from ..capacity.states import ALLOCATION
from ..capacity.tables import allocations
from ..node_tasks import wipe
from .reads import used_by
from .tables import allocation_holds

AT_ONCE = 200
_ENDABLE = [state for state in ALLOCATION.moves if ALLOCATION.allows(state, "release")]


def end_due(ctx: Context) -> int:
    a = allocations.c
    waits = a.overdue_since.is_not(None) & exists().where(allocation_holds.c.allocation_id == a.id)
    due = select(a.id, a.project_id).where(a.expires_at <= ctx.now, a.state.in_(_ENDABLE), ~waits)
    rows = ctx.tx.execute(due.order_by(a.node_id).limit(AT_ONCE)).all()
    for row in rows:
        _end(ctx, row.project_id, row.id)
    return len(rows)


def _end(ctx: Context, project_id: str, allocation_id: str) -> None:
    row = allocation_service.hold_allocation(ctx, project_id, allocation_id)
    if row.state not in _ENDABLE or row.expires_at is None or row.expires_at > ctx.now:
        return  # somebody was faster
    if not used_by(ctx.tx, [row.id]):
        wipe.release(ctx, project_id, allocation_id)
        ctx.note_own(Scope(tenant_id=row.tenant_id, project_id=row.project_id), row.id, "its lease has ended")
    elif row.overdue_since is None:
        allocation_service.mark_overdue(ctx, row)
