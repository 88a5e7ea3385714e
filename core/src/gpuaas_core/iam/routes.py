"""HTTP routes of role bindings, roles, deny rules, project members and explanations."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import bindings, deny_rules, explain, roles, schemas

router = APIRouter(prefix="/v1", tags=["access"])
Who = Annotated[str, Query(max_length=40, description="id of a user, service account or node of the tenant")]
Permission = Annotated[str, Query(max_length=80, description="a key of contracts/permissions.json")]


@router.post(
    "/tenants/{tenant_id}/role-bindings",
    status_code=201,
    response_model=schemas.BindingView,
    **needs("iam.binding.create", "tenant"),
)
async def create_binding(call: Caller, tenant_id: str, body: schemas.CreateBinding) -> Response:
    """Bind a role to a principal. The caller must have every permission of the role."""
    return await call.write(
        lambda ctx: schemas.BindingView.model_validate(bindings.create_binding(ctx, tenant_id, body)), status=201
    )


@router.get("/tenants/{tenant_id}/role-bindings", **needs("iam.binding.read", "tenant"))
async def list_bindings(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.BindingView]:
    query = bindings.bindings_in(tenant_id)
    return await call.read(
        lambda ctx: page(ctx, query, bindings.BINDING_ID, limit, cursor, schemas.BindingView.model_validate)
    )


@router.post(
    "/tenants/{tenant_id}/role-bindings/{binding_id}/remove",
    response_model=schemas.BindingView,
    **needs("iam.binding.remove", "tenant"),
)
async def remove_binding(call: Caller, tenant_id: str, binding_id: str) -> Response:
    """Remove a role binding: the principal loses the role on its next request."""
    return await call.write(
        lambda ctx: schemas.BindingView.model_validate(bindings.remove_binding(ctx, tenant_id, binding_id))
    )


@router.get("/projects/{project_id}/members", **needs("iam.member.read", "project"))
async def list_project_members(call: Caller, project_id: str) -> Page[schemas.ProjectMemberView]:
    """List the principals with a role in this project, one entry per role binding at the project or at its tenant."""
    return Page(items=await call.read(lambda ctx: bindings.members_of(ctx.tx, ctx.scope)))


@router.get("/projects/{project_id}/explain", **needs("iam.decision.explain", "project"))
async def explain_in_project(
    call: Caller, project_id: str, permission: Permission, principal_id: Who
) -> schemas.ExplainView:
    """Explain why a principal has a permission in this project or not. To explain a permission of the caller, use GET
    /v1/whoami/explain."""
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
    """Create a custom role from permissions that the caller has."""
    return await call.write(lambda ctx: roles.role_view(roles.create_role(ctx, tenant_id, body)), status=201)


@router.get("/tenants/{tenant_id}/roles", **needs("iam.role.read", "tenant"))
async def list_roles(call: Caller, tenant_id: str) -> Page[schemas.RoleView]:
    """List the roles that can be bound in this tenant: the system roles and the tenant's custom roles."""
    return Page(items=await call.read(lambda ctx: roles.list_roles(ctx.tx, tenant_id)))


@router.post(
    "/tenants/{tenant_id}/roles/{role}/delete",
    response_model=schemas.RoleView,
    **needs("iam.role.delete", "tenant"),
)
async def delete_role(call: Caller, tenant_id: str, role: str) -> Response:
    """Delete a custom role. The request is rejected while the role is bound to a principal."""
    return await call.write(lambda ctx: roles.role_view(roles.delete_role(ctx, tenant_id, role)))


@router.post("/deny-rules", status_code=201, response_model=schemas.DenyView, **needs("platform.deny.create"))
async def create_platform_deny(call: Caller, body: schemas.CreateDeny) -> Response:
    """Deny permissions to every principal on the platform, whatever its roles."""
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
    """Deny permissions to every principal in the tenant, or in one of its projects."""
    return await call.write(
        lambda ctx: deny_rules.deny_view(deny_rules.create_deny(ctx, body, body.project_id)), status=201
    )


@router.get("/tenants/{tenant_id}/deny-rules", **needs("iam.deny.read", "tenant"))
async def list_denies(call: Caller, tenant_id: str) -> Page[schemas.DenyView]:
    """List the deny rules of the tenant and its projects. Deny rules of the platform are not listed; `explain` names
    the rule that denied a permission."""
    return Page(items=await call.read(deny_rules.list_denies))


@router.post(
    "/tenants/{tenant_id}/deny-rules/{rule_id}/remove",
    response_model=schemas.DenyView,
    **needs("iam.deny.remove", "tenant"),
)
async def remove_deny(call: Caller, tenant_id: str, rule_id: str) -> Response:
    return await call.write(lambda ctx: deny_rules.deny_view(deny_rules.remove_deny(ctx, rule_id)))
