"""HTTP in, HTTP out: tenants, projects, people and their invitations."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from sqlalchemy import Row, select

from ..access.context import Context
from ..edge.call import Caller, needs, public
from ..edge.lists import Cursor, Limit, page
from ..identity import authentication, invitations, users
from ..kit.wire import Page
from . import schemas, service, visibility
from .reads import project_row
from .tables import principals, projects, tenants

router = APIRouter(prefix="/v1", tags=["identity and tenancy"])
Tenant = Annotated[str | None, Query(max_length=40, description="only projects of this tenant")]


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
        lambda ctx: _project(ctx, service.create_project(ctx, tenant_id, body)),
        status=201,
        location=lambda view: f"/v1/projects/{view.id}",
    )


@router.get("/projects", **needs("identity.self.use"))
async def list_projects(
    call: Caller, limit: Limit = 50, cursor: Cursor = None, tenant_id: Tenant = None
) -> Page[schemas.ProjectView]:
    """Every project the caller can see, or those of one tenant."""

    def look(ctx: Context) -> Page[schemas.ProjectView]:
        query = visibility.projects_seen(ctx.tx, ctx.principal, tenant_id)
        roles_of = visibility.Roles(ctx.principal)
        return page(ctx, query, projects.c.id, limit, cursor, lambda row: visibility.view(roles_of, row))

    return await call.read(look)


@router.get("/projects/{project_id}", **needs("tenancy.project.read", "project"))
async def get_project(call: Caller, project_id: str) -> schemas.ProjectView:
    return await call.read(lambda ctx: _project(ctx, project_row(ctx.tx, project_id)))


@router.post(
    "/tenants/{tenant_id}/users",
    status_code=201,
    response_model=schemas.PrincipalView,
    **needs("tenancy.user.create", "tenant"),
)
async def create_user(call: Caller, tenant_id: str, body: schemas.CreateUser) -> Response:
    hashed = await asyncio.to_thread(authentication.hash_password, body.password)
    return await call.write(
        lambda ctx: service.principal_view(service.create_user(ctx, tenant_id, body, hashed)), status=201
    )


@router.post(
    "/tenants/{tenant_id}/users/{user_id}/disable",
    response_model=schemas.PrincipalView,
    **needs("tenancy.user.disable", "tenant"),
)
async def disable_user(call: Caller, tenant_id: str, user_id: str) -> Response:
    """Effective on the user's next request; all sessions end."""
    return await call.write(
        lambda ctx: service.principal_view(users.set_enabled(ctx, tenant_id, user_id, enabled=False))
    )


@router.post(
    "/tenants/{tenant_id}/users/{user_id}/enable",
    response_model=schemas.PrincipalView,
    **needs("tenancy.user.disable", "tenant"),
)
async def enable_user(call: Caller, tenant_id: str, user_id: str) -> Response:
    return await call.write(
        lambda ctx: service.principal_view(users.set_enabled(ctx, tenant_id, user_id, enabled=True))
    )


@router.post(
    "/tenants/{tenant_id}/invitations",
    status_code=201,
    response_model=schemas.InvitedView,
    **needs("tenancy.user.create", "tenant"),
)
async def create_invitation(call: Caller, tenant_id: str, body: schemas.CreateInvitation) -> Response:
    """Invites a person, with a role if one is named. The token is computed for this answer and stored nowhere."""

    def with_token(answer: dict[str, Any]) -> dict[str, Any]:
        return answer | {"token": invitations.invitation_token(call.vault, answer["id"])}

    return await call.write(
        lambda ctx: invitations.view(invitations.create_invitation(ctx, tenant_id, body), ctx.now),
        status=201,
        finish=with_token,
    )


@router.get("/tenants/{tenant_id}/invitations", **needs("tenancy.user.read", "tenant"))
async def list_invitations(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.InvitationView]:
    query = invitations.invitations_of(tenant_id)
    return await call.read(
        lambda ctx: page(
            ctx, query, query.selected_columns.id, limit, cursor, lambda row: invitations.view(row, ctx.now)
        )
    )


@router.post(
    "/tenants/{tenant_id}/invitations/{invitation_id}/revoke",
    response_model=schemas.InvitationView,
    **needs("tenancy.user.create", "tenant"),
)
async def revoke_invitation(call: Caller, tenant_id: str, invitation_id: str) -> Response:
    return await call.write(
        lambda ctx: invitations.view(invitations.revoke_invitation(ctx, tenant_id, invitation_id), ctx.now)
    )


@router.post("/invitations/accept", status_code=201, response_model=schemas.PrincipalView, **public())
async def accept_invitation(call: Caller, body: schemas.AcceptInvitation) -> Response:
    """The invited person chooses a password and has an account; the token works once."""
    await call.read(lambda ctx: invitations.check_token(ctx.tx, call.vault, body.token, ctx.now))
    hashed = await asyncio.to_thread(authentication.hash_password, body.password)
    return await call.write(
        lambda ctx: service.principal_view(invitations.accept(ctx, call.vault, body, hashed)), status=201, repeats=False
    )


@router.get("/tenants/{tenant_id}/users", **needs("tenancy.user.read", "tenant"))
async def list_users(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.PrincipalView]:
    query = select(principals).where(principals.c.tenant_id == tenant_id, principals.c.kind == "user")
    return await call.read(lambda ctx: page(ctx, query, principals.c.id, limit, cursor, service.principal_view))


def _tenant(row: Any) -> schemas.TenantView:
    return schemas.TenantView.model_validate(row)


def _project(ctx: Context, row: Row[Any]) -> schemas.ProjectView:
    return visibility.view(visibility.Roles(ctx.principal), row)
