"""Creates tenants and projects. Called by the routes of this room."""

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.db import insert_new
from ..kit.ids import new_id
from . import schemas
from .errors import SlugTaken
from .reads import project_row, project_scope, tenant_row, tenant_scope
from .rows import ProjectRow, TenantRow
from .tables import projects, tenants

declare({"tenancy.tenant.created": "A tenant was created.", "tenancy.project.created": "A project was created."})


def create_tenant(ctx: Context, body: schemas.CreateTenant) -> TenantRow:
    tenant_id = ctx.resource_id = new_id("ten")
    if not insert_new(ctx.tx, tenants, id=tenant_id, **vars(body), created_at=ctx.now):
        raise SlugTaken(f"A tenant {body.slug!r} exists.")
    scope = tenant_scope(ctx.tx, tenant_id)
    ctx.emit("tenancy.tenant.created", tenant_id, {"slug": body.slug}, scope=scope)
    return tenant_row(ctx.tx, tenant_id)


def create_project(ctx: Context, tenant_id: str, body: schemas.CreateProject) -> ProjectRow:
    project_id = ctx.resource_id = new_id("prj")
    if not insert_new(ctx.tx, projects, id=project_id, tenant_id=tenant_id, **vars(body), created_at=ctx.now):
        raise SlugTaken(f"The tenant has a project {body.slug!r}.")
    ctx.emit("tenancy.project.created", project_id, {"slug": body.slug}, scope=project_scope(ctx.tx, project_id))
    return project_row(ctx.tx, project_id)
