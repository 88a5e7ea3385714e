"""What may be read of the catalog, also by other rooms: versions, entitlements, a project's view of it."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..kit.problems import NotFound, Problem
from .schemas import AppView, CatalogEntry
from .states import DEPLOYABLE
from .tables import app_versions, apps, entitlements


class AppNotEntitled(Problem):
    status, code, title = 403, "app_not_entitled", "The project is not entitled to this app"
    way_out = "Ask a tenant administrator to entitle the project (`gpuaas catalog` shows what it may deploy)."


class VersionNotPublished(Problem):
    status, code, title = 422, "version_not_published", "This version cannot be deployed"
    way_out = "Leave the version out for the newest published one, or choose one from the catalog."


class VersionWithdrawn(Problem):
    status, code, title = 422, "version_withdrawn", "This version was withdrawn"
    way_out = "Choose another version from the catalog; what already runs this one keeps running."


def version_row(tx: Connection, slug: str, version: str, *, lock: bool = False) -> Row[Any]:
    mine = (app_versions.c.app_slug == slug) & (app_versions.c.version == version)
    query = select(app_versions).where(mine)
    row = tx.execute(query.with_for_update(key_share=True) if lock else query).first()
    if row is None:
        raise NotFound(f"There is no version {version!r} of the app {slug!r}.")
    return row


def deployable(tx: Connection, project_id: str, slug: str, version: str | None) -> Row[Any]:
    """The version to deploy or upgrade to, or why not."""
    if not _entitled(tx, project_id, slug):
        raise AppNotEntitled(f"The project is not entitled to the app {slug!r}.")
    found = _named(tx, slug, version) if version else newest(tx, slug)
    if found is None or found.state == "draft":
        raise VersionNotPublished(f"{slug} has no published version{f' {version}' if version else ''}.")
    if found.state == "withdrawn":
        raise VersionWithdrawn(f"{slug} {found.version} was withdrawn{_because(found)}.")
    return found


def warnings_of(version: Row[Any]) -> list[str]:
    """What whoever deploys this version should know before."""
    if version.state != "deprecated":
        return []
    return [f"{version.app_slug} {version.version} is deprecated{_because(version)}."]


def catalog_of(tx: Connection, project_id: str) -> list[CatalogEntry]:
    return [_entry(tx, project_id, app) for app in tx.execute(select(apps).order_by(apps.c.slug))]


def newest(tx: Connection, slug: str) -> Row[Any] | None:
    """The one published last; where none is published, the newest deprecated one."""
    for state in DEPLOYABLE:
        query = select(app_versions).where(app_versions.c.app_slug == slug, app_versions.c.state == state)
        last = query.order_by(app_versions.c.published_at.desc(), app_versions.c.id.desc()).limit(1)
        if found := tx.execute(last).first():
            return found
    return None


def _entry(tx: Connection, project_id: str, app: Row[Any]) -> CatalogEntry:
    entitled, version = _entitled(tx, project_id, app.slug), newest(tx, app.slug)
    why_not = _why_not(entitled, version)
    return CatalogEntry(
        app=AppView.model_validate(app),
        version=version.version if version else None,
        state=version.state if version else None,
        entitled=entitled,
        deployable=why_not is None,
        reason=why_not or "ready to deploy",
        warnings=warnings_of(version) if version else [],
        manifest=version.manifest if version else None,
    )


def _why_not(entitled: bool, version: Row[Any] | None) -> str | None:
    if version is None:
        return "no version is published yet"
    return None if entitled else "a tenant administrator has not entitled this project"


def _entitled(tx: Connection, project_id: str, slug: str) -> bool:
    mine = (entitlements.c.project_id == project_id) & (entitlements.c.app_slug == slug)
    return bool(tx.execute(select(entitlements.c.enabled).where(mine)).scalar())


def _named(tx: Connection, slug: str, version: str) -> Row[Any] | None:
    mine = (app_versions.c.app_slug == slug) & (app_versions.c.version == version)
    return tx.execute(select(app_versions).where(mine)).first()


def _because(version: Row[Any]) -> str:
    return f": {version.state_reason.rstrip('.')}" if version.state_reason else ""
