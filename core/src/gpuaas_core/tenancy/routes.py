"""HTTP in, HTTP out: sign-in, tenants, projects, people, bindings, service accounts."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Form, Response
from sqlalchemy import select

from ..access.context import Context
from ..edge.call import Caller, needs, public
from ..edge.lists import Cursor, Limit, page
from ..kit.paging import slice_of
from ..kit.wire import Page
from . import identity, schemas, service
from .errors import AssertionRefused, SignInRefused
from .reads import project_row
from .tables import principals, role_bindings, tenants

router = APIRouter(prefix="/v1", tags=["identity and tenancy"])
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@router.post("/sign-in", response_model=schemas.TokenView, **public())
async def sign_in(call: Caller, body: schemas.SignIn) -> Response:
    """A person signs in with e-mail and password."""
    row = await call.read(
        lambda ctx: ctx.tx.execute(select(principals).where(principals.c.email == body.email)).first()
    )
    good = await asyncio.to_thread(identity.password_matches, row.password_hash if row else None, body.password)
    if not good or row is None or row.disabled_at is not None:
        raise SignInRefused("E-mail or password is wrong, or the account is disabled.")
    return await _new_token(call, row.id, identity.USER_TOKEN_S)


@router.post("/token", response_model=schemas.TokenView, **public())
async def get_token(
    call: Caller,
    grant_type: Annotated[str, Form()],
    client_assertion_type: Annotated[str, Form()],
    client_assertion: Annotated[str, Form(max_length=4000)],
) -> Response:
    """A service account or node signs in with a client assertion (private_key_jwt)."""
    if grant_type != "client_credentials" or client_assertion_type != _ASSERTION:
        raise AssertionRefused("Only client_credentials with a JWT bearer assertion is supported.")

    def redeem(ctx: Context) -> schemas.TokenView:
        row = identity.check_assertion(ctx.tx, client_assertion, ctx.now)
        return _open(ctx, row.id, identity.MACHINE_TOKEN_S)

    return await call.write(redeem, repeats=False, audited=False)


@router.post("/sign-out", status_code=204, **needs("identity.self.use"))
async def sign_out(call: Caller) -> Response:
    """Ends the session: the token is dead at once."""
    token = call.token
    return await call.write(lambda ctx: identity.close_session(ctx.tx, token, ctx.now), repeats=False)


@router.get("/whoami", **needs("identity.self.use"))
async def whoami(call: Caller) -> schemas.WhoamiView:
    return await call.read(lambda ctx: service.whoami(ctx.tx, ctx.principal))


@router.post("/tenants", status_code=201, response_model=schemas.TenantView, **needs("platform.tenant.create"))
async def create_tenant(call: Caller, body: schemas.CreateTenant) -> Response:
    return await call.write(
        lambda ctx: schemas.TenantView.model_validate(service.create_tenant(ctx, body)),
        status=201,
        location=lambda view: f"/v1/tenants/{view.id}",
    )


@router.get("/tenants", **needs("platform.tenant.read"))
async def list_tenants(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.TenantView]:
    return await call.read(lambda ctx: page(ctx, select(tenants), tenants.c.id, limit, cursor, _tenant))


@router.get("/tenants/{tenant_id}", **needs("tenancy.tenant.read", "tenant"))
async def get_tenant(call: Caller, tenant_id: str) -> schemas.TenantView:
    return await call.read(lambda ctx: _tenant(ctx.tx.execute(select(tenants).where(tenants.c.id == tenant_id)).one()))


@router.post(
    "/tenants/{tenant_id}/projects",
    status_code=201,
    response_model=schemas.ProjectView,
    **needs("tenancy.project.create", "tenant"),
)
async def create_project(call: Caller, tenant_id: str, body: schemas.CreateProject) -> Response:
    return await call.write(
        lambda ctx: _project(service.create_project(ctx, tenant_id, body)),
        status=201,
        location=lambda view: f"/v1/projects/{view.id}",
    )


@router.get("/projects", **needs("identity.self.use"))
async def list_projects(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.ProjectView]:
    """Every project the caller can see."""
    seen = await call.read(lambda ctx: service.visible_projects(ctx.tx, ctx.principal))
    rows, following = slice_of(seen, limit=limit, cursor=cursor)
    return Page(items=[_project(row) for row in rows], next_cursor=following)


@router.get("/projects/{project_id}", **needs("tenancy.project.read", "project"))
async def get_project(call: Caller, project_id: str) -> schemas.ProjectView:
    return await call.read(lambda ctx: _project(project_row(ctx.tx, project_id)))


@router.post(
    "/tenants/{tenant_id}/users",
    status_code=201,
    response_model=schemas.PrincipalView,
    **needs("tenancy.user.create", "tenant"),
)
async def create_user(call: Caller, tenant_id: str, body: schemas.CreateUser) -> Response:
    hashed = await asyncio.to_thread(identity.hash_password, body.password)
    return await call.write(
        lambda ctx: service.principal_view(service.create_user(ctx, tenant_id, body, hashed)), status=201
    )


@router.get("/tenants/{tenant_id}/users", **needs("tenancy.user.read", "tenant"))
async def list_users(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.PrincipalView]:
    query = select(principals).where(principals.c.tenant_id == tenant_id, principals.c.kind == "user")
    return await call.read(lambda ctx: page(ctx, query, principals.c.id, limit, cursor, service.principal_view))


@router.post(
    "/tenants/{tenant_id}/role-bindings",
    status_code=201,
    response_model=schemas.BindingView,
    **needs("iam.binding.create", "tenant"),
)
async def create_binding(call: Caller, tenant_id: str, body: schemas.CreateBinding) -> Response:
    """Nobody grants what they do not hold."""
    return await call.write(lambda ctx: _binding(service.create_binding(ctx, tenant_id, body)), status=201)


@router.get("/tenants/{tenant_id}/role-bindings", **needs("iam.binding.read", "tenant"))
async def list_bindings(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.BindingView]:
    query = select(role_bindings).where(role_bindings.c.tenant_id == tenant_id)
    return await call.read(lambda ctx: page(ctx, query, role_bindings.c.id, limit, cursor, _binding))


@router.post(
    "/projects/{project_id}/service-accounts",
    status_code=201,
    response_model=schemas.PrincipalView,
    **needs("iam.service_account.create", "project"),
)
async def create_service_account(call: Caller, project_id: str, body: schemas.CreateServiceAccount) -> Response:
    """Only the public key is sent; the private key never leaves its owner."""
    return await call.write(
        lambda ctx: service.principal_view(service.create_service_account(ctx, project_id, body)), status=201
    )


@router.get("/projects/{project_id}/service-accounts", **needs("iam.service_account.read", "project"))
async def list_service_accounts(
    call: Caller, project_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.PrincipalView]:
    query = select(principals).where(principals.c.project_id == project_id, principals.c.kind == "service_account")
    return await call.read(lambda ctx: page(ctx, query, principals.c.id, limit, cursor, service.principal_view))


@router.post(
    "/projects/{project_id}/service-accounts/{account_id}/disable",
    response_model=schemas.PrincipalView,
    **needs("iam.service_account.disable", "project"),
)
async def disable_service_account(call: Caller, project_id: str, account_id: str) -> Response:
    """Effective on the account's next request."""
    return await call.write(
        lambda ctx: service.principal_view(service.disable_service_account(ctx, project_id, account_id))
    )


async def _new_token(call: Caller, principal_id: str, lives_s: int) -> Response:
    return await call.write(lambda ctx: _open(ctx, principal_id, lives_s), repeats=False, audited=False)


def _open(ctx: Context, principal_id: str, lives_s: int) -> schemas.TokenView:
    token = identity.open_session(ctx.tx, principal_id, lives_s=lives_s, now=ctx.now)
    return schemas.TokenView(access_token=token, expires_in=lives_s, principal_id=principal_id)


def _tenant(row: Any) -> schemas.TenantView:
    return schemas.TenantView.model_validate(row)


def _project(row: Any) -> schemas.ProjectView:
    return schemas.ProjectView.model_validate(row)


def _binding(row: Any) -> schemas.BindingView:
    return schemas.BindingView.model_validate(row)
