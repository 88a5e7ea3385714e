"""Queries for versions, entitlements and the catalog of a project, also for other rooms."""

from sqlalchemy import Connection, bindparam, select

from ..authz.evaluate import Scope
from ..kit.problems import NotFound, Problem
from ..kit.rows import Query
from ..policy.evaluate import judge
from ..policy.modes import decide_modes
from ..policy.reads import entitlement_place, overlays_for, policy_row, policy_view
from .manifest_types import Manifest
from .rows import AppRow, AppVersionRow, EntitlementRow
from .schemas import AppView, CatalogEntry, EntitlementView
from .states import DEPLOYABLE
from .tables import app_versions, apps, entitlements

OVERLAY = "entitlement"  # the name of an entitlement's single policy

APPS = Query(select(apps), AppRow)
_ALL_APPS = APPS.order_by(apps.c.slug)
_APP = APPS.where(apps.c.slug == bindparam("slug"))

VERSIONS = Query(select(app_versions), AppVersionRow)
_VERSION = VERSIONS.where(app_versions.c.app_slug == bindparam("slug"), app_versions.c.version == bindparam("version"))
_VERSION_LOCKED = _VERSION.locked()
_NEWEST = (
    VERSIONS.where(app_versions.c.app_slug == bindparam("slug"), app_versions.c.state == bindparam("state"))
    .order_by(app_versions.c.published_at.desc(), app_versions.c.id.desc())
    .limit(1)
)
_DEPLOYABLE_MANIFESTS = select(app_versions.c.manifest).where(app_versions.c.state.in_(DEPLOYABLE))

_ENTITLEMENTS = Query(select(entitlements), EntitlementRow)
_OF_PROJECT = _ENTITLEMENTS.where(entitlements.c.project_id == bindparam("project")).order_by(entitlements.c.app_slug)
_ENTITLEMENT = _ENTITLEMENTS.where(
    entitlements.c.project_id == bindparam("project"), entitlements.c.app_slug == bindparam("slug")
)
_EXPIRED = (
    _ENTITLEMENTS.where(entitlements.c.enabled == 1, entitlements.c.expires_at <= bindparam("now"))
    .order_by(entitlements.c.expires_at, entitlements.c.project_id, entitlements.c.app_slug)
    .locked(skip_locked=True)
)


class AppNotEntitled(Problem):
    status, code, title = 403, "app_not_entitled", "The project is not entitled to this app"
    way_out = (
        "Ask a tenant administrator to entitle the project. `gpuaas catalog` shows which apps the project can deploy."
    )


class VersionNotPublished(Problem):
    status, code, title = 422, "version_not_published", "Version not published"
    way_out = "Omit the version to deploy the newest published version, or choose a version from the catalog."


class VersionWithdrawn(Problem):
    status, code, title = 422, "version_withdrawn", "Version withdrawn"
    way_out = "Choose another version from the catalog; instances that run this version keep running."


def declared_backends(tx: Connection) -> set[str]:
    """Return the runtime backends in the manifests of all deployable app versions."""
    manifests: list[Manifest] = list(tx.execute(_DEPLOYABLE_MANIFESTS).scalars())
    return {manifest["runtime_backend"] for manifest in manifests}


def app_row(tx: Connection, slug: str) -> AppRow:
    row = _APP.first(tx, slug=slug)
    if row is None:
        raise NotFound(f"The catalog has no app {slug!r}.")
    return row


def version_row(tx: Connection, slug: str, version: str, *, lock: bool = False) -> AppVersionRow:
    row = (_VERSION_LOCKED if lock else _VERSION).first(tx, slug=slug, version=version)
    if row is None:
        raise NotFound(f"The app {slug!r} has no version {version!r}.")
    return row


