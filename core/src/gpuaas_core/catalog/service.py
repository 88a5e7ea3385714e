"""Registers apps, adds and publishes versions, and entitles projects."""

from sqlalchemy import insert, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.db import insert_into
from ..kit.ids import new_id
from ..kit.problems import Problem
from ..policy.reads import entitlement_place, policy_row
from ..policy.schemas import SetPolicy
from ..policy.service import write
from ..tenancy.reads import project_scope
from . import schemas
from .manifest import check_manifest
from .reads import OVERLAY, app_row, entitlement_row, expired_entitlements, version_row
from .rows import AppRow, AppVersionRow, EntitlementRow
from .states import VERSION
from .tables import app_versions, apps, entitlements

declare(
    {
        "catalog.app.created": "An app was registered.",
        "catalog.version.created": "An app version was added; it is not yet published.",
        "catalog.version.published": "An app version was published; entitled projects can deploy it.",
        "catalog.version.deprecated": "An app version was deprecated. It can still be deployed, with a warning.",
        "catalog.version.withdrawn": "An app version was withdrawn; running instances are not affected.",
        "catalog.entitlement.enabled": "An app was enabled for a project.",
        "catalog.entitlement.disabled": "An app was disabled for a project. Running instances are not affected.",
        "catalog.entitlement.expired": "A project's entitlement to an app expired; running instances are not affected.",
    }
)


class AppTaken(Problem):
    status, code, title = 409, "app_taken", "App slug already in use"
    way_out = "Add a version to the existing app, or choose another slug."


class VersionTaken(Problem):
    status, code, title = 409, "version_taken", "Version already exists"
    way_out = "A version cannot be changed once added. Choose a higher version number."


def create_app(ctx: Context, body: schemas.CreateApp) -> AppRow:
    ctx.resource_id = body.slug
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(apps).values(id=new_id("app"), **vars(body), created_at=ctx.now))
    except IntegrityError as error:
        raise AppTaken(f"The app {body.slug!r} is registered already.") from error
    ctx.emit("catalog.app.created", body.slug, {"app_slug": body.slug})
    return app_row(ctx.tx, body.slug)


def create_version(ctx: Context, slug: str, body: schemas.CreateVersion) -> AppVersionRow:
    app_row(ctx.tx, slug)
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


def move_version(ctx: Context, slug: str, version: str, action: str, reason: str = "") -> AppVersionRow:
    """Publish, deprecate or withdraw a version.

    Publishing a published version changes nothing, so the release of an app may publish its version again.
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


def entitle(ctx: Context, project_id: str, body: schemas.CreateEntitlement) -> EntitlementRow:
    """Enable the project's entitlement to the app, also if it was disabled before.

    The stored policy (overlay) is kept unless the request has another policy, so omitting it never widens access.
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


def disentitle(ctx: Context, project_id: str, slug: str) -> EntitlementRow:
    row = _set_entitlement(ctx, project_id, slug, enabled=0)
    ctx.emit("catalog.entitlement.disabled", str(ctx.resource_id), {"app_slug": slug})
    return row


def expire_entitlements(ctx: Context) -> int:
    """Disable the expired entitlements, each with an event, and return how many there were. Deploys are refused from
    the expiry time on, even before this function runs."""
    rows = expired_entitlements(ctx.tx, ctx.now)
    for row in rows:
        mine = (entitlements.c.project_id == row.project_id) & (entitlements.c.app_slug == row.app_slug)
        ctx.tx.execute(update(entitlements).where(mine).values(enabled=0, updated_at=ctx.now))
        where, subject = project_scope(ctx.tx, row.project_id), f"{row.project_id}/{row.app_slug}"
        ctx.emit("catalog.entitlement.expired", subject, {"app_slug": row.app_slug}, scope=where)
        ctx.rights_changed(row.project_id)
        ctx.note_own(where, subject, "the entitlement expired")
    return len(rows)


def _set_entitlement(ctx: Context, project_id: str, slug: str, **columns: int | None) -> EntitlementRow:
    app_row(ctx.tx, slug)
    ctx.resource_id = f"{project_id}/{slug}"
    change = columns | {"updated_at": ctx.now}
    key = {"project_id": project_id, "app_slug": slug, "created_at": ctx.now}
    new = insert_into(ctx.tx, entitlements).values(**key, **change)
    ctx.tx.execute(new.on_conflict_do_update(index_elements=["project_id", "app_slug"], set_=change))
    ctx.rights_changed(project_id)
    return entitlement_row(ctx.tx, project_id, slug)
