"""Register apps, add and publish versions, entitle projects."""

from typing import Any

from sqlalchemy import Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.db import insert_into
from ..kit.ids import new_id
from ..kit.problems import NotFound, Problem
from ..policy.reads import entitlement_place, policy_row
from ..policy.schemas import SetPolicy
from ..policy.service import write
from ..tenancy.reads import project_scope
from . import schemas
from .manifest import check_manifest
from .reads import OVERLAY, entitlement_row, version_row
from .states import VERSION
from .tables import app_versions, apps, entitlements

declare(
    {
        "catalog.app.created": "An app was registered.",
        "catalog.version.created": "An app version was added, not yet published.",
        "catalog.version.published": "An app version can be deployed by entitled projects.",
        "catalog.version.deprecated": "An app version can still be deployed, with a warning.",
        "catalog.version.withdrawn": "An app version was withdrawn; running instances are not affected.",
        "catalog.entitlement.enabled": "A project may deploy an app.",
        "catalog.entitlement.disabled": "A project may no longer deploy an app; running instances are not affected.",
        "catalog.entitlement.expired": "A project's entitlement to an app expired; running instances are not affected.",
    }
)


class AppTaken(Problem):
    status, code, title = 409, "app_taken", "App slug already in use"
    way_out = "Add a version to the existing app, or choose another slug."


class VersionTaken(Problem):
    status, code, title = 409, "version_taken", "Version already exists"
    way_out = "A version cannot be changed once added. Choose a higher version number."


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
        raise NotFound(f"The catalog has no app {slug!r}.")
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
    """Publish, deprecate or withdraw.

    Publishing a published version changes nothing, so an app's release may repeat it.
    """
    row = version_row(ctx.tx, slug, version, lock=True)
    ctx.resource_id = f"{slug}/{version}"
    state = VERSION.after(row.state, action)
    if state == row.state:
        return row
    first = {"published_at": row.published_at or ctx.now} if state == "published" else {}
    change = {"state": state, "state_reason": reason} | first
    ctx.tx.execute(update(app_versions).where(app_versions.c.id == row.id).values(**change))
    data = {"app_slug": slug, "version": version, "reason": reason}
    ctx.emit(f"catalog.version.{state}", ctx.resource_id, data)
    return version_row(ctx.tx, slug, version)


def entitle(ctx: Context, project_id: str, body: schemas.CreateEntitlement) -> Row[Any]:
    """Enable, or enable again.

    An overlay is kept unless the request has another, so omitting it never widens access.
    """
    expires_at = ctx.now + body.expires_in_s * 1000 if body.expires_in_s else None
    row = _set_entitlement(ctx, project_id, body.app_slug, enabled=1, expires_at=expires_at)
    place = entitlement_place(project_id, body.app_slug)
    if body.overlay is not None:
        before = policy_row(ctx.tx, place, OVERLAY, lock=True)
        write(ctx, place, OVERLAY, before, SetPolicy(rules=body.overlay, reason=body.reason))
    data = {"expires_at": expires_at, "overlay": body.overlay.stored() if body.overlay else None}
    ctx.emit("catalog.entitlement.enabled", str(ctx.resource_id), {"app_slug": body.app_slug} | data)
    return row


def disentitle(ctx: Context, project_id: str, slug: str) -> Row[Any]:
    row = _set_entitlement(ctx, project_id, slug, enabled=0)
    ctx.emit("catalog.entitlement.disabled", str(ctx.resource_id), {"app_slug": slug})
    return row


def expire_entitlements(ctx: Context) -> int:
    """Emit the event once; an expired entitlement is refused by its time alone."""
    over = select(entitlements).where(entitlements.c.enabled == 1, entitlements.c.expires_at <= ctx.now)
    in_order = over.order_by(entitlements.c.expires_at, entitlements.c.project_id, entitlements.c.app_slug)
    rows = ctx.tx.execute(in_order.with_for_update(skip_locked=True)).all()
    for row in rows:
        mine = (entitlements.c.project_id == row.project_id) & (entitlements.c.app_slug == row.app_slug)
        ctx.tx.execute(update(entitlements).where(mine).values(enabled=0, updated_at=ctx.now))
        where, subject = project_scope(ctx.tx, row.project_id), f"{row.project_id}/{row.app_slug}"
        ctx.emit("catalog.entitlement.expired", subject, {"app_slug": row.app_slug}, scope=where)
        ctx.rights_changed(row.project_id)
        ctx.note_own(where, subject, "the entitlement expired")
    return len(rows)


def _set_entitlement(ctx: Context, project_id: str, slug: str, **change: Any) -> Row[Any]:
    if ctx.tx.execute(select(apps.c.id).where(apps.c.slug == slug)).first() is None:
        raise NotFound(f"The catalog has no app {slug!r}.")
    ctx.resource_id = f"{project_id}/{slug}"
    change |= {"updated_at": ctx.now}
    key = {"project_id": project_id, "app_slug": slug, "created_at": ctx.now}
    new = insert_into(ctx.tx, entitlements).values(**key, **change)
    ctx.tx.execute(new.on_conflict_do_update(index_elements=["project_id", "app_slug"], set_=change))
    ctx.rights_changed(project_id)
    return entitlement_row(ctx.tx, project_id, slug)
