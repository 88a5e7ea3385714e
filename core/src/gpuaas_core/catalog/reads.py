"""What may be read of the catalog, also by other rooms: versions, entitlements, a project's view of it."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..kit.problems import NotFound, Problem
from .schemas import AppView, CatalogEntry
from .tables import app_versions, apps, entitlements


class AppNotEntitled(Problem):
    status, code, title = 403, "app_not_entitled", "The project is not entitled to this app"
    way_out = "Ask a tenant administrator to entitle the project (`gpuaas catalog` shows what it may deploy)."


class VersionNotPublished(Problem):
    status, code, title = 422, "version_not_published", "This version cannot be deployed"
    way_out = "Leave the version out for the newest published one, or choose one from the catalog."


def version_row(tx: Connection, slug: str, version: str, *, lock: bool = False) -> Row[Any]:
    mine = (app_versions.c.app_slug == slug) & (app_versions.c.version == version)
    query = select(app_versions).where(mine)
    row = tx.execute(query.with_for_update(key_share=True) if lock else query).first()
    if row is None:
        raise NotFound(f"There is no version {version!r} of the app {slug!r}.")
    return row


def deployable(tx: Connection, project_id: str, slug: str, version: str | None) -> Row[Any]:
    """The version to deploy, or why not."""
    if not _entitled(tx, project_id, slug):
        raise AppNotEntitled(f"The project is not entitled to the app {slug!r}.")
    found = _published(tx, slug, version)
    if found is None:
        raise VersionNotPublished(f"{slug} has no published version{f' {version}' if version else ''}.")
    return found


def catalog_of(tx: Connection, project_id: str) -> list[CatalogEntry]:
    return [_entry(tx, project_id, app) for app in tx.execute(select(apps).order_by(apps.c.slug))]


def _entry(tx: Connection, project_id: str, app: Row[Any]) -> CatalogEntry:
    entitled, newest = _entitled(tx, project_id, app.slug), _published(tx, app.slug, None)
    if newest is None:
        reason = "no version is published yet"
    else:
        reason = "ready to deploy" if entitled else "a tenant administrator has not entitled this project"
    return CatalogEntry(
        app=AppView.model_validate(app),
        version=newest.version if newest else None,
        entitled=entitled,
        reason=reason,
        manifest=newest.manifest if newest else None,
    )


def _entitled(tx: Connection, project_id: str, slug: str) -> bool:
    mine = (entitlements.c.project_id == project_id) & (entitlements.c.app_slug == slug)
    return bool(tx.execute(select(entitlements.c.enabled).where(mine)).scalar())


def _published(tx: Connection, slug: str, version: str | None) -> Row[Any] | None:
    query = select(app_versions).where(app_versions.c.app_slug == slug, app_versions.c.published_at.is_not(None))
    if version:
        query = query.where(app_versions.c.version == version)
    newest = query.order_by(app_versions.c.published_at.desc(), app_versions.c.id.desc())
    return tx.execute(newest.limit(1)).first()
