"""HTTP routes of a tenant's identity providers, and of sign-in through one of them."""

from html import escape
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from ..authz.context import Context
from ..http import console
from ..http.call import Call, Caller, Returns, needs, public
from ..http.lists import Cursor, Limit, page
from ..identity import sessions
from ..identity.routes import address_of, open_console
from ..identity.schemas import ConsoleSessionView, TokenView
from ..kit.json_types import Json
from ..kit.problems import Problem
from ..kit.wire import Page
from . import providers, schemas, sign_in
from .errors import OidcRefused
from .issuers import Issuers
from .rows import AttemptRow, ProviderRow

router = APIRouter(prefix="/v1", tags=["identity and tenancy"])
_AT = "/tenants/{tenant_id}/identity-providers"
_ONE: Returns = {"response_model": schemas.ProviderView}
Challenge = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{43}$", description="of a CLI: S256 of its verifier")]
Port = Annotated[int | None, Query(ge=1024, le=65535, description="of a CLI: where it listens on its own machine")]
Parameter = Annotated[str | None, Query(max_length=4000)]


@router.post(_AT, status_code=201, **_ONE, **needs("tenancy.identity_provider.create", "tenant"))
async def create_provider(call: Caller, tenant_id: str, body: schemas.CreateProvider) -> Response:
    """Create an identity provider for the tenant. Register the `callback_url` of the response at the provider. The
    client secret is stored encrypted and never shown."""
    call.platform.services.get(Issuers).check_address(body.issuer)
    return await call.write(
        lambda ctx: _view(call, providers.create_provider(ctx, call.vault, tenant_id, body)), status=201
    )


@router.get(_AT, **needs("tenancy.identity_provider.read", "tenant"))
async def list_providers(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.ProviderView]:
    query = providers.providers_of(tenant_id)
    return await call.read(
        lambda ctx: page(ctx, query, providers.PROVIDER_ID, limit, cursor, lambda row: _view(call, row))
    )


@router.get(_AT + "/{provider_id}", **needs("tenancy.identity_provider.read", "tenant"))
async def get_provider(call: Caller, tenant_id: str, provider_id: str) -> schemas.ProviderView:
    return await call.read(lambda ctx: _view(call, providers.provider(ctx.tx, provider_id, tenant_id)))


@router.post(_AT + "/{provider_id}/update", **_ONE, **needs("tenancy.identity_provider.update", "tenant"))
async def update_provider(call: Caller, tenant_id: str, provider_id: str, body: schemas.UpdateProvider) -> Response:
    """Update an identity provider. Omitted fields keep their value."""
    return await call.write(
        lambda ctx: _view(call, providers.update_provider(ctx, call.vault, tenant_id, provider_id, body))
    )


@router.post(_AT + "/{provider_id}/delete", **_ONE, **needs("tenancy.identity_provider.delete", "tenant"))
async def delete_provider(call: Caller, tenant_id: str, provider_id: str) -> Response:
    """Delete an identity provider. Users can no longer sign in through the provider; open sessions stay open."""
    return await call.write(lambda ctx: _view(call, providers.delete_provider(ctx, tenant_id, provider_id)))


