"""Break-glass: a platform administrator gets access to a tenant for at most an hour.

Mode `look` starts at once; mode `operate` needs the approval of a second administrator. The tenant gets an event and an
audit row when a break-glass is requested, opened and ended, and an audit row for every request made with it, including
reads. Tenant administrators can list every break-glass on their tenant, past and current. `authz/permissions.py` lists
the permissions of each mode; none of them gives access to credentials.
"""

from typing import TypedDict

from sqlalchemy import Connection, bindparam, insert, select, update

from ..audit.audit_log import Entry
from ..authz.context import Context
from ..authz.permissions import NEEDS_APPROVAL
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.json_types import Json
from ..kit.problems import NotFound
from ..kit.rows import Query
from ..tenancy.reads import tenant_scope
from . import schemas
from .errors import SecondPersonNeeded
from .rows import BreakGlassRow
from .states import ACTIVE, AWAITING, BREAK_GLASS, EXPIRED
from .tables import break_glass

declare(
    {
        "tenancy.break_glass.requested": (
            "Break-glass access was requested; a second platform administrator must approve it."
        ),
        "tenancy.break_glass.opened": (
            "Break-glass access was opened: a platform administrator can now access the tenant."
        ),
        "tenancy.break_glass.closed": "Break-glass access was closed before it expired.",
        "tenancy.break_glass.expired": "Break-glass access to the tenant expired.",
    }
)

WAIT_MS = 60 * 60 * 1000  # for the approval by a second administrator
ROWS = Query(select(break_glass), BreakGlassRow)
_BY_ID = ROWS.where(break_glass.c.id == bindparam("glass"))
_BY_ID_LOCKED = _BY_ID.locked()
_DUE = (
    ROWS.where(break_glass.c.state.in_(BREAK_GLASS.live_states), break_glass.c.expires_at <= bindparam("now"))
    .order_by(break_glass.c.id)
    .locked()
)


class Changes(TypedDict, total=False):
    approved_by: str
    closed_by: str
    active_at: int
    expires_at: int
    ended_at: int


def open_glass(ctx: Context, body: schemas.OpenBreakGlass) -> BreakGlassRow:
    ctx.scope = tenant_scope(ctx.tx, body.tenant_id)  # the event and the audit row belong to the tenant
    glass_id = ctx.resource_id = new_id("brk")
    waits = body.mode in NEEDS_APPROVAL
    lifetime_ms = WAIT_MS if waits else body.minutes * 60_000
    ctx.tx.execute(
        insert(break_glass).values(
            id=glass_id,
            **body.model_dump(),
            state=AWAITING if waits else ACTIVE,
            opened_by=ctx.principal.id,
            created_at=ctx.now,
            active_at=None if waits else ctx.now,
            expires_at=ctx.now + lifetime_ms,
        )
    )
    row = _break_glass(ctx.tx, glass_id)
    _announce(ctx, row, "requested" if waits else "opened")
    return row


def approve(ctx: Context, glass_id: str) -> BreakGlassRow:
    """Approve a break-glass that another administrator opened; its minutes start now. Raises 403 if the caller opened
    it."""
    row = _break_glass(ctx.tx, glass_id, lock=True)
    if row.opened_by == ctx.principal.id:
        raise SecondPersonNeeded("You opened this break-glass yourself.")
    ends_at = ctx.now + row.minutes * 60_000
    changes: Changes = {"approved_by": ctx.principal.id, "active_at": ctx.now, "expires_at": ends_at}
    return _move(ctx, row, "approve", "opened", changes)


def close(ctx: Context, glass_id: str) -> BreakGlassRow:
    row = _break_glass(ctx.tx, glass_id, lock=True)
    return _move(ctx, row, "close", "closed", {"closed_by": ctx.principal.id, "ended_at": ctx.now})


def expire_due(ctx: Context) -> None:
    """Mark every break-glass whose time is over as expired, with an event and an audit row for its tenant. Called by
    housekeeping."""
    for row in _DUE.all(ctx.tx, now=ctx.now):
        scope = tenant_scope(ctx.tx, row.tenant_id)
        ended = {"state": BREAK_GLASS.after(row.state, "expire"), "ended_at": row.expires_at}
        ctx.tx.execute(update(break_glass).where(break_glass.c.id == row.id).values(**ended))
        ctx.emit("tenancy.break_glass.expired", row.id, _facts(row), scope=scope)
        ctx.rights_changed(row.opened_by)
        ctx.note(
            Entry(
                actor_id=ctx.principal.id,
                actor_kind=ctx.principal.kind,
                permission=ctx.permission,
                outcome="allowed",
                reason=f"break-glass {row.id} expired",
                tenant_id=row.tenant_id,
                project_id=None,
                resource_id=row.id,
                via=row.id,
            )
        )


def list_query(tenant_id: str | None = None) -> Query[BreakGlassRow]:
    return ROWS if tenant_id is None else ROWS.where(break_glass.c.tenant_id == tenant_id)


def view(row: BreakGlassRow) -> schemas.BreakGlassView:
    return schemas.BreakGlassView.model_validate(row)


def _move(ctx: Context, row: BreakGlassRow, action: str, event: str, changes: Changes) -> BreakGlassRow:
    ctx.scope = tenant_scope(ctx.tx, row.tenant_id)
    ctx.resource_id = row.id
    state = BREAK_GLASS.after(EXPIRED if row.expires_at <= ctx.now else row.state, action)
    ctx.tx.execute(update(break_glass).where(break_glass.c.id == row.id).values(state=state, **changes))
    after = _break_glass(ctx.tx, row.id)
    _announce(ctx, after, event)
    ctx.rights_changed(row.opened_by)
    return after


def _announce(ctx: Context, row: BreakGlassRow, event: str) -> None:
    ctx.emit(f"tenancy.break_glass.{event}", row.id, _facts(row))
    ctx.reason = f"{ctx.reason}; break-glass {row.id} ({row.mode}) for {row.ticket}: {row.reason}"


def _facts(row: BreakGlassRow) -> Json:
    names = ("mode", "reason", "ticket", "opened_by", "approved_by", "closed_by")
    return {name: getattr(row, name) for name in names}


def _break_glass(tx: Connection, glass_id: str, *, lock: bool = False) -> BreakGlassRow:
    row = (_BY_ID_LOCKED if lock else _BY_ID).first(tx, glass=glass_id)
    if row is None:
        raise NotFound("There is no such break-glass.")
    return row
