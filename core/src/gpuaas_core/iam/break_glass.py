"""Break-glass: a platform administrator gets access to a tenant for an hour at most.

Mode `look` starts at once; mode `operate` needs the approval of a second administrator. The tenant gets an event and an
audit row when it is requested, opened and ended, and an audit row for every request made through it, reads included.
Tenant administrators can list every break-glass there has been. The permissions it grants are a table
(`access/permissions.py`) that contains no access to credentials.
"""

from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from ..audit.audit_log import Entry
from ..authz.context import Context
from ..authz.permissions import NEEDS_APPROVAL
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..tenancy.reads import tenant_scope
from . import schemas
from .errors import SecondPersonNeeded
from .states import ACTIVE, AWAITING, BREAK_GLASS, EXPIRED
from .tables import break_glass

declare(
    {
        "tenancy.break_glass.requested": "A platform administrator requested access; a second one must approve.",
        "tenancy.break_glass.opened": "A platform administrator has access to the tenant from now on.",
        "tenancy.break_glass.closed": "Break-glass closed before it expired.",
        "tenancy.break_glass.expired": "Break-glass expired.",
    }
)

WAIT_MS = 60 * 60 * 1000  # for the approval by a second administrator


def open_glass(ctx: Context, body: schemas.OpenBreakGlass) -> Row[Any]:
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


def approve(ctx: Context, glass_id: str) -> Row[Any]:
    """By an administrator other than the one who opened it. Its time starts now."""
    row = _break_glass(ctx.tx, glass_id, lock=True)
    if row.opened_by == ctx.principal.id:
        raise SecondPersonNeeded("You opened this break-glass yourself.")
    changes = {"approved_by": ctx.principal.id, "active_at": ctx.now, "expires_at": ctx.now + row.minutes * 60_000}
    return _move(ctx, row, "approve", "opened", changes)


def close(ctx: Context, glass_id: str) -> Row[Any]:
    row = _break_glass(ctx.tx, glass_id, lock=True)
    return _move(ctx, row, "close", "closed", {"closed_by": ctx.principal.id, "ended_at": ctx.now})


def expire_due(ctx: Context) -> None:
    """Called by housekeeping. Access ended at `expires_at`; this records the end and emits the tenant's event."""
    due = break_glass.c.state.in_(BREAK_GLASS.live_states) & (break_glass.c.expires_at <= ctx.now)
    for row in ctx.tx.execute(select(break_glass).where(due).order_by(break_glass.c.id).with_for_update()).all():
        scope = tenant_scope(ctx.tx, row.tenant_id)
        ended = {"state": BREAK_GLASS.after(row.state, "expire"), "ended_at": row.expires_at}
        ctx.tx.execute(update(break_glass).where(break_glass.c.id == row.id).values(**ended))
        ctx.emit("tenancy.break_glass.expired", row.id, _facts(row), scope=scope)
        ctx.rights_changed(row.opened_by)
        actor = {"actor_id": ctx.principal.id, "actor_kind": ctx.principal.kind, "permission": ctx.permission}
        what = {"outcome": "allowed", "reason": f"break-glass {row.id} expired", "resource_id": row.id}
        ctx.note(Entry(**actor, **what, tenant_id=row.tenant_id, project_id=None, via=row.id))


def list_query(tenant_id: str | None = None) -> Select[Any]:
    query = select(break_glass)
    return query if tenant_id is None else query.where(break_glass.c.tenant_id == tenant_id)


def view(row: Row[Any]) -> schemas.BreakGlassView:
    return schemas.BreakGlassView.model_validate(row)


def _move(ctx: Context, row: Row[Any], action: str, event: str, changes: dict[str, Any]) -> Row[Any]:
    ctx.scope = tenant_scope(ctx.tx, row.tenant_id)
    ctx.resource_id = row.id
    state = BREAK_GLASS.after(EXPIRED if row.expires_at <= ctx.now else row.state, action)
    ctx.tx.execute(update(break_glass).where(break_glass.c.id == row.id).values(state=state, **changes))
    after = _break_glass(ctx.tx, row.id)
    _announce(ctx, after, event)
    ctx.rights_changed(row.opened_by)
    return after


def _announce(ctx: Context, row: Row[Any], event: str) -> None:
    ctx.emit(f"tenancy.break_glass.{event}", row.id, _facts(row))
    ctx.reason = f"{ctx.reason}; break-glass {row.id} ({row.mode}) for {row.ticket}: {row.reason}"


def _facts(row: Row[Any]) -> dict[str, Any]:
    names = ("mode", "reason", "ticket", "opened_by", "approved_by", "closed_by")
    return {name: getattr(row, name) for name in names}


def _break_glass(tx: Connection, glass_id: str, *, lock: bool = False) -> Row[Any]:
    query = select(break_glass).where(break_glass.c.id == glass_id)
    row = tx.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise NotFound("There is no such break-glass.")
    return row
