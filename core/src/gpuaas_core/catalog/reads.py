"""Reads of the catalog, also for other rooms: versions, entitlements, a project's view of it."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..authz.evaluate import Scope
from ..kit.problems import NotFound, Problem
from ..policy.evaluate import judge
from ..policy.modes import decide_modes
from ..policy.reads import entitlement_place, overlays_for, policy_row, policy_view
from .schemas import AppView, CatalogEntry, EntitlementView
from .states import DEPLOYABLE
from .tables import app_versions, apps, entitlements

OVERLAY = "entitlement"  # the name of an entitlement's single policy


class AppNotEntitled(Problem):
    status, code, title = 403, "app_not_entitled", "Project not entitled to this app"
    way_out = "Ask a tenant administrator to entitle the project (`gpuaas catalog` shows what it may deploy)."


class VersionNotPublished(Problem):
    status, code, title = 422, "version_not_published", "Version not published"
    way_out = "Omit the version to deploy the newest published one, or choose one from the catalog."


class VersionWithdrawn(Problem):
    status, code, title = 422, "version_withdrawn", "Version withdrawn"
    way_out = "Choose another version from the catalog; instances that run this version keep running."


def declared_backends(tx: Connection) -> set[str]:
    """The runtime backends that deployable apps declare. Derived from the catalog, so publishing an app extends it."""
    rows = tx.execute(select(app_versions.c.manifest).where(app_versions.c.state.in_(DEPLOYABLE)))
    return {row.manifest["runtime_backend"] for row in rows}


def version_row(tx: Connection, slug: str, version: str, *, lock: bool = False) -> Row[Any]:
    mine = (app_versions.c.app_slug == slug) & (app_versions.c.version == version)
    query = select(app_versions).where(mine)
    row = tx.execute(query.with_for_update(key_share=True) if lock else query).first()
    if row is None:
        raise NotFound(f"The app {slug!r} has no version {version!r}.")
    return row


def deployable(tx: Connection, project_id: str, slug: str, version: str | None) -> Row[Any]:
    """The version to deploy or upgrade to; raises if that is not possible."""
    if not _entitled(tx, project_id, slug):
        raise AppNotEntitled(f"The project is not entitled to the app {slug!r}.")
    row = _find_version(tx, slug, version) if version else newest(tx, slug)
    if row is None or row.state == "draft":
        raise VersionNotPublished(f"{slug} has no published version{f' {version}' if version else ''}.")
    if row.state == "withdrawn":
        raise VersionWithdrawn(f"{slug} {row.version} was withdrawn{_because(row)}.")
    return row


def warnings_of(version: Row[Any]) -> list[str]:
    """Warnings to show before this version is deployed."""
    if version.state != "deprecated":
        return []
    return [f"{version.app_slug} {version.version} is deprecated{_because(version)}."]


def entitlement_row(tx: Connection, project_id: str, slug: str) -> Row[Any]:
    mine = (entitlements.c.project_id == project_id) & (entitlements.c.app_slug == slug)
    return tx.execute(select(entitlements).where(mine)).one()


def entitlement_view(tx: Connection, row: Row[Any], now: int) -> EntitlementView:
    overlay = policy_row(tx, entitlement_place(row.project_id, row.app_slug), OVERLAY)
    more = {"enabled": bool(row.enabled), "active": is_active(row, now)}
    return EntitlementView.model_validate(
        dict(row._mapping) | more | {"overlay": policy_view(overlay) if overlay else None}
    )


def entitlements_of(tx: Connection, project_id: str, now: int) -> list[EntitlementView]:
    mine = select(entitlements).where(entitlements.c.project_id == project_id).order_by(entitlements.c.app_slug)
    return [entitlement_view(tx, row, now) for row in tx.execute(mine).all()]


def is_active(row: Row[Any] | None, now: int) -> bool:
    return row is not None and bool(row.enabled) and (row.expires_at is None or row.expires_at > now)


def check_not_expired(tx: Connection, project_id: str, slug: str, now: int) -> None:
    if not is_active(entitlement_row(tx, project_id, slug), now):
        raise AppNotEntitled(f"The project's entitlement to the app {slug!r} has expired.")


def catalog_of(tx: Connection, scope: Scope, now: int) -> list[CatalogEntry]:
    mine = select(entitlements).where(entitlements.c.project_id == scope.project_id)
    held = {row.app_slug: row for row in tx.execute(mine)}
    return [_entry(tx, scope, app, held.get(app.slug), now) for app in tx.execute(select(apps).order_by(apps.c.slug))]


def newest(tx: Connection, slug: str) -> Row[Any] | None:
    """The version published last; if none is published, the newest deprecated one."""
    for state in DEPLOYABLE:
        query = select(app_versions).where(app_versions.c.app_slug == slug, app_versions.c.state == state)
        last = query.order_by(app_versions.c.published_at.desc(), app_versions.c.id.desc()).limit(1)
        if row := tx.execute(last).first():
            return row
    return None


def _entry(tx: Connection, scope: Scope, app: Row[Any], held: Row[Any] | None, now: int) -> CatalogEntry:
    version = newest(tx, app.slug)
    why_not = _why_not(held, now) or _policy_against(tx, scope, app.slug, version)
    return CatalogEntry(
        app=AppView.model_validate(app),
        version=version.version if version else None,
        state=version.state if version else None,
        entitled=is_active(held, now),
        deployable=why_not is None,
        reason=why_not or "ready to deploy",
        warnings=warnings_of(version) if version else [],
        manifest=version.manifest if version else None,
    )


def _why_not(held: Row[Any] | None, now: int) -> str | None:
    if held is None or not held.enabled:
        return "a tenant administrator has not entitled this project"
    return None if is_active(held, now) else "the project's entitlement has expired"


def _policy_against(tx: Connection, scope: Scope, slug: str, version: Row[Any] | None) -> str | None:
    """Why the app is refused on every node; policies about nodes are checked when they are chosen."""
    if version is None:
        return "no version is published yet"
    overlays = overlays_for(tx, scope, slug)
    asked = [("apps", slug), ("runtime_backends", version.manifest["runtime_backend"])]
    asked += [("artifact_sources", source) for source in version.manifest.get("artifact_sources", ())]
    rulings = (judge(overlays, field, value) for field, value in asked)
    refused = next((ruling.reason for ruling in rulings if not ruling.allowed), None)
    return refused or decide_modes(overlays, version.manifest, {}).refused


def _entitled(tx: Connection, project_id: str, slug: str) -> bool:
    mine = (entitlements.c.project_id == project_id) & (entitlements.c.app_slug == slug)
    return bool(tx.execute(select(entitlements.c.enabled).where(mine)).scalar())


def _find_version(tx: Connection, slug: str, version: str) -> Row[Any] | None:
    mine = (app_versions.c.app_slug == slug) & (app_versions.c.version == version)
    return tx.execute(select(app_versions).where(mine)).first()


def _because(version: Row[Any]) -> str:
    return f": {version.state_reason.rstrip('.')}" if version.state_reason else ""
