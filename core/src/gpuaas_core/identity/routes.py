"""HTTP routes to sign in and out, and for callers to see and change their own account."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Query, Response
from sqlalchemy import Connection

from ..authz.context import Context
from ..http import console
from ..http.call import Call, Caller, needs, public
from ..http.lists import Cursor, Limit, page
from ..iam import explain
from ..iam.directory import get_principal, get_principals
from ..iam.routes import Permission
from ..iam.rows import PrincipalRow
from ..iam.schemas import ExplainView, PermissionsView
from ..kit.wire import Page, canonical
from . import login_throttle, node_keys, passwords, schemas, sessions, users
from .clone_detection import detect_clones
from .errors import AssertionRefused, PasswordWrong, SignInRefused, TenantNeeded

router = APIRouter(prefix="/v1", tags=["identity and tenancy"])
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
Where = Annotated[str | None, Query(max_length=40)]


@router.post("/sign-in", response_model=schemas.TokenView, **public())
async def sign_in(call: Caller, body: schemas.SignIn) -> Response:
    """Sign in with e-mail and password. After ten wrong attempts, further attempts are answered with 429 until 15
    minutes are over.

    If an e-mail was tried often from other addresses, the response is delayed, by ten seconds at most.
    """
    attempt, user_id = await _check_password(call, body)

    def enter(ctx: Context) -> schemas.TokenView:
        _throttle(call).succeed(ctx.tx, attempt, user_id, ctx.now)
        return _open(ctx, user_id, sessions.USER_TOKEN_S, address=address_of(call))

    return await call.write(enter, repeats=False, audited=False)


@router.post("/auth/session", response_model=schemas.ConsoleSessionView, **public())
async def open_console_session(call: Caller, body: schemas.SignIn) -> Response:
    """Sign in from a browser. The token is an HttpOnly cookie; requests that change something must send the
    `csrf_token`."""
    console.check_origin(call.request, call.platform.public_url, required=False)
    attempt, user_id = await _check_password(call, body)
    opened: list[str] = []

    def enter(ctx: Context) -> schemas.ConsoleSessionView:
        _throttle(call).succeed(ctx.tx, attempt, user_id, ctx.now)
        opened[:] = [open_console(ctx, user_id, address_of(call))]
        return console_view(call, user_id, opened[0])

    response = await call.write(enter, repeats=False, audited=False)
    console.give(response, call.request, call.vault, opened[0], sessions.USER_TOKEN_S)
    return response


@router.get("/auth/session", **needs("identity.self.use"))
async def get_console_session(call: Caller) -> schemas.ConsoleSessionView:
    """Get the id of the signed-in principal and the CSRF token (null for a bearer token). A reloaded console page calls
    this."""
    return console_view(call, call.principal.id, call.token)


@router.post("/token", response_model=schemas.TokenView, **public())
async def get_token(
    call: Caller,
    grant_type: Annotated[str, Form()],
    client_assertion_type: Annotated[str, Form()],
    client_assertion: Annotated[str, Form(max_length=4000)],
) -> Response:
    """Sign in as a service account or node with a client assertion (private_key_jwt). Its header may name the key
    (`kid`)."""
    if grant_type != "client_credentials" or client_assertion_type != _ASSERTION:
        raise AssertionRefused("Only client_credentials with a JWT bearer assertion is supported.")

    def redeem(ctx: Context) -> schemas.TokenView:
        row, key_id = node_keys.sign_in(ctx.tx, call.vault, client_assertion, ctx.now)
        if row.kind == "node":
            ctx.rights_changed(row.id)  # the first use of a node key retires the former key
        return _open(ctx, row.id, sessions.MACHINE_TOKEN_S, address=address_of(call), key_id=key_id)

    return await detect_clones(call, call.write(redeem, repeats=False, audited=False))


@router.post("/sign-out", status_code=204, **needs("identity.self.use"))
async def sign_out(call: Caller) -> Response:
    """Close the session of this request; its token is rejected from now on."""
    token = call.token
    response = await call.write(lambda ctx: sessions.sign_out(ctx, token), repeats=False)
    if call.by_cookie:
        console.take_back(response, call.request)
    return response


@router.get("/whoami", **needs("identity.self.use"))
async def whoami(call: Caller) -> schemas.WhoamiView:
    return await call.read(lambda ctx: users.whoami(ctx.tx, ctx.principal))


@router.get("/whoami/explain", **needs("identity.self.use"))
async def explain_myself(
    call: Caller, permission: Permission, project_id: Where = None, tenant_id: Where = None
) -> ExplainView:
    """Explain why the caller has a permission or not: in a project, in a tenant, or (without either) on the
    platform."""
    return await call.read(lambda ctx: explain.explain_myself(ctx.tx, ctx.principal, permission, tenant_id, project_id))


@router.get("/whoami/permissions", **needs("identity.self.use"))
async def my_permissions(call: Caller, project_id: Where = None, tenant_id: Where = None) -> PermissionsView:
    """List the permissions of the caller: in a project, in a tenant, or (without either) on the platform."""
    return await call.read(lambda ctx: explain.my_permissions(ctx.tx, ctx.principal, tenant_id, project_id))


@router.get("/whoami/sessions", **needs("identity.self.use"))
async def list_sessions(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.SessionView]:
    """List the open sessions of the caller."""
    token = call.token

    def read(ctx: Context) -> Page[schemas.SessionView]:
        query = sessions.own_sessions(ctx)
        return page(ctx, query, sessions.SESSION_ID, limit, cursor, lambda row: sessions.session_view(row, token))

    return await call.read(read)


@router.post("/whoami/sessions/{session_id}/revoke", response_model=schemas.SessionView, **needs("identity.self.use"))
async def revoke_session(call: Caller, session_id: str) -> Response:
    """Close one of the caller's sessions: the next request with its token is rejected."""
    token = call.token
    return await call.write(lambda ctx: sessions.session_view(sessions.revoke_session(ctx, session_id), token))


