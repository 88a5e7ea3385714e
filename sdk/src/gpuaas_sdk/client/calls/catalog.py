"""Apps, their versions, and the entitlements of projects. Called by app teams when they publish, and by deployers."""

from __future__ import annotations

from ..call import call
from ..models import AppView, CatalogEntry, DisabledEntitlementView, EntitlementView, VersionView
from ..request import JsonObject, Page, Request, get, post


class CatalogCalls:
    @call
    def create_app(self, *, slug: str, name: str, description: str = "") -> Request[AppView]:
        return post(AppView, "/v1/apps", slug=slug, name=name, description=description)

    @call
    def list_apps(self, *, limit: int | None = None, cursor: str | None = None) -> Request[Page[AppView]]:
        return get(Page[AppView], "/v1/apps", limit=limit, cursor=cursor)

    @call
    def get_app(self, app_slug: str) -> Request[AppView]:
        return get(AppView, "/v1/apps/{}", app_slug)

    @call
    def create_version(self, app_slug: str, *, version: str, manifest: JsonObject) -> Request[VersionView]:
        return post(VersionView, "/v1/apps/{}/versions", app_slug, version=version, manifest=manifest)

    @call
    def list_versions(
        self, app_slug: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[VersionView]]:
        return get(Page[VersionView], "/v1/apps/{}/versions", app_slug, limit=limit, cursor=cursor)

    @call
    def publish_version(self, app_slug: str, version: str) -> Request[VersionView]:
        return post(VersionView, "/v1/apps/{}/versions/{}/publish", app_slug, version)

    @call
    def get_version(self, app_slug: str, version: str) -> Request[VersionView]:
        return get(VersionView, "/v1/apps/{}/versions/{}", app_slug, version)

    @call
    def deprecate_version(self, app_slug: str, version: str, *, reason: str | None = None) -> Request[VersionView]:
        """Mark the version as deprecated. It can still be deployed; a plan shows a warning with the reason."""
        return post(VersionView, "/v1/apps/{}/versions/{}/deprecate", app_slug, version, reason=reason)

    @call
    def withdraw_version(self, app_slug: str, version: str, *, reason: str | None = None) -> Request[VersionView]:
        """Stop new deploys of the version and upgrades to it, permanently. Running instances stay."""
        return post(VersionView, "/v1/apps/{}/versions/{}/withdraw", app_slug, version, reason=reason)

    @call
    def entitle(
        self,
        project_id: str,
        *,
        app_slug: str,
        overlay: JsonObject | None = None,
        reason: str | None = None,
        expires_in_s: int | None = None,
    ) -> Request[EntitlementView]:
        """Let the project deploy the app. An overlay narrows the entitlement until another overlay replaces it."""
        body = {"app_slug": app_slug, "overlay": overlay, "reason": reason, "expires_in_s": expires_in_s}
        return post(EntitlementView, "/v1/projects/{}/entitlements", project_id, **body)

    @call
    def list_entitlements(self, project_id: str) -> Request[Page[EntitlementView]]:
        return get(Page[EntitlementView], "/v1/projects/{}/entitlements", project_id)

    @call
    def disentitle(self, project_id: str, app_slug: str) -> Request[DisabledEntitlementView]:
        return post(DisabledEntitlementView, "/v1/projects/{}/entitlements/{}/disable", project_id, app_slug)

    @call
    def get_catalog(self, project_id: str) -> Request[Page[CatalogEntry]]:
        """List the apps that this project can deploy, and for the others the reason why it cannot."""
        return get(Page[CatalogEntry], "/v1/projects/{}/catalog", project_id)
