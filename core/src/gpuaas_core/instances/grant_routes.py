"""HTTP in, HTTP out: access of a controller to the machines of the operation it holds."""

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from . import claimed, schemas

router = APIRouter(prefix="/v1/projects/{project_id}/operations", tags=["controllers"])


@router.post(
    "/{operation_id}/access-grants",
    status_code=201,
    response_model=schemas.GrantView,
    **needs("apps.access.grant", "project"),
)
async def grant_access(call: Caller, project_id: str, operation_id: str, body: schemas.AskAccess) -> Response:
    """A five-minute SSH certificate for one allocation of the claimed operation."""

    def grant(ctx: Context) -> schemas.GrantView:
        return claimed.grant_access(ctx, call.vault, project_id, operation_id, body)

    return await call.write(grant, status=201)
