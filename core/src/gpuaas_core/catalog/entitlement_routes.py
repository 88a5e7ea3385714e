"""HTTP route to disable an entitlement. Rooms above register functions that list the instances which keep running."""

from collections.abc import Callable

from fastapi import APIRouter, Response
from sqlalchemy import Connection

from ..authz.context import Context
from ..http.call import Caller, needs
from . import reads, service
from .schemas import DisabledEntitlementView

Running = Callable[[Connection, str, str], list[str]]  # names of what runs, by project and app
_RUNNING: list[Running] = []

router = APIRouter(prefix="/v1/projects/{project_id}/entitlements", tags=["catalog"])


def register_running(reader: Running) -> None:
    _RUNNING.append(reader)


@router.post(
    "/{app_slug}/disable",
    response_model=DisabledEntitlementView,
    **needs("catalog.entitlement.disable", "project"),
)
async def disable_entitlement(call: Caller, project_id: str, app_slug: str) -> Response:
    """Disable new deploys of the app in the project. `keeps_running` lists the instances that keep running until they
    are decommissioned."""

    def disable(ctx: Context) -> DisabledEntitlementView:
        row = service.disentitle(ctx, project_id, app_slug)
        view = reads.entitlement_view(ctx.tx, row, ctx.now)
        running = [name for read in _RUNNING for name in read(ctx.tx, project_id, app_slug)]
        return DisabledEntitlementView(**view.model_dump(), keeps_running=running)

    return await call.write(disable)
