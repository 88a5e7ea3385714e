"""HTTP in, HTTP out: who may do what. Role bindings, roles, deny rules, members, explanations."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from sqlalchemy import select

from ..edge.call import Caller, needs
from ..edge.lists import Cursor, Limit, page
from ..identity.routes import Permission
from ..kit.wire import Page
from ..tenancy import schemas, service
from ..tenancy.tables import role_bindings
from . import deny_rules, explain, roles

router = APIRouter(prefix="/v1", tags=["access"])
Who = Annotated[str, Query(max_length=40, description="id of a user, service account or node of the tenant")]


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
    "/tenants/{tenant_id}/role-bindings/{binding_id}/remove",
    response_model=schemas.BindingView,
    **needs("iam.binding.remove", "tenant"),
)
async def remove_binding(call: Caller, tenant_id: str, binding_id: str) -> Response:
    """The role is lost on the next request of whoever held it."""
    return await call.write(lambda ctx: _binding(service.remove_binding(ctx, tenant_id, binding_id)))


@router.get("/projects/{project_id}/members", **needs("iam.member.read", "project"))
async def list_project_members(call: Caller, project_id: str) -> Page[schemas.ProjectMemberView]:
    """Who holds which role here, and whether it comes from the project or from its tenant."""
    return Page(items=await call.read(lambda ctx: explain.members_of(ctx.tx, ctx.scope)))


@router.get("/projects/{project_id}/explain", **needs("iam.decision.explain", "project"))
async def explain_in_project(
    call: Caller, project_id: str, permission: Permission, principal_id: Who
) -> schemas.ExplainView:
    """Why somebody may or may not do something in this project. For oneself: GET /v1/whoami/explain."""
    return await call.read(lambda ctx: explain.explain_other(ctx.tx, principal_id, permission, ctx.scope, ctx.now))


@router.get("/tenants/{tenant_id}/explain", **needs("iam.decision.explain", "tenant"))
async def explain_in_tenant(
    call: Caller, tenant_id: str, permission: Permission, principal_id: Who
) -> schemas.ExplainView:
    return await call.read(lambda ctx: explain.explain_other(ctx.tx, principal_id, permission, ctx.scope, ctx.now))


@router.post(
    "/tenants/{tenant_id}/roles",
    status_code=201,
    response_model=schemas.RoleView,
    **needs("iam.role.create", "tenant"),
)
async def create_role(call: Caller, tenant_id: str, body: schemas.CreateRole) -> Response:
    """A role of the tenant's own, of permissions the caller holds."""
    return await call.write(lambda ctx: roles.role_view(roles.create_role(ctx, tenant_id, body)), status=201)


@router.get("/tenants/{tenant_id}/roles", **needs("iam.role.read", "tenant"))
async def list_roles(call: Caller, tenant_id: str) -> Page[schemas.RoleView]:
    """What can be bound in this tenant: the system's roles and its own."""
    return Page(items=await call.read(lambda ctx: roles.list_roles(ctx.tx, tenant_id)))


@router.post(
    "/tenants/{tenant_id}/roles/{role}/delete",
    response_model=schemas.RoleView,
    **needs("iam.role.delete", "tenant"),
)
async def delete_role(call: Caller, tenant_id: str, role: str) -> Response:
    """Refused while somebody holds it."""
    return await call.write(lambda ctx: roles.role_view(roles.delete_role(ctx, tenant_id, role)))


@router.post("/deny-rules", status_code=201, response_model=schemas.DenyView, **needs("platform.deny.create"))
async def create_platform_deny(call: Caller, body: schemas.CreateDeny) -> Response:
    """Takes permissions from everybody on the platform, whatever roles they hold."""
    return await call.write(lambda ctx: deny_rules.deny_view(deny_rules.create_deny(ctx, body)), status=201)


@router.get("/deny-rules", **needs("platform.deny.read"))
async def list_platform_denies(call: Caller) -> Page[schemas.DenyView]:
    return Page(items=await call.read(deny_rules.list_denies))


@router.post("/deny-rules/{rule_id}/remove", response_model=schemas.DenyView, **needs("platform.deny.remove"))
async def remove_platform_deny(call: Caller, rule_id: str) -> Response:
    return await call.write(lambda ctx: deny_rules.deny_view(deny_rules.remove_deny(ctx, rule_id)))


@router.post(
    "/tenants/{tenant_id}/deny-rules",
    status_code=201,
    response_model=schemas.DenyView,
    **needs("iam.deny.create", "tenant"),
)
async def create_deny(call: Caller, tenant_id: str, body: schemas.CreateTenantDeny) -> Response:
    """Takes permissions from everybody in the tenant, or in one of its projects."""
    return await call.write(
        lambda ctx: deny_rules.deny_view(deny_rules.create_deny(ctx, body, body.project_id)), status=201
    )


@router.get("/tenants/{tenant_id}/deny-rules", **needs("iam.deny.read", "tenant"))
async def list_denies(call: Caller, tenant_id: str) -> Page[schemas.DenyView]:
    """The tenant's own rules and its projects'; where one of the platform's decides, `explain` shows it."""
    return Page(items=await call.read(deny_rules.list_denies))


@router.post(
    "/tenants/{tenant_id}/deny-rules/{rule_id}/remove",
    response_model=schemas.DenyView,
    **needs("iam.deny.remove", "tenant"),
)
async def remove_deny(call: Caller, tenant_id: str, rule_id: str) -> Response:
    return await call.write(lambda ctx: deny_rules.deny_view(deny_rules.remove_deny(ctx, rule_id)))


def _binding(row: Any) -> schemas.BindingView:
    return schemas.BindingView.model_validate(row)
