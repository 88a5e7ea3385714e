"""HTTP routes of tenants and projects."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import schemas, service, visibility
from .reads import TENANTS, project_row, tenant_row
from .rows import ProjectRow
from .tables import projects, tenants

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
    return await call.read(
        lambda ctx: page(ctx, TENANTS, tenants.c.id, limit, cursor, schemas.TenantView.model_validate)
    )


@router.get("/tenants/{tenant_id}", **needs("tenancy.tenant.read", "tenant"))
async def get_tenant(call: Caller, tenant_id: str) -> schemas.TenantView:
    return await call.read(lambda ctx: schemas.TenantView.model_validate(tenant_row(ctx.tx, tenant_id)))


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
    """List the projects that the caller can see, in all tenants or in one tenant."""

    def read(ctx: Context) -> Page[schemas.ProjectView]:
        query = visibility.projects_seen(ctx.tx, ctx.principal, tenant_id)
        roles_of = visibility.Roles(ctx.principal)
        return page(ctx, query, projects.c.id, limit, cursor, lambda row: visibility.view(roles_of, row))

    return await call.read(read)


@router.get("/projects/{project_id}", **needs("tenancy.project.read", "project"))
async def get_project(call: Caller, project_id: str) -> schemas.ProjectView:
    return await call.read(lambda ctx: _project(ctx, project_row(ctx.tx, project_id)))


def _project(ctx: Context, row: ProjectRow) -> schemas.ProjectView:
    return visibility.view(visibility.Roles(ctx.principal), row)