@router.get("/auth/oidc/{provider_id}/start", status_code=303, response_class=RedirectResponse, **public())
async def start_oidc(call: Caller, provider_id: str, challenge: Challenge = None, port: Port = None) -> Response:
    """Start a sign-in: redirect the browser to the identity provider. A CLI sends a challenge and the port on which it
    listens."""
    row = await call.read(lambda ctx: providers.provider(ctx.tx, provider_id))
    try:
        metadata = await call.platform.services.get(Issuers).metadata(row.issuer)
    except Problem as problem:
        if console.navigates(call.request) and not challenge:
            return console.refused(call.request, problem)
        raise
    cookie = call.request.cookies.get(console.cookie_name(call.request, "oidc"))
    binder = cookie if cookie and len(cookie) < 100 else sign_in.new_binder()
    state = await call.platform.db.write(
        lambda tx: sign_in.begin(tx, row.id, binder, call.now, challenge=challenge, port=port)
    )
    parameters = {
        "response_type": "code",
        "client_id": row.client_id,
        "redirect_uri": providers.callback_url(call.platform.public_url),
        "scope": " ".join(row.scopes),
        "state": state,
        "nonce": sign_in.nonce_of(call.vault, state),
        "code_challenge": sign_in.challenge_of(sign_in.verifier_of(call.vault, state)),
        "code_challenge_method": "S256",
    }
    where = str(metadata["authorization_endpoint"])
    response = RedirectResponse(f"{where}{'&' if '?' in where else '?'}{urlencode(parameters)}", 303)
    console.set_cookie(response, call.request, "oidc", binder, sign_in.ATTEMPT_MS // 1000)
    return response


@router.get("/auth/providers", **public())
async def list_sign_in_ways(
    call: Caller, tenant: Annotated[str, Query(max_length=40, description="the tenant's short name")]
) -> schemas.SignInWaysView:
    """List the identity providers of a tenant, for a sign-in page. For an unknown tenant the list is empty."""
    rows = await call.read(lambda ctx: providers.providers_of_tenant_named(ctx.tx, tenant))
    url = call.platform.public_url
    return schemas.SignInWaysView(items=[providers.sign_in_way(row, url) for row in rows])


@router.get("/auth/oidc/callback", status_code=303, response_class=RedirectResponse, **public())
async def finish_oidc(
    call: Caller, state: Parameter = None, code: Parameter = None, iss: Parameter = None, error: Parameter = None
) -> Response:
    """Finish a sign-in when the identity provider redirects the browser here: open a console session, or issue a code
    for the CLI.

    A rejected sign-in from the console redirects to the sign-in page, which shows the reason.
    """
    binder = call.request.cookies.get(console.cookie_name(call.request, "oidc"), "")
    attempt = None
    try:
        attempt, row = await call.platform.db.write(lambda tx: sign_in.use_attempt(tx, state or "", binder, call.now))
        return await _finish(call, attempt, row, state, code, iss, error)
    except Problem as problem:
        if console.navigates(call.request) and not (attempt and attempt.cli_challenge):
            return console.refused(call.request, problem)
        raise


async def _finish(
    call: Call,
    attempt: AttemptRow,
    row: ProviderRow,
    state: str | None,
    code: str | None,
    iss: str | None,
    error: str | None,
) -> Response:
    if error is not None or not code:
        raise OidcRefused(f"The provider rejected the sign-in: {(error or 'it sent no code')[:100]!r}.")
    if iss is not None and iss != row.issuer:
        raise OidcRefused("The response came from another provider than the one the sign-in started at.")
    claims = await _claims(call, row, str(state), code)
    issued: dict[str, str] = {}

    def enter(ctx: Context) -> ConsoleSessionView:
        user = sign_in.find_user(ctx, row, claims)
        if attempt.cli_challenge:
            issued["code"] = sign_in.issue_code(ctx.tx, attempt, user.id, ctx.now)
        else:
            issued["token"] = open_console(ctx, user.id, address_of(call))
        return ConsoleSessionView(principal_id=user.id, csrf_token=None)

    await call.write(enter, repeats=False)
    return _response(call, attempt.cli_port, issued)


@router.post("/auth/oidc/token", response_model=TokenView, **public())
async def redeem_oidc_code(call: Caller, body: schemas.RedeemCode) -> Response:
    """Exchange the code from the browser and the verifier of the CLI for an access token."""

    def redeem(ctx: Context) -> TokenView:
        user_id = sign_in.redeem_code(ctx.tx, body.code, body.verifier, ctx.now)
        lives_s = sessions.USER_TOKEN_S
        token = sessions.open_session(ctx.tx, user_id, lives_s=lives_s, now=ctx.now, address=address_of(call))
        return TokenView(access_token=token, expires_in=lives_s, principal_id=user_id)

    return await call.write(redeem, repeats=False, audited=False)


async def _claims(call: Call, row: ProviderRow, state: str, code: str) -> Json:
    issuers = call.platform.services.get(Issuers)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": providers.callback_url(call.platform.public_url),
        "client_id": row.client_id,
        "code_verifier": sign_in.verifier_of(call.vault, state),
    }
    secret = await call.read(lambda ctx: providers.secret_of(ctx.tx, call.vault, row))
    token = await issuers.redeem(row.issuer, form, secret)
    return await issuers.claims(row.issuer, row.client_id, token, sign_in.nonce_of(call.vault, state))


def _response(call: Call, cli_port: int | None, issued: dict[str, str]) -> Response:
    if token := issued.get("token"):
        response: Response = RedirectResponse("/", 303)
        console.give(response, call.request, call.vault, token, sessions.USER_TOKEN_S)
    elif cli_port:
        response = RedirectResponse(f"http://127.0.0.1:{cli_port}/?{urlencode({'code': issued['code']})}", 303)
    else:
        text = "Paste this code into your terminal. Do not share it:"
        response = HTMLResponse(
            f"<!doctype html><title>GPUaaS</title><p>{text}<p><code>{escape(issued['code'])}</code>"
        )
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _view(call: Call, row: ProviderRow) -> schemas.ProviderView:
    return providers.view(row, call.platform.public_url)
