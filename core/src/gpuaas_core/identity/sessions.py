"""Sessions: the opaque access tokens of users, service accounts and nodes.

A token is random and stored as a hash: revoking it is a row, effective on the next request, and the database holds
nothing that can be used to sign in. See docs/decisions/0003-opaque-tokens.md.
"""

import hashlib
import secrets
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, delete, insert, select, update

from ..authz.context import Context, TokenExpired, Unauthenticated
from ..authz.evaluate import Principal
from ..events.event_log import declare
from ..http.console import PREFIX as CONSOLE
from ..iam.principals import WITH_GRANT_FLAG, principal_of, with_grants
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..tenancy.reads import tenant_scope
from . import schemas
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

# Built once: this query runs on every request.
_BY_TOKEN = (
    WITH_GRANT_FLAG.add_columns(sessions.c.expires_at, sessions.c.idle_until, sessions.c.revoked_at, sessions.c.key_id)
    .join(sessions, sessions.c.principal_id == WITH_GRANT_FLAG.selected_columns.id)
    .where(sessions.c.token_hash == bindparam("token"))
)


def authenticate(tx: Connection, token: str, now: int, *, lent: bool = True) -> Principal:
    """Without `lent` the grants, which can be many, are not read; `borrows` tells whether there are any."""
    row = tx.execute(_BY_TOKEN, {"token": token_hash(token)}).first()
    if row is None:
        raise Unauthenticated("This bearer token is unknown.")
    if row.disabled_at is not None:
        raise Unauthenticated(f"{row.name} is disabled.")
    if row.revoked_at is not None or row.expires_at <= now or (row.idle_until or row.expires_at) <= now:
        raise TokenExpired("This access token has expired or was revoked.")
    ends_at = min(row.expires_at, row.idle_until or row.expires_at)
    principal = replace(principal_of(tx, row, row.key_id), session_ends_at=ends_at, borrows=bool(row.has_grants))
    return with_grants(tx, principal, now) if lent and row.has_grants else principal


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
    """A console session in use moves its idle limit forward, never past its expiry."""
    alive = (sessions.c.token_hash == token_hash(token)) & (sessions.c.idle_until > now)
    tx.execute(update(sessions).where(alive).values(idle_until=now + CONSOLE_IDLE_S * 1000))


def sign_out(ctx: Context, token: str) -> None:
    record_in_own_tenant(ctx)
    mine = sessions.c.token_hash == token_hash(token)
    ctx.resource_id = ctx.tx.execute(select(sessions.c.id).where(mine)).scalar_one()
    _close(ctx.tx, mine, now=ctx.now)
    ctx.emit("tenancy.session.closed", str(ctx.resource_id), {"principal_id": ctx.principal.id})
    ctx.rights_changed(ctx.principal.id)


def own_sessions(ctx: Context) -> Select[Any]:
    mine = [sessions.c.principal_id == ctx.principal.id, sessions.c.revoked_at.is_(None)]
    return select(sessions).where(*mine, sessions.c.expires_at > ctx.now)


def revoke_session(ctx: Context, session_id: str) -> Row[Any]:
    row = ctx.tx.execute(own_sessions(ctx).where(sessions.c.id == session_id)).first()
    if row is None:
        raise NotFound("You have no such session.")
    record_in_own_tenant(ctx)
    ctx.resource_id = session_id
    _close(ctx.tx, sessions.c.token_hash == row.token_hash, now=ctx.now)
    ctx.emit("tenancy.session.revoked", session_id, {})
    ctx.rights_changed(ctx.principal.id)
    return row


def session_view(row: Row[Any], token: str) -> schemas.SessionView:
    current = row.token_hash == token_hash(token)
    return schemas.SessionView.model_validate(dict(row._mapping) | {"current": current})


def close_sessions_of(tx: Connection, principal_id: str, now: int) -> None:
    """They end on their next request, and stay closed if the principal is enabled again."""
    _close(tx, sessions.c.principal_id == principal_id, now=now)


def close_other_sessions(tx: Connection, principal_id: str, token: str, now: int) -> int:
    """Every session of the principal but the caller's. Returns how many there were."""
    others = (sessions.c.principal_id == principal_id) & (sessions.c.token_hash != token_hash(token))
    return _close(tx, others, sessions.c.expires_at > now, now=now)


def close_sessions_of_keys(tx: Connection, key_ids: list[str], now: int) -> None:
    """The sessions that were opened with these keys."""
    _close(tx, sessions.c.key_id.in_(key_ids), now=now)


def end_all_sessions(tx: Connection) -> int:
    """After a restore: the backup may contain sessions that were revoked after it was taken."""
    return tx.execute(delete(sessions)).rowcount


def forget_old_sessions(tx: Connection, now: int) -> int:
    return delete_some(tx, sessions, sessions.c.expires_at < now - 3600_000)


def record_in_own_tenant(ctx: Context) -> None:
    """Changes of a user's own account belong to the events and the audit trail of the user's tenant."""
    if ctx.principal.tenant_id:
        ctx.scope = tenant_scope(ctx.tx, ctx.principal.tenant_id)


def _close(tx: Connection, *which: ColumnElement[bool], now: int) -> int:
    return tx.execute(update(sessions).where(*which, sessions.c.revoked_at.is_(None)).values(revoked_at=now)).rowcount
