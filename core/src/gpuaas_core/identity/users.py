"""People: disabled and enabled by their tenant's administrators; their own password and sessions."""

from typing import Any

from sqlalchemy import Connection, Row, Select, select, update

from ..access.context import Context
from ..kit.problems import NotFound
from ..ledger.events import declare
from ..tenancy import schemas
from ..tenancy.errors import NotYourself
from ..tenancy.reads import tenant_scope
from ..tenancy.tables import principals, sessions, tenants
from . import authentication

declare(
    {
        "tenancy.user.disabled": "A user can no longer sign in; all sessions ended.",
        "tenancy.user.enabled": "A user can sign in again.",
        "tenancy.user.password_changed": "A user has a new password; all other sessions ended.",
        "tenancy.session.revoked": "A person ended one of their sessions.",
        "tenancy.session.closed": "Somebody signed out.",
    }
)


MOST_ACCOUNTS = 2  # that one sign-in without a tenant compares the password with


def set_enabled(ctx: Context, tenant_id: str, user_id: str, *, enabled: bool) -> Row[Any]:
    row = _user(ctx.tx, tenant_id, user_id)
    ctx.resource_id = user_id
    if user_id == ctx.principal.id:
        raise NotYourself("You are about to lock yourself out.")
    if enabled == (row.disabled_at is None):
        return row
    mine = principals.c.id == user_id
    ctx.tx.execute(update(principals).where(mine).values(disabled_at=None if enabled else ctx.now))
    if enabled:
        ctx.emit("tenancy.user.enabled", user_id, {})
    else:
        authentication.close_sessions(ctx.tx, sessions.c.principal_id == user_id, now=ctx.now)
        ctx.emit("tenancy.user.disabled", user_id, {})
        ctx.rights_changed(user_id)
    return _user(ctx.tx, tenant_id, user_id)


def change_password(ctx: Context, token: str, password_hash: str) -> schemas.SessionsEnded:
    """The caller goes on; whoever else is signed in under this account is not any more."""
    _at_home(ctx)
    me = ctx.resource_id = ctx.principal.id
    ctx.tx.execute(update(principals).where(principals.c.id == me).values(password_hash=password_hash))
    others = (sessions.c.principal_id == me) & (sessions.c.token_hash != authentication.token_hash(token))
    ended = authentication.close_sessions(ctx.tx, others, sessions.c.expires_at > ctx.now, now=ctx.now)
    ctx.emit("tenancy.user.password_changed", me, {"ended_sessions": ended})
    ctx.rights_changed(me)
    return schemas.SessionsEnded(ended_sessions=ended)


def sign_out(ctx: Context, token: str) -> None:
    _at_home(ctx)
    query = select(sessions.c.id).where(sessions.c.token_hash == authentication.token_hash(token))
    ctx.resource_id = ctx.tx.execute(query).scalar_one()
    authentication.close_session(ctx.tx, token, ctx.now)
    ctx.emit("tenancy.session.closed", str(ctx.resource_id), {"principal_id": ctx.principal.id})
    ctx.rights_changed(ctx.principal.id)


def with_address(tx: Connection, email: str, tenant: str | None) -> list[Row[Any]]:
    """An e-mail may have one account per tenant. Without the tenant's name only the first few count: the platform's own
    account, which no tenant names, and then the oldest. So nobody shuts an account out by making others like it."""
    first = (principals.c.tenant_id.is_not(None), principals.c.id)
    mine = select(principals).where(principals.c.email == email).order_by(*first)
    if tenant is not None:
        mine = mine.join(tenants, tenants.c.id == principals.c.tenant_id).where(tenants.c.slug == tenant)
    return list(tx.execute(mine.limit(MOST_ACCOUNTS)))


def my_sessions(ctx: Context) -> Select[Any]:
    mine = [sessions.c.principal_id == ctx.principal.id, sessions.c.revoked_at.is_(None)]
    return select(sessions).where(*mine, sessions.c.expires_at > ctx.now)


def revoke_session(ctx: Context, session_id: str) -> Row[Any]:
    row = ctx.tx.execute(my_sessions(ctx).where(sessions.c.id == session_id)).first()
    if row is None:
        raise NotFound("You have no such session.")
    _at_home(ctx)
    ctx.resource_id = session_id
    authentication.close_sessions(ctx.tx, sessions.c.token_hash == row.token_hash, now=ctx.now)
    ctx.emit("tenancy.session.revoked", session_id, {})
    ctx.rights_changed(ctx.principal.id)
    return row


def session_view(row: Row[Any], token: str) -> schemas.SessionView:
    current = row.token_hash == authentication.token_hash(token)
    return schemas.SessionView.model_validate(dict(row._mapping) | {"current": current})


def _user(tx: Connection, tenant_id: str, user_id: str) -> Row[Any]:
    mine = (principals.c.id == user_id) & (principals.c.tenant_id == tenant_id) & (principals.c.kind == "user")
    row = tx.execute(select(principals).where(mine)).first()
    if row is None:
        raise NotFound("There is no such user in this tenant.")
    return row


def _at_home(ctx: Context) -> None:
    """What people do to their own account is told and recorded in their tenant."""
    if ctx.principal.tenant_id:
        ctx.scope = tenant_scope(ctx.tx, ctx.principal.tenant_id)
