"""HTTP in, HTTP out: signing in and out, and what callers see and change of themselves."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Form, Query, Response
from sqlalchemy import select

from ..access.context import Context
from ..edge.call import Call, Caller, needs, public
from ..edge.lists import Cursor, Limit, page
from ..kit.wire import Page, canonical
from . import explain, guesses, identity, people, schemas, service
from .errors import AssertionRefused, PasswordWrong, SignInRefused
from .tables import principals, sessions

router = APIRouter(prefix="/v1", tags=["identity and tenancy"])
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
Permission = Annotated[str, Query(max_length=80, description="a key of contracts/permissions.json")]
Where = Annotated[str | None, Query(max_length=40)]


@router.post("/sign-in", response_model=schemas.TokenView, **public())
async def sign_in(call: Caller, body: schemas.SignIn) -> Response:
    """A person signs in with e-mail and password. Ten wrong tries in 15 minutes, then 429 for the rest of them."""
    bucket = await _may_guess(call, "sign-in", body.email, _address(call) or "")
    row = await call.read(
        lambda ctx: ctx.tx.execute(select(principals).where(principals.c.email == body.email)).first()
    )
    good = await asyncio.to_thread(identity.password_matches, row.password_hash if row else None, body.password)
    if not good or row is None or row.disabled_at is not None:
        raise SignInRefused("E-mail or password is wrong, or the account is disabled.")

    def enter(ctx: Context) -> schemas.TokenView:
        guesses.forget(ctx.tx, bucket)
        return _open(ctx, row.id, identity.USER_TOKEN_S, address=_address(call))

    return await call.write(enter, repeats=False, audited=False)


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
        row, key_id = identity.check_assertion(ctx.tx, client_assertion, ctx.now)
        return _open(ctx, row.id, identity.MACHINE_TOKEN_S, address=_address(call), key_id=key_id)

    return await call.write(redeem, repeats=False, audited=False)


@router.post("/sign-out", status_code=204, **needs("identity.self.use"))
async def sign_out(call: Caller) -> Response:
    """Ends the session: the token is dead at once."""
    token = call.token
    return await call.write(lambda ctx: identity.close_session(ctx.tx, token, ctx.now), repeats=False)


@router.get("/whoami", **needs("identity.self.use"))
async def whoami(call: Caller) -> schemas.WhoamiView:
    return await call.read(lambda ctx: service.whoami(ctx.tx, ctx.principal))


@router.get("/whoami/explain", **needs("identity.self.use"))
async def explain_myself(
    call: Caller, permission: Permission, project_id: Where = None, tenant_id: Where = None
) -> schemas.ExplainView:
    """Why I may or may not do something: in a project, in a tenant, or (without either) at the platform."""
    return await call.read(lambda ctx: explain.explain_myself(ctx.tx, ctx.principal, permission, tenant_id, project_id))


@router.get("/whoami/sessions", **needs("identity.self.use"))
async def list_sessions(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.SessionView]:
    """Where I am signed in now."""
    token = call.token
    return await call.read(
        lambda ctx: page(
            ctx, people.my_sessions(ctx), sessions.c.id, limit, cursor, lambda row: people.session_view(row, token)
        )
    )


@router.post("/whoami/sessions/{session_id}/revoke", response_model=schemas.SessionView, **needs("identity.self.use"))
async def revoke_session(call: Caller, session_id: str) -> Response:
    """Ends one of my sessions; its token is dead on its next request."""
    token = call.token
    return await call.write(lambda ctx: people.session_view(people.revoke_session(ctx, session_id), token))


@router.post("/whoami/password", response_model=schemas.SessionsEnded, **needs("identity.self.use"))
async def change_password(call: Caller, body: schemas.ChangePassword) -> Response:
    """A new password for me; every other session of mine ends."""
    token = call.token
    bucket = await _may_guess(call, "password", call.principal.id)
    row = await call.read(lambda ctx: ctx.tx.execute(_me(ctx)).one())
    good = await asyncio.to_thread(identity.password_matches, row.password_hash, body.current_password)
    hashed = await asyncio.to_thread(identity.hash_password, body.new_password) if good else ""

    def change(ctx: Context) -> schemas.SessionsEnded:
        if not good:  # said here, after a repeat of the same request was recognised
            raise PasswordWrong("The present password is another one.")
        guesses.forget(ctx.tx, bucket)
        return people.change_password(ctx, token, hashed)

    return await call.write(change)


async def _may_guess(call: Call, *what: str) -> str:
    """Counts the try before the password is looked at: a thousand tries at once are ten as well."""
    bucket = call.vault.mac(canonical(["guess", *what]))
    guesses.refuse(await call.platform.db.write(lambda tx: guesses.take(tx, bucket, call.now)))
    return bucket


def _me(ctx: Context):
    return select(principals).where(principals.c.id == ctx.principal.id)


def _address(call: Call) -> str | None:
    return call.request.client.host[:64] if call.request.client else None


def _open(
    ctx: Context, principal_id: str, lives_s: int, *, address: str | None, key_id: str | None = None
) -> schemas.TokenView:
    token = identity.open_session(ctx.tx, principal_id, lives_s=lives_s, now=ctx.now, address=address, key_id=key_id)
    return schemas.TokenView(access_token=token, expires_in=lives_s, principal_id=principal_id)
