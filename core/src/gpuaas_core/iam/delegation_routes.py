"""HTTP routes of the delegations that grant permissions in a project."""

from fastapi import APIRouter, Response

from ..http.call import Caller, Returns, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import delegations, schemas

router = APIRouter(prefix="/v1/projects/{project_id}/delegations", tags=["access"])
_ONE: Returns = {"response_model": schemas.DelegationView}


@router.post("", status_code=201, **_ONE, **needs("iam.delegation.create", "project"))
async def create_delegation(call: Caller, project_id: str, body: schemas.CreateDelegation) -> Response:
    """Delegate permissions that the caller has in the project to a service account of the tenant.

    The caller keeps the permissions.
    """
    return await call.write(
        lambda ctx: delegations.view(ctx, delegations.create_delegation(ctx, project_id, body)), status=201
    )


@router.get("", **needs("iam.delegation.read", "project"))
async def list_delegations(
    call: Caller, project_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.DelegationView]:
    """List all delegations in this project, including expired and revoked ones, with the permissions that each grants
    now."""
    query = delegations.delegations_into(project_id)
    return await call.read(
        lambda ctx: page(ctx, query, delegations.DELEGATION_ID, limit, cursor, lambda row: delegations.view(ctx, row))
    )


@router.post("/{delegation_id}/revoke", **_ONE, **needs("iam.delegation.revoke", "project"))
async def revoke_delegation(call: Caller, project_id: str, delegation_id: str) -> Response:
    """Revoke a delegation, effective on the next request of the service account that received it."""
    return await call.write(
        lambda ctx: delegations.view(ctx, delegations.revoke_delegation(ctx, project_id, delegation_id))
    )
