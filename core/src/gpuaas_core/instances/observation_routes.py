"""HTTP in, HTTP out: looking at a running instance between operations. Same key as working on its operations."""

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from . import observations, schemas
from .observation_schemas import Observation, ObservedView

router = APIRouter(prefix="/v1/projects/{project_id}/instances/{instance_id}/observation", tags=["controllers"])


@router.post(
    "",
    response_model=ObservedView,
    responses={204: {"description": "nothing new: nothing was written"}},
    **needs("apps.operation.work", "project"),
)
async def observe_instance(call: Caller, project_id: str, instance_id: str, body: Observation) -> Response:
    """What the app's controller sees of a running instance; refused while an operation changes the whole instance."""
    if not await call.read(lambda ctx: observations.anything_new(ctx, project_id, instance_id, body)):
        return Response(status_code=204)
    return await call.write(lambda ctx: observations.observe(ctx, project_id, instance_id, body), repeats=False)


@router.post(
    "/access-grants",
    status_code=201,
    response_model=schemas.GrantView,
    **needs("apps.access.grant", "project"),
)
async def grant_observation_access(
    call: Caller, project_id: str, instance_id: str, body: schemas.AskKeyAccess
) -> Response:
    """A five-minute SSH certificate to look at one machine of a running instance; it ends when an operation begins."""

    def grant(ctx: Context) -> schemas.GrantView:
        return observations.grant_access(ctx, call.vault, project_id, instance_id, body)

    return await call.write(grant, status=201)
