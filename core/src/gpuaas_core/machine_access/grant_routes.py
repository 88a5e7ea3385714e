"""HTTP routes to list the current access grants of a project, and to revoke one."""

from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import grants, reads, schemas
from .errors import GrantOver
from .revocation import revoke
from .tables import access_grants

V = TypeVar("V", bound=schemas.AccessGrantView)
Revoked = Annotated[bool, Query(description="also those that were revoked and have not expired yet")]


def grant_router(shown: type[V]) -> APIRouter:
    """Build the routes of access grants. `shown` is the view of a grant, with the fields that the registered purposes
    add."""
    router = APIRouter(prefix="/v1/projects/{project_id}/access-grants", tags=["machine access"])

    @router.get("", response_model=Page[shown], **needs("apps.access.read", "project"))
    async def list_access_grants(
        call: Caller, project_id: str, revoked: Revoked = False, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[V]:
        """List the access grants whose certificate is valid or whose session may be open. A certificate is valid for
        five minutes (one hour for observation), or until the reason for the access ends."""

        def read(ctx: Context) -> Page[V]:
            query = reads.grants_of(project_id, ctx.now, revoked=revoked)
            return page(ctx, query, access_grants.c.id, limit, cursor, lambda row: reads.grant_view(row, shown))

        return await call.read(read)

    @router.post("/{grant_id}/revoke", response_model=shown, **needs("apps.access.revoke", "project"))
    async def revoke_access_grant(call: Caller, project_id: str, grant_id: str, body: schemas.RevokeAccess) -> Response:
        """Revoke an access grant. Within seconds the host rejects the certificate and ends the sessions opened with it;
        then `enforced` is true."""
        return await call.write(
            lambda ctx: reads.grant_view(revoke_grant(ctx, project_id, grant_id, body.reason), shown)
        )

    return router


def revoke_grant(ctx: Context, project_id: str, grant_id: str, reason: str) -> reads.ShownGrantRow:
    row = reads.grant_row(ctx.tx, project_id, grant_id)
    ctx.resource_id = grant_id
    if grants.over(row, ctx.now):
        raise GrantOver(f"The certificate of {grant_id!r} has expired.")
    if row.revoked_at is None:
        revoke(ctx, [row], reason)
    return reads.grant_row(ctx.tx, project_id, grant_id)
