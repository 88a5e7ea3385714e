"""Break-glass: a platform administrator looks, or acts once a second one agrees, inside a tenant for an hour at most.

Nothing about it is quiet. The tenant hears of it when it is asked for, when it begins and when it ends, in its events
and in its audit trail; every request through it leaves a row there with its id, reading included; its administrators
can list all there ever were. What it gives is a table (`access/permissions.py`) without a single credential in it.
"""

from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from ..access.context import Context
from ..access.permissions import NEEDS_APPROVAL
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..ledger.audit import Entry
from ..ledger.events import declare
from ..tenancy import schemas
from ..tenancy.errors import SecondPersonNeeded
from ..tenancy.reads import tenant_scope
from ..tenancy.tables import break_glass
from .states import ACTIVE, AWAITING, BREAK_GLASS, EXPIRED

declare(
    {
        "tenancy.break_glass.requested": "Somebody of the platform asks to act in the tenant; a second must approve.",
        "tenancy.break_glass.opened": "Somebody of the platform can see or act in the tenant from now on.",
        "tenancy.break_glass.closed": "A break-glass was ended before its time.",
        "tenancy.break_glass.expired": "A break-glass ended because its time was over.",
    }
)

WAIT_MS = 60 * 60 * 1000  # for the second person


def open_glass(ctx: Context, body: schemas.OpenBreakGlass) -> Row[Any]:
    ctx.scope = tenant_scope(ctx.tx, body.tenant_id)  # told and recorded in the tenant
    glass_id = ctx.resource_id = new_id("brk")
    waits = body.mode in NEEDS_APPROVAL
    lives_ms = WAIT_MS if waits else body.minutes * 60_000
    ctx.tx.execute(
        insert(break_glass).values(
            id=glass_id,
            **body.model_dump(),
            state=AWAITING if waits else ACTIVE,
            opened_by=ctx.principal.id,
            created_at=ctx.now,
            active_at=None if waits else ctx.now,
            expires_at=ctx.now + lives_ms,
        )
    )
    row = _one(ctx.tx, glass_id)
    _tell(ctx, row, "requested" if waits else "opened")
    return row


def approve(ctx: Context, glass_id: str) -> Row[Any]:
    """By somebody else: the hour begins now."""
    row = _one(ctx.tx, glass_id, hold=True)
    if row.opened_by == ctx.principal.id:
        raise SecondPersonNeeded("You opened it yourself.")
    changes = {"approved_by": ctx.principal.id, "active_at": ctx.now, "expires_at": ctx.now + row.minutes * 60_000}
    return _move(ctx, row, "approve", "opened", changes)


def close(ctx: Context, glass_id: str) -> Row[Any]:
    row = _one(ctx.tx, glass_id, hold=True)
    return _move(ctx, row, "close", "closed", {"closed_by": ctx.principal.id, "ended_at": ctx.now})


def expire_due(ctx: Context) -> None:
    """By housekeeping. The right ended by itself when its time was over; here the tenant is told."""
    due = break_glass.c.state.in_(BREAK_GLASS.live_states) & (break_glass.c.expires_at <= ctx.now)
    for row in ctx.tx.execute(select(break_glass).where(due).order_by(break_glass.c.id).with_for_update()).all():
        scope = tenant_scope(ctx.tx, row.tenant_id)
        ended = {"state": BREAK_GLASS.after(row.state, "expire"), "ended_at": row.expires_at}
        ctx.tx.execute(update(break_glass).where(break_glass.c.id == row.id).values(**ended))
        ctx.emit("tenancy.break_glass.expired", row.id, _facts(row), scope=scope)
        ctx.rights_changed(row.opened_by)
        actor = {"actor_id": ctx.principal.id, "actor_kind": ctx.principal.kind, "permission": ctx.permission}
        what = {"outcome": "allowed", "reason": f"the time of break-glass {row.id} is over", "resource_id": row.id}
        ctx.note(Entry(**actor, **what, tenant_id=row.tenant_id, project_id=None, via=row.id))


def all_of_them(tenant_id: str | None = None) -> Select[Any]:
    query = select(break_glass)
    return query if tenant_id is None else query.where(break_glass.c.tenant_id == tenant_id)


def view(row: Row[Any]) -> schemas.BreakGlassView:
    return schemas.BreakGlassView.model_validate(row)


def _move(ctx: Context, row: Row[Any], action: str, told: str, changes: dict[str, Any]) -> Row[Any]:
    ctx.scope = tenant_scope(ctx.tx, row.tenant_id)
    ctx.resource_id = row.id
    state = BREAK_GLASS.after(EXPIRED if row.expires_at <= ctx.now else row.state, action)
    ctx.tx.execute(update(break_glass).where(break_glass.c.id == row.id).values(state=state, **changes))
    after = _one(ctx.tx, row.id)
    _tell(ctx, after, told)
    ctx.rights_changed(row.opened_by)
    return after


def _tell(ctx: Context, row: Row[Any], what: str) -> None:
    ctx.emit(f"tenancy.break_glass.{what}", row.id, _facts(row))
    ctx.reason = f"{ctx.reason}; break-glass {row.id} ({row.mode}) for {row.ticket}: {row.reason}"


def _facts(row: Row[Any]) -> dict[str, Any]:
    names = ("mode", "reason", "ticket", "opened_by", "approved_by", "closed_by")
    return {name: getattr(row, name) for name in names}


def _one(tx: Connection, glass_id: str, *, hold: bool = False) -> Row[Any]:
    query = select(break_glass).where(break_glass.c.id == glass_id)
    row = tx.execute(query.with_for_update() if hold else query).first()
    if row is None:
        raise NotFound("There is no such break-glass.")
    return row
