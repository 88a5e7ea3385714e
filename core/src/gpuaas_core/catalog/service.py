"""Register apps, add and publish versions, entitle projects."""

from typing import Any

from sqlalchemy import Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..access.context import Context
from ..kit.db import insert_into
from ..kit.ids import new_id
from ..kit.problems import NotFound, Problem
from ..ledger.events import declare
from . import schemas
from .manifest import check_manifest
from .reads import version_row
from .states import VERSION
from .tables import app_versions, apps, entitlements

declare(
    {
        "catalog.app.created": "An app is registered.",
        "catalog.version.created": "An app version exists, not yet published.",
        "catalog.version.published": "An app version can be deployed by entitled projects.",
        "catalog.version.deprecated": "An app version can still be deployed, with a warning.",
        "catalog.version.withdrawn": "An app version can no longer be deployed or upgraded to; what runs stays.",
        "catalog.entitlement.enabled": "A project may deploy an app.",
        "catalog.entitlement.disabled": "A project may no longer deploy an app; what runs stays.",
    }
)


class AppTaken(Problem):
    status, code, title = 409, "app_taken", "An app with this slug exists"
    way_out = "Add a version to the existing app, or choose another slug."


class VersionTaken(Problem):
    status, code, title = 409, "version_taken", "This version exists already"
    way_out = "A version never changes once added: choose a higher version number."


def create_app(ctx: Context, body: schemas.CreateApp) -> Row[Any]:
    ctx.resource_id = body.slug
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(apps).values(id=new_id("app"), **vars(body), created_at=ctx.now))
    except IntegrityError as error:
        raise AppTaken(f"The app {body.slug!r} is registered already.") from error
    ctx.emit("catalog.app.created", body.slug, {"app_slug": body.slug})
    return ctx.tx.execute(select(apps).where(apps.c.slug == body.slug)).one()


def create_version(ctx: Context, slug: str, body: schemas.CreateVersion) -> Row[Any]:
    if ctx.tx.execute(select(apps.c.id).where(apps.c.slug == slug)).first() is None:
        raise NotFound(f"There is no app {slug!r}.")
    check_manifest(body.manifest, app_slug=slug, version=body.version)
    ctx.resource_id = f"{slug}/{body.version}"
    row = {"id": new_id("appv"), "app_slug": slug, "created_at": ctx.now}
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(app_versions).values(**row, version=body.version, manifest=body.manifest))
    except IntegrityError as error:
        raise VersionTaken(f"{slug} {body.version} exists already.") from error
    ctx.emit("catalog.version.created", ctx.resource_id, {"app_slug": slug, "version": body.version})
    return version_row(ctx.tx, slug, body.version)


def move_version(ctx: Context, slug: str, version: str, action: str, reason: str = "") -> Row[Any]:
    """Publish, deprecate or withdraw. Publishing what is published changes nothing: an app's release may repeat it."""
    row = version_row(ctx.tx, slug, version, lock=True)
    ctx.resource_id = f"{slug}/{version}"
    state = VERSION.after(row.state, action)
    if state == row.state:
        return row
    first = {"published_at": row.published_at or ctx.now} if state == "published" else {}
    change = {"state": state, "state_reason": reason} | first
    ctx.tx.execute(update(app_versions).where(app_versions.c.id == row.id).values(**change))
    said = {"app_slug": slug, "version": version, "reason": reason}
    ctx.emit(f"catalog.version.{state}", ctx.resource_id, said)
    return version_row(ctx.tx, slug, version)


def set_entitlement(ctx: Context, project_id: str, slug: str, *, enabled: bool) -> Row[Any]:
    if ctx.tx.execute(select(apps.c.id).where(apps.c.slug == slug)).first() is None:
        raise NotFound(f"There is no app {slug!r} in the catalog.")
    ctx.resource_id = f"{project_id}/{slug}"
    mine = (entitlements.c.project_id == project_id) & (entitlements.c.app_slug == slug)
    change = {"enabled": int(enabled), "updated_at": ctx.now}
    key = {"project_id": project_id, "app_slug": slug, "created_at": ctx.now}
    new = insert_into(ctx.tx, entitlements).values(**key, **change)
    ctx.tx.execute(new.on_conflict_do_update(index_elements=["project_id", "app_slug"], set_=change))
    ctx.emit(f"catalog.entitlement.{'enabled' if enabled else 'disabled'}", ctx.resource_id, {"app_slug": slug})
    return ctx.tx.execute(select(entitlements).where(mine)).one()
