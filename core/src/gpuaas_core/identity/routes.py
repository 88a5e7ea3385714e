"""HTTP in, HTTP out: signing in and out, and what callers see and change of themselves."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Response
from sqlalchemy import Connection, Row, select

from ..access.context import Context
from ..edge import console
from ..edge.call import Call, Caller, needs, public
from ..edge.lists import Cursor, Limit, page
from ..iam import explain
from ..kit.wire import Page, canonical
from ..tenancy import schemas, service
from ..tenancy.errors import AssertionRefused, PasswordWrong, SignInRefused, TenantNeeded
from ..tenancy.tables import principals, sessions
from . import authentication, login_throttle, node_keys, users
from .clone_detection import watched

router = APIRouter(prefix="/v1", tags=["identity and tenancy"])
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
Permission = Annotated[str, Query(max_length=80, description="a key of contracts/permissions.json")]
Where = Annotated[str | None, Query(max_length=40)]


@router.post("/sign-in", response_model=schemas.TokenView, **public())
async def sign_in(call: Caller, body: schemas.SignIn) -> Response:
    """A person signs in with e-mail and password. Ten wrong tries in 15 minutes, then 429 for the rest of them.

    An e-mail that was tried often from other addresses is answered later, by ten seconds at most.
    """
    tried, person_id = await _recognise(call, body)

    def enter(ctx: Context) -> schemas.TokenView:
        _throttle(call).succeed(ctx.tx, tried, person_id, ctx.now)
        return _open(ctx, person_id, authentication.USER_TOKEN_S, address=address_of(call))

    return await call.write(enter, repeats=False, audited=False)


@router.post("/auth/session", response_model=schemas.ConsoleSessionView, **public())
async def open_console_session(call: Caller, body: schemas.SignIn) -> Response:
    """As sign-in, for browsers: the token is a cookie no script reads; what changes something needs `csrf_token`."""
    console.check_origin(call.request, call.platform.public_url, required=False)
    tried, person_id = await _recognise(call, body)
    opened: list[str] = []

    def enter(ctx: Context) -> schemas.ConsoleSessionView:
        _throttle(call).succeed(ctx.tx, tried, person_id, ctx.now)
        opened[:] = [open_console(ctx, person_id, address_of(call))]
        return console_view(call, person_id, opened[0])

    response = await call.write(enter, repeats=False, audited=False)
    console.give(response, call.request, call.vault, opened[0], authentication.USER_TOKEN_S)
    return response


@router.get("/auth/session", **needs("identity.self.use"))
async def get_console_session(call: Caller) -> schemas.ConsoleSessionView:
    """For a console that was loaded again: who is signed in, and the CSRF token (none for a bearer token)."""
    return console_view(call, call.principal.id, call.token)


@router.post("/token", response_model=schemas.TokenView, **public())
async def get_token(
    call: Caller,
    grant_type: Annotated[str, Form()],
    client_assertion_type: Annotated[str, Form()],
    client_assertion: Annotated[str, Form(max_length=4000)],
) -> Response:
    """A service account or node signs in with a client assertion (private_key_jwt); `kid` may name the key."""
    if grant_type != "client_credentials" or client_assertion_type != _ASSERTION:
        raise AssertionRefused("Only client_credentials with a JWT bearer assertion is supported.")

    def redeem(ctx: Context) -> schemas.TokenView:
        row, key_id = node_keys.sign_in(ctx.tx, call.vault, client_assertion, ctx.now)
        ctx.rights_changed(row.id)  # a machine's former key may have ended with the first use of this one
        return _open(ctx, row.id, authentication.MACHINE_TOKEN_S, address=address_of(call), key_id=key_id)

    return await watched(call, call.write(redeem, repeats=False, audited=False))


@router.post("/sign-out", status_code=204, **needs("identity.self.use"))
async def sign_out(call: Caller) -> Response:
    """Ends the session: the token is dead at once."""
    token = call.token
    response = await call.write(lambda ctx: users.sign_out(ctx, token), repeats=False)
    if call.by_cookie:
        console.take_back(response, call.request)
    return response


@router.get("/whoami", **needs("identity.self.use"))
async def whoami(call: Caller) -> schemas.WhoamiView:
    return await call.read(lambda ctx: service.whoami(ctx.tx, ctx.principal))


@router.get("/whoami/explain", **needs("identity.self.use"))
async def explain_myself(
    call: Caller, permission: Permission, project_id: Where = None, tenant_id: Where = None
) -> schemas.ExplainView:
    """Why I may or may not do something: in a project, in a tenant, or (without either) at the platform."""
    return await call.read(lambda ctx: explain.explain_myself(ctx.tx, ctx.principal, permission, tenant_id, project_id))


@router.get("/whoami/permissions", **needs("identity.self.use"))
async def my_permissions(call: Caller, project_id: Where = None, tenant_id: Where = None) -> schemas.PermissionsView:
    """Every key I hold: in a project, in a tenant, or (without either) at the platform. `explain` says why."""
    return await call.read(lambda ctx: explain.my_permissions(ctx.tx, ctx.principal, tenant_id, project_id))


@router.get("/whoami/sessions", **needs("identity.self.use"))
async def list_sessions(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.SessionView]:
    """Where I am signed in now."""
    token = call.token
    return await call.read(
        lambda ctx: page(
            ctx, users.my_sessions(ctx), sessions.c.id, limit, cursor, lambda row: users.session_view(row, token)
        )
    )


@router.post("/whoami/sessions/{session_id}/revoke", response_model=schemas.SessionView, **needs("identity.self.use"))
async def revoke_session(call: Caller, session_id: str) -> Response:
    """Ends one of my sessions; its token is dead on its next request."""
    token = call.token
    return await call.write(lambda ctx: users.session_view(users.revoke_session(ctx, session_id), token))


@router.post("/whoami/password", response_model=schemas.SessionsEnded, **needs("identity.self.use"))
async def change_password(call: Caller, body: schemas.ChangePassword) -> Response:
    """A new password for me; every other session of mine ends."""
    token = call.token
    bucket = call.vault.mac(canonical(["guess", "password", call.principal.id]))
    login_throttle.refuse(await call.platform.db.write(lambda tx: login_throttle.take(tx, bucket, call.now)))
    row = await call.read(lambda ctx: ctx.tx.execute(_me(ctx)).one())
    good = await asyncio.to_thread(authentication.password_matches, row.password_hash, body.current_password)
    hashed = await asyncio.to_thread(authentication.hash_password, body.new_password) if good else ""

    def change(ctx: Context) -> schemas.SessionsEnded:
        if not good:  # said here, after a repeat of the same request was recognised
            raise PasswordWrong("The present password is another one.")
        login_throttle.forget(ctx.tx, bucket)
        return users.change_password(ctx, token, hashed)

    return await call.write(change)


async def _recognise(call: Call, body: schemas.SignIn) -> tuple[login_throttle.Try, str]:
    """The person with this address and password, and the try that the throttle counted."""

    def begin(tx: Connection) -> login_throttle.Try:
        known = users.with_address(tx, body.email, body.tenant)
        return _throttle(call).begin(tx, body.email, known, address_of(call), call.now)

    tried = await call.platform.db.write(begin)
    if tried.wait_s:  # no transaction and no thread waits with it
        await login_throttle.pause(tried.wait_s)
        call.now = call.platform.clock()
    comparisons = users.MOST_ACCOUNTS if body.tenant is None else 1
    asked = select(principals).where(principals.c.id.in_(tried.compared))
    compared = await call.read(lambda ctx: ctx.tx.execute(asked).all())  # as they are after the wait
    matching = await asyncio.to_thread(_matching, compared, body.password, comparisons)
    if len(matching) > 1:
        raise TenantNeeded("This address and password belong to accounts of several tenants.")
    if not matching or matching[0].disabled_at is not None:
        raise SignInRefused("E-mail or password is wrong, or the account is disabled or was tried too often from here.")
    return tried, matching[0].id


def _matching(compared: Sequence[Row[Any]], password: str, comparisons: int) -> list[Row[Any]]:
    """As many comparisons whatever accounts there are: the time must not tell."""
    for _ in range(comparisons - len(compared)):
        authentication.password_matches(None, password)
    return [row for row in compared if authentication.password_matches(row.password_hash, password)]


def _throttle(call: Call) -> login_throttle.Throttle:
    return login_throttle.Throttle(call.vault.mac)


def open_console(ctx: Context, principal_id: str, address: str | None) -> str:
    lives_s = authentication.USER_TOKEN_S
    return authentication.open_session(
        ctx.tx, principal_id, lives_s=lives_s, now=ctx.now, address=address, console=True
    )


def console_view(call: Call, principal_id: str, token: str) -> schemas.ConsoleSessionView:
    csrf = console.csrf_token(call.vault, token) if token.startswith(console.PREFIX) else None
    return schemas.ConsoleSessionView(principal_id=principal_id, csrf_token=csrf)


def _me(ctx: Context):
    return select(principals).where(principals.c.id == ctx.principal.id)


def address_of(call: Call) -> str | None:
    return call.request.client.host[:64] if call.request.client else None


def _open(
    ctx: Context, principal_id: str, lives_s: int, *, address: str | None, key_id: str | None = None
) -> schemas.TokenView:
    token = authentication.open_session(
        ctx.tx, principal_id, lives_s=lives_s, now=ctx.now, address=address, key_id=key_id
    )
    return schemas.TokenView(access_token=token, expires_in=lives_s, principal_id=principal_id)
