"""HTTP in, HTTP out: taking an entitlement away. It lives here because only this room knows what keeps running."""

from fastapi import APIRouter, Response
from sqlalchemy import select

from ..authz.context import Context
from ..catalog import reads as catalog
from ..catalog import service as catalog_service
from ..catalog.schemas import DisabledEntitlementView
from ..http.call import Caller, needs
from .tables import instances

router = APIRouter(prefix="/v1/projects/{project_id}/entitlements", tags=["catalog"])


@router.post(
    "/{app_slug}/disable",
    response_model=DisabledEntitlementView,
    **needs("catalog.entitlement.disable", "project"),
)
async def disable_entitlement(call: Caller, project_id: str, app_slug: str) -> Response:
    """No new deploys from now on; `keeps_running` says what stays until somebody decommissions it."""

    def disable(ctx: Context) -> DisabledEntitlementView:
        row = catalog_service.disentitle(ctx, project_id, app_slug)
        view = catalog.entitlement_view(ctx.tx, row, ctx.now)
        return DisabledEntitlementView(**view.model_dump(), keeps_running=_running(ctx, project_id, app_slug))

    return await call.write(disable)


def _running(ctx: Context, project_id: str, app_slug: str) -> list[str]:
    mine = (instances.c.project_id == project_id) & (instances.c.app_slug == app_slug)
    live = select(instances.c.name).where(mine, instances.c.state != "deleted")
    return list(ctx.tx.execute(live.order_by(instances.c.name)).scalars())