def deployable(tx: Connection, project_id: str, slug: str, version: str | None) -> AppVersionRow:
    """Return the version to deploy or upgrade to; `version` None: the newest. Raise an error if the project is not
    entitled to the app, or the version is not published or was withdrawn."""
    entitlement = _ENTITLEMENT.first(tx, project=project_id, slug=slug)
    if entitlement is None or not entitlement.enabled:
        raise AppNotEntitled(f"The project is not entitled to the app {slug!r}.")
    row = _VERSION.first(tx, slug=slug, version=version) if version else newest(tx, slug)
    if row is None or row.state == "draft":
        raise VersionNotPublished(f"{slug} has no published version{f' {version}' if version else ''}.")
    if row.state == "withdrawn":
        raise VersionWithdrawn(f"{slug} {row.version} was withdrawn{_because(row)}.")
    return row


def warnings_of(version: AppVersionRow) -> list[str]:
    """Return the warnings to show before this version is deployed; empty unless it is deprecated."""
    if version.state != "deprecated":
        return []
    return [f"{version.app_slug} {version.version} is deprecated{_because(version)}."]


def entitlement_row(tx: Connection, project_id: str, slug: str) -> EntitlementRow:
    return _ENTITLEMENT.one(tx, project=project_id, slug=slug)


def expired_entitlements(tx: Connection, now: int) -> list[EntitlementRow]:
    """Lock and return enabled entitlements that have expired; rows locked by other transactions are skipped."""
    return _EXPIRED.all(tx, now=now)


def entitlement_view(tx: Connection, row: EntitlementRow, now: int) -> EntitlementView:
    overlay = policy_row(tx, entitlement_place(row.project_id, row.app_slug), OVERLAY)
    shown = {
        "enabled": bool(row.enabled),
        "active": is_active(row, now),
        "overlay": policy_view(overlay) if overlay else None,
    }
    return EntitlementView.model_validate(vars(row) | shown)


def entitlements_of(tx: Connection, project_id: str, now: int) -> list[EntitlementView]:
    return [entitlement_view(tx, row, now) for row in _OF_PROJECT.all(tx, project=project_id)]


def is_active(row: EntitlementRow | None, now: int) -> bool:
    return row is not None and bool(row.enabled) and (row.expires_at is None or row.expires_at > now)


def check_not_expired(tx: Connection, project_id: str, slug: str, now: int) -> None:
    if not is_active(entitlement_row(tx, project_id, slug), now):
        raise AppNotEntitled(f"The project's entitlement to the app {slug!r} has expired.")


def catalog_of(tx: Connection, scope: Scope, now: int) -> list[CatalogEntry]:
    held = {row.app_slug: row for row in _OF_PROJECT.all(tx, project=scope.project_id)}
    return [_entry(tx, scope, app, held.get(app.slug), now) for app in _ALL_APPS.all(tx)]


def newest(tx: Connection, slug: str) -> AppVersionRow | None:
    """Return the version published last or, if none is published, the newest deprecated version; None if there is
    neither."""
    for state in DEPLOYABLE:
        if row := _NEWEST.first(tx, slug=slug, state=state):
            return row
    return None


def _entry(tx: Connection, scope: Scope, app: AppRow, held: EntitlementRow | None, now: int) -> CatalogEntry:
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
        manifest={**version.manifest} if version else None,
    )


def _why_not(held: EntitlementRow | None, now: int) -> str | None:
    if held is None or not held.enabled:
        return "a tenant administrator has not entitled this project"
    return None if is_active(held, now) else "the project's entitlement has expired"


def _policy_against(tx: Connection, scope: Scope, slug: str, version: AppVersionRow | None) -> str | None:
    """Return why the app cannot be deployed on any node (no published version, or a policy), or None if it can.
    Policies about nodes are checked when nodes are chosen."""
    if version is None:
        return "no version is published yet"
    overlays = overlays_for(tx, scope, slug)
    asked = [("apps", slug), ("runtime_backends", version.manifest["runtime_backend"])]
    asked += [("artifact_sources", source) for source in version.manifest.get("artifact_sources", ())]
    rulings = (judge(overlays, field, value) for field, value in asked)
    refused = next((ruling.reason for ruling in rulings if not ruling.allowed), None)
    return refused or decide_modes(overlays, version.manifest, {}).refused


def _because(version: AppVersionRow) -> str:
    return f": {version.state_reason.rstrip('.')}" if version.state_reason else ""
