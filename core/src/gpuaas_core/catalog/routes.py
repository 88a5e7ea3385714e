"""HTTP routes for apps, versions and entitlements."""

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.wire import Page
from . import reads, schemas, service
from .rows import AppRow, AppVersionRow
from .states import VERSION
from .tables import app_versions, apps

router = APIRouter(prefix="/v1", tags=["catalog"])


@router.post("/apps", status_code=201, response_model=schemas.AppView, **needs("catalog.app.create"))
async def create_app(call: Caller, body: schemas.CreateApp) -> Response:
    return await call.write(
        lambda ctx: _app(service.create_app(ctx, body)), status=201, location=lambda view: f"/v1/apps/{view.slug}"
    )


@router.get("/apps", **needs("catalog.app.read"))
async def list_apps(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.AppView]:
    return await call.read(lambda ctx: page(ctx, reads.APPS, apps.c.id, limit, cursor, _app))


@router.get("/apps/{app_slug}", **needs("catalog.app.read"))
async def get_app(call: Caller, app_slug: str) -> schemas.AppView:
    return await call.read(lambda ctx: _app(reads.app_row(ctx.tx, app_slug)))


@router.post(
    "/apps/{app_slug}/versions",
    status_code=201,
    response_model=schemas.VersionView,
    **needs("catalog.version.create"),
)
async def create_version(call: Caller, app_slug: str, body: schemas.CreateVersion) -> Response:
    return await call.write(lambda ctx: _version(service.create_version(ctx, app_slug, body)), status=201)


@router.get("/apps/{app_slug}/versions", **needs("catalog.app.read"))
async def list_versions(
    call: Caller, app_slug: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.VersionView]:
    query = reads.VERSIONS.where(app_versions.c.app_slug == app_slug)
    return await call.read(lambda ctx: page(ctx, query, app_versions.c.id, limit, cursor, _version))


@router.get("/apps/{app_slug}/versions/{version}", **needs("catalog.app.read"))
async def get_version(call: Caller, app_slug: str, version: str) -> schemas.VersionView:
    return await call.read(lambda ctx: _version(reads.version_row(ctx.tx, app_slug, version)))


@router.post(
    "/apps/{app_slug}/versions/{version}/publish",
    response_model=schemas.VersionView,
    **needs("catalog.version.publish"),
)
async def publish_version(call: Caller, app_slug: str, version: str) -> Response:
    """Publish a version, so that entitled projects may deploy it. A deprecated version can be published again."""
    return await call.write(lambda ctx: _version(service.move_version(ctx, app_slug, version, "publish")))


@router.post(
    "/apps/{app_slug}/versions/{version}/deprecate",
    response_model=schemas.VersionView,
    **needs("catalog.version.deprecate"),
)
async def deprecate_version(
    call: Caller, app_slug: str, version: str, body: schemas.EndVersion | None = None
) -> Response:
    """Deprecate a version. It can still be deployed, but plans and the catalog show a warning with the reason."""
    reason = body.reason if body else ""
    return await call.write(lambda ctx: _version(service.move_version(ctx, app_slug, version, "deprecate", reason)))


@router.post(
    "/apps/{app_slug}/versions/{version}/withdraw",
    response_model=schemas.VersionView,
    **needs("catalog.version.withdraw"),
)
async def withdraw_version(
    call: Caller, app_slug: str, version: str, body: schemas.EndVersion | None = None
) -> Response:
    """Withdraw a version permanently: it can no longer be deployed or upgraded to. Running instances are not
    affected."""
    reason = body.reason if body else ""
    return await call.write(lambda ctx: _version(service.move_version(ctx, app_slug, version, "withdraw", reason)))


@router.get("/projects/{project_id}/catalog", **needs("catalog.entitlement.read", "project"))
async def read_catalog(call: Caller, project_id: str) -> Page[schemas.CatalogEntry]:
    """List all apps, each with whether this project may deploy the app and, if not, the reason."""
    return Page(items=await call.read(lambda ctx: reads.catalog_of(ctx.tx, ctx.scope, ctx.now)))


@router.post(
    "/projects/{project_id}/entitlements",
    status_code=201,
    response_model=schemas.EntitlementView,
    **needs("catalog.entitlement.create", "project"),
)
async def create_entitlement(call: Caller, project_id: str, body: schemas.CreateEntitlement) -> Response:
    """Entitle a project to deploy an app, optionally restricted by a policy and with an expiry."""

    def enable(ctx: Context) -> schemas.EntitlementView:
        return reads.entitlement_view(ctx.tx, service.entitle(ctx, project_id, body), ctx.now)

    return await call.write(enable, status=201)


@router.get("/projects/{project_id}/entitlements", **needs("catalog.entitlement.read", "project"))
async def list_entitlements(call: Caller, project_id: str) -> Page[schemas.EntitlementView]:
    """List the entitlements of the project, including disabled and expired ones."""
    return Page(items=await call.read(lambda ctx: reads.entitlements_of(ctx.tx, project_id, ctx.now)))


def _app(row: AppRow) -> schemas.AppView:
    return schemas.AppView.model_validate(row)


def _version(row: AppVersionRow) -> schemas.VersionView:
    shown = {"published": row.state == "published", "available_actions": sorted(VERSION.moves[row.state])}
    return schemas.VersionView.model_validate(vars(row) | shown)
