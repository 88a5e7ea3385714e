"""HTTP in, HTTP out: who can enter which machine right now, and taking that back."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import access
from . import access_schemas as schemas

router = APIRouter(prefix="/v1/projects/{project_id}/access-grants", tags=["machine access"])
Revoked = Annotated[bool, Query(description="also those that were revoked and have not expired yet")]


@router.get("", **needs("apps.access.read", "project"))
async def list_access_grants(
    call: Caller, project_id: str, revoked: Revoked = False, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.AccessGrantView]:
    """Certificates that work now: a certificate lives five minutes, and less if its claim ends."""

    def read(ctx: Context) -> Page[schemas.AccessGrantView]:
        query = access.grants_of(project_id, ctx.now, revoked=revoked)
        return page(ctx, query, query.selected_columns.id, limit, cursor, access.view)

    return await call.read(read)


@router.post("/{grant_id}/revoke", response_model=schemas.AccessGrantView, **needs("apps.access.revoke", "project"))
async def revoke_access_grant(call: Caller, project_id: str, grant_id: str, body: schemas.RevokeAccess) -> Response:
    """Its host refuses it and ends what it opened, within seconds: `enforced` says when that is done."""
    return await call.write(lambda ctx: access.revoke(ctx, project_id, grant_id, body.reason))
