"""Sessions: the opaque access tokens of users, service accounts and nodes.

A token is random and stored as a hash. Revoking a token changes one row and takes effect on the next request. The
database contains nothing that can be used to sign in. See docs/decisions/0003-opaque-tokens.md.
"""

import hashlib
import secrets
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, delete, insert, select, update

from ..authz.context import Context, TokenExpired, Unauthenticated
from ..authz.evaluate import Principal, Scope
from ..events.event_log import declare
from ..http.console import PREFIX as CONSOLE
from ..iam.principals import HOLDERS, holder, with_grants
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.rows import Query
from ..tenancy.reads import tenant_scope
from . import schemas
from .rows import SessionHolderRow, SessionRow
from .tables import sessions

declare(
    {
        "tenancy.session.revoked": "A user revoked one of their own sessions.",
        "tenancy.session.closed": "A principal signed out.",
    }
)

USER_TOKEN_S = 12 * 3600
CONSOLE_IDLE_S = 3600  # an unused console session ends after this time, within the same twelve hours
MACHINE_TOKEN_S = 15 * 60

SESSION_ID = sessions.c.id
_s = sessions.c
# Who the caller is and which roles it holds: one statement, run on every request.
_BY_TOKEN = Query(
    HOLDERS.add_columns(_s.expires_at, _s.idle_until, _s.revoked_at, _s.key_id)
    .join(sessions, _s.principal_id == HOLDERS.selected_columns.id)
    .where(_s.token_hash == bindparam("token")),
    SessionHolderRow,
)
_SESSIONS = Query(select(sessions), SessionRow)
_ID_BY_TOKEN = select(_s.id).where(_s.token_hash == bindparam("token"))


def authenticate(tx: Connection, token: str, now: int) -> Principal:
    """Return the principal of an access token with its role bindings. If its `borrows` is set, `lend` adds delegations.
    Raises Unauthenticated for an unknown token or a disabled account, and TokenExpired for an expired or revoked
    token."""
    rows = _BY_TOKEN.all(tx, token=token_hash(token))
    if not rows:
        raise Unauthenticated("This bearer token is unknown.")
    row = rows[0]
    if row.disabled_at is not None:
        raise Unauthenticated(f"{row.name} is disabled.")
    ends_at = min(row.expires_at, row.idle_until or row.expires_at)
    if row.revoked_at is not None or ends_at <= now:
        raise TokenExpired("This access token has expired or was revoked.")
    return holder(rows, key_id=row.key_id, session_ends_at=ends_at)


def lend(tx: Connection, principal: Principal, now: int, scope: Scope) -> Principal:
    """Return the principal with its active delegations and break-glass. For a scope in a project, delegations in other
    projects are not read, since there may be thousands of them."""
    return with_grants(tx, principal, now, scope.project_id) if principal.borrows else principal


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def open_session(
    tx: Connection,
    principal_id: str,
    *,
    lives_s: int,
    now: int,
    address: str | None = None,
    key_id: str | None = None,
    console: bool = False,
) -> str:
    token = f"{CONSOLE if console else 'gpt_'}{secrets.token_urlsafe(32)}"
    row = {"token_hash": token_hash(token), "id": new_id("ses"), "principal_id": principal_id, "created_at": now}
    more = {"expires_at": now + lives_s * 1000, "address": address, "key_id": key_id}
    idle_until = now + CONSOLE_IDLE_S * 1000 if console else None
    tx.execute(insert(sessions).values(**row, **more, idle_until=idle_until))
    return token


def renew_session(tx: Connection, token: str, now: int) -> None:
    """Extend the idle limit of a console session that is in use. The session still ends at its expiry."""
    alive = (sessions.c.token_hash == token_hash(token)) & (sessions.c.idle_until > now)
    tx.execute(update(sessions).where(alive).values(idle_until=now + CONSOLE_IDLE_S * 1000))


def sign_out(ctx: Context, token: str) -> None:
    record_in_own_tenant(ctx)
    mine = sessions.c.token_hash == token_hash(token)
    ctx.resource_id = ctx.tx.execute(_ID_BY_TOKEN, {"token": token_hash(token)}).scalar_one()
    _close(ctx.tx, mine, now=ctx.now)
    ctx.emit("tenancy.session.closed", str(ctx.resource_id), {"principal_id": ctx.principal.id})
    ctx.rights_changed(ctx.principal.id)


def own_sessions(ctx: Context) -> Query[SessionRow]:
    return _SESSIONS.where(_s.principal_id == ctx.principal.id, _s.revoked_at.is_(None), _s.expires_at > ctx.now)


def revoke_session(ctx: Context, session_id: str) -> SessionRow:
    row = own_sessions(ctx).where(_s.id == session_id).first(ctx.tx)
    if row is None:
        raise NotFound("You have no such session.")
    record_in_own_tenant(ctx)
    ctx.resource_id = session_id
    _close(ctx.tx, sessions.c.token_hash == row.token_hash, now=ctx.now)
    ctx.emit("tenancy.session.revoked", session_id, {})
    ctx.rights_changed(ctx.principal.id)
    return row


def session_view(row: SessionRow, token: str) -> schemas.SessionView:
    current = row.token_hash == token_hash(token)
    return schemas.SessionView.model_validate(vars(row) | {"current": current})


def close_sessions_of(tx: Connection, principal_id: str, now: int) -> None:
    """Close all sessions of the principal. They stay closed if the principal is enabled again."""
    _close(tx, sessions.c.principal_id == principal_id, now=now)


def close_other_sessions(tx: Connection, principal_id: str, token: str, now: int) -> int:
    """Close every session of the principal except the session of `token`; return how many were closed."""
    others = (sessions.c.principal_id == principal_id) & (sessions.c.token_hash != token_hash(token))
    return _close(tx, others, sessions.c.expires_at > now, now=now)


def close_sessions_of_keys(tx: Connection, key_ids: Sequence[str], now: int) -> None:
    """Close the sessions that were opened with these keys."""
    _close(tx, sessions.c.key_id.in_(key_ids), now=now)


def end_all_sessions(tx: Connection) -> int:
    """Delete all sessions after a restore; return how many. The backup may contain sessions that were revoked after it
    was taken."""
    return tx.execute(delete(sessions)).rowcount


def forget_old_sessions(tx: Connection, now: int) -> int:
    return delete_some(tx, sessions, sessions.c.expires_at < now - 3600_000)


def record_in_own_tenant(ctx: Context) -> None:
    """Set the scope of the request to the caller's tenant, where events and audit rows about the caller's own account
    belong. A caller without a tenant keeps the scope."""
    if ctx.principal.tenant_id:
        ctx.scope = tenant_scope(ctx.tx, ctx.principal.tenant_id)


def _close(tx: Connection, *which: ColumnElement[bool], now: int) -> int:
    return tx.execute(update(sessions).where(*which, sessions.c.revoked_at.is_(None)).values(revoked_at=now)).rowcount
