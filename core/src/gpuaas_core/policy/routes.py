"""HTTP routes for policies of the platform, a tenant and a project, and for the effective policy.

FastAPI reads the parameters of a route from its function, so the routes of each level have their own functions. The
private functions at the end contain the common part.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from ..http.call import Call, Caller, Returns, needs
from ..http.etags import Seen, tagged
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page, Slug
from . import reads, schemas, service
from .evaluate import FIELDS
from .tables import policies

router = APIRouter(prefix="/v1", tags=["policy"])
PLATFORM, TENANT, PROJECT = "/policies", "/tenants/{tenant_id}/policies", "/projects/{project_id}/policies"
NAMED = "/{policy_name}"
VIEW: Returns = {"response_model": schemas.PolicyView}
Name = Annotated[Slug, Path(description="the policy's name, unique within its platform, tenant or project")]
AppSlug = Annotated[str | None, Query(max_length=40, description="include the policy of the entitlement to this app")]
Field = Annotated[str, Query(max_length=40, description=f"one of: {', '.join(FIELDS)}")]
Value = Annotated[str, Query(max_length=63)]


@router.put(PLATFORM + NAMED, **VIEW, **needs("policy.platform.set"))
async def set_platform_policy(call: Caller, policy_name: Name, body: schemas.SetPlatformPolicy, seen: Seen) -> Response:
    """Create or replace a policy that restricts what may be deployed on the whole platform. No other policy overrides
    its denies."""
    return await _set(call, policy_name, body, seen)


@router.get(PLATFORM, **needs("policy.platform.read"))
async def list_platform_policies(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.PolicyView]:
    return await _list(call, limit, cursor)


@router.get(PLATFORM + NAMED, **VIEW, **needs("policy.platform.read"))
async def get_platform_policy(call: Caller, policy_name: Name) -> Response:
    return await _get(call, policy_name)


@router.delete(PLATFORM + NAMED, **VIEW, **needs("policy.platform.remove"))
async def remove_platform_policy(call: Caller, policy_name: Name, seen: Seen) -> Response:
    return await _remove(call, policy_name, seen)


@router.put(TENANT + NAMED, **VIEW, **needs("policy.tenant.set", "tenant"))
async def set_tenant_policy(
    call: Caller, tenant_id: str, policy_name: Name, body: schemas.SetPolicy, seen: Seen
) -> Response:
    """Create or replace a policy that restricts what may be deployed in every project of the tenant."""
    return await _set(call, policy_name, body, seen)


@router.get(TENANT, **needs("policy.tenant.read", "tenant"))
async def list_tenant_policies(
    call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.PolicyView]:
    return await _list(call, limit, cursor)


@router.get(TENANT + NAMED, **VIEW, **needs("policy.tenant.read", "tenant"))
async def get_tenant_policy(call: Caller, tenant_id: str, policy_name: Name) -> Response:
    return await _get(call, policy_name)


@router.delete(TENANT + NAMED, **VIEW, **needs("policy.tenant.remove", "tenant"))
async def remove_tenant_policy(call: Caller, tenant_id: str, policy_name: Name, seen: Seen) -> Response:
    return await _remove(call, policy_name, seen)


@router.put(PROJECT + NAMED, **VIEW, **needs("policy.project.set", "project"))
async def set_project_policy(
    call: Caller, project_id: str, policy_name: Name, body: schemas.SetPolicy, seen: Seen
) -> Response:
    """Create or replace a policy that restricts what may be deployed in one project."""
    return await _set(call, policy_name, body, seen)


@router.get(PROJECT, **needs("policy.project.read", "project"))
async def list_project_policies(
    call: Caller, project_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.PolicyView]:
    return await _list(call, limit, cursor)


@router.get(PROJECT + NAMED, **VIEW, **needs("policy.project.read", "project"))
async def get_project_policy(call: Caller, project_id: str, policy_name: Name) -> Response:
    return await _get(call, policy_name)


@router.delete(PROJECT + NAMED, **VIEW, **needs("policy.project.remove", "project"))
async def remove_project_policy(call: Caller, project_id: str, policy_name: Name, seen: Seen) -> Response:
    return await _remove(call, policy_name, seen)


@router.get("/projects/{project_id}/policy/effective", **needs("policy.project.read", "project"))
async def get_effective_policy(call: Caller, project_id: str, app_slug: AppSlug = None) -> schemas.EffectiveView:
    """Get the effective policy of a project: the policies of all levels combined, with the level that decides each
    value."""
    return await call.read(lambda ctx: reads.effective_view(ctx.tx, ctx.scope, app_slug))


@router.get("/projects/{project_id}/policy/explain", **needs("policy.project.read", "project"))
async def explain_policy(
    call: Caller, project_id: str, field: Field, value: Value, app_slug: AppSlug = None
) -> schemas.RulingView:
    """Explain whether a value of a field is allowed in the project, and which policy decided."""
    return await call.read(lambda ctx: reads.explain(ctx.tx, ctx.scope, field, value, app_slug))


async def _set(call: Call, name: str, body: schemas.SetPolicy, seen: Seen) -> Response:
    return tagged(await call.write(lambda ctx: service.set_policy(ctx, name, body, seen), repeats=call.keyed))


async def _remove(call: Call, name: str, seen: Seen) -> Response:
    return tagged(await call.write(lambda ctx: service.remove_policy(ctx, name, seen), repeats=call.keyed))


async def _get(call: Call, name: str) -> Response:
    return tagged(await call.read(lambda ctx: reads.get_policy(ctx.tx, ctx.scope.chain[0], name)))


async def _list(call: Call, limit: int, cursor: str | None) -> Page[schemas.PolicyView]:
    return await call.read(
        lambda ctx: page(ctx, reads.policies_at(ctx.scope.chain[0]), policies.c.id, limit, cursor, reads.policy_view)
    )