@router.post("/whoami/password", response_model=schemas.SessionsEnded, **needs("identity.self.use"))
async def change_password(call: Caller, body: schemas.ChangePassword) -> Response:
    """Change the caller's password and close all other sessions of the caller."""
    token = call.token
    bucket = call.vault.mac(canonical(["guess", "password", call.principal.id]))
    login_throttle.reject(await call.platform.db.write(lambda tx: login_throttle.count_try(tx, bucket, call.now)))
    row = await call.read(lambda ctx: get_principal(ctx.tx, ctx.principal.id))
    matches = await asyncio.to_thread(passwords.password_matches, row.password_hash, body.current_password)
    hashed = await asyncio.to_thread(passwords.hash_password, body.new_password) if matches else ""

    def change(ctx: Context) -> schemas.SessionsEnded:
        if not matches:  # raised here, after a repeat of the same request was recognised
            raise PasswordWrong("The current password does not match.")
        login_throttle.reset(ctx.tx, bucket)
        return users.change_password(ctx, token, hashed)

    return await call.write(change)


async def _check_password(call: Call, body: schemas.SignIn) -> tuple[login_throttle.Try, str]:
    """Check e-mail and password; return the attempt that the throttle counted, and the id of the user. Raises
    SignInRefused if no account matches, and TenantNeeded if several match."""

    def begin(tx: Connection) -> login_throttle.Try:
        accounts = users.candidates(tx, body.email, body.tenant)
        return _throttle(call).begin(tx, body.email, accounts, address_of(call), call.now)

    attempt = await call.platform.db.write(begin)
    if attempt.wait_s:  # outside of any transaction or thread
        await login_throttle.pause(attempt.wait_s)
        call.now = call.platform.clock()
    comparisons = users.MOST_COMPARED if body.tenant is None else 1
    compared = await call.read(lambda ctx: get_principals(ctx.tx, attempt.compared))  # as they are after the wait
    matching = await asyncio.to_thread(_matching, compared, body.password, comparisons)
    if len(matching) > 1:
        raise TenantNeeded("This e-mail and password belong to accounts of several tenants.")
    if not matching or matching[0].disabled_at is not None:
        raise SignInRefused(
            "E-mail or password is wrong, or the account is disabled or was tried too often from this address."
        )
    return attempt, matching[0].id


def _matching(compared: Sequence[PrincipalRow], password: str, comparisons: int) -> list[PrincipalRow]:
    """Return the accounts whose password matches. The number of comparisons is constant, so that timing reveals no
    accounts."""
    for _ in range(comparisons - len(compared)):
        passwords.password_matches(None, password)
    return [row for row in compared if passwords.password_matches(row.password_hash, password)]


def _throttle(call: Call) -> login_throttle.Throttle:
    return login_throttle.Throttle(call.vault.mac)


def open_console(ctx: Context, principal_id: str, address: str | None) -> str:
    lives_s = sessions.USER_TOKEN_S
    return sessions.open_session(ctx.tx, principal_id, lives_s=lives_s, now=ctx.now, address=address, console=True)


def console_view(call: Call, principal_id: str, token: str) -> schemas.ConsoleSessionView:
    csrf = console.csrf_token(call.vault, token) if token.startswith(console.PREFIX) else None
    return schemas.ConsoleSessionView(principal_id=principal_id, csrf_token=csrf)


def address_of(call: Call) -> str | None:
    return call.request.client.host[:64] if call.request.client else None


def _open(
    ctx: Context, principal_id: str, lives_s: int, *, address: str | None, key_id: str | None = None
) -> schemas.TokenView:
    token = sessions.open_session(ctx.tx, principal_id, lives_s=lives_s, now=ctx.now, address=address, key_id=key_id)
    return schemas.TokenView(access_token=token, expires_in=lives_s, principal_id=principal_id)
