"""Artifact sources and registered artifacts. Called by administrators of the platform and of tenants, and by members of
a project to list and resolve what it may use. Upload content with `artifacts.push_file`."""

from __future__ import annotations

from ..call import call
from ..models import ArtifactView, ProjectArtifactView, SourceView
from ..request import JsonObject, Page, Request, get, post


class ArtifactCalls:
    @call
    def create_platform_artifact_source(
        self,
        *,
        name: str,
        kind: str,
        base_url: str,
        port: int | None = None,
        credential: JsonObject | None = None,
        private_addresses: bool | None = None,
        open_to_tenants: bool | None = None,
    ) -> Request[SourceView]:
        """Create an artifact source of the platform. `kind` is oci or blob; `credential={"kind": "basic" | "bearer" |
        "s3", …}` is write-only."""
        body: dict[str, object] = {
            "name": name,
            "kind": kind,
            "base_url": base_url,
            "port": port,
            "credential": credential,
        }
        more: dict[str, object] = {"private_addresses": private_addresses, "open_to_tenants": open_to_tenants}
        return post(SourceView, "/v1/artifact-sources", **body, **more)

    @call
    def list_platform_artifact_sources(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[SourceView]]:
        return get(Page[SourceView], "/v1/artifact-sources", limit=limit, cursor=cursor)

    @call
    def get_platform_artifact_source(self, source_id: str) -> Request[SourceView]:
        return get(SourceView, "/v1/artifact-sources/{}", source_id)

    @call
    def enable_platform_artifact_source(self, source_id: str, *, reason: str | None = None) -> Request[SourceView]:
        return post(SourceView, "/v1/artifact-sources/{}/enable", source_id, reason=reason)

    @call
    def disable_platform_artifact_source(self, source_id: str, *, reason: str | None = None) -> Request[SourceView]:
        """Disable an artifact source of the platform: at once, its artifacts are no longer delivered to nodes in any
        tenant, including deliveries that were already issued."""
        return post(SourceView, "/v1/artifact-sources/{}/disable", source_id, reason=reason)

    @call
    def remove_platform_artifact_source(self, source_id: str, *, reason: str | None = None) -> Request[SourceView]:
        return post(SourceView, "/v1/artifact-sources/{}/remove", source_id, reason=reason)

    @call
    def set_platform_artifact_credential(self, source_id: str, *, credential: JsonObject) -> Request[SourceView]:
        return post(SourceView, "/v1/artifact-sources/{}/credential", source_id, credential=credential)

    @call
    def create_tenant_artifact_source(
        self,
        tenant_id: str,
        *,
        name: str,
        kind: str,
        base_url: str,
        port: int | None = None,
        credential: JsonObject | None = None,
    ) -> Request[SourceView]:
        """Create an artifact source of the tenant. Policies refer to the source as `tenant.name`."""
        body: dict[str, object] = {
            "name": name,
            "kind": kind,
            "base_url": base_url,
            "port": port,
            "credential": credential,
        }
        return post(SourceView, "/v1/tenants/{}/artifact-sources", tenant_id, **body)

    @call
    def list_tenant_artifact_sources(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[SourceView]]:
        """List the artifact sources of the tenant and of the platform."""
        return get(Page[SourceView], "/v1/tenants/{}/artifact-sources", tenant_id, limit=limit, cursor=cursor)

    @call
    def get_tenant_artifact_source(self, tenant_id: str, source_id: str) -> Request[SourceView]:
        return get(SourceView, "/v1/tenants/{}/artifact-sources/{}", tenant_id, source_id)

    @call
    def enable_tenant_artifact_source(
        self, tenant_id: str, source_id: str, *, reason: str | None = None
    ) -> Request[SourceView]:
        return post(SourceView, "/v1/tenants/{}/artifact-sources/{}/enable", tenant_id, source_id, reason=reason)

    @call
    def disable_tenant_artifact_source(
        self, tenant_id: str, source_id: str, *, reason: str | None = None
    ) -> Request[SourceView]:
        return post(SourceView, "/v1/tenants/{}/artifact-sources/{}/disable", tenant_id, source_id, reason=reason)

    @call
    def remove_tenant_artifact_source(
        self, tenant_id: str, source_id: str, *, reason: str | None = None
    ) -> Request[SourceView]:
        return post(SourceView, "/v1/tenants/{}/artifact-sources/{}/remove", tenant_id, source_id, reason=reason)

    @call
    def set_tenant_artifact_credential(
        self, tenant_id: str, source_id: str, *, credential: JsonObject
    ) -> Request[SourceView]:
        where = "/v1/tenants/{}/artifact-sources/{}/credential"
        return post(SourceView, where, tenant_id, source_id, credential=credential)

    @call
    def register_platform_artifact(
        self,
        *,
        name: str,
        version: str,
        source_id: str | None = None,
        path: str | None = None,
        repository: str | None = None,
        manifest: str | None = None,
        layer: str | None = None,
        sha256: str | None = None,
        size: int | None = None,
        media_type: str | None = None,
    ) -> Request[ArtifactView]:
        """Register an artifact. Without `source_id` the content with this `sha256` must have been pushed to the core's
        own store. Reading a large artifact takes a while."""
        body: dict[str, object] = {"name": name, "version": version, "source_id": source_id, "media_type": media_type}
        where: dict[str, object] = {"path": path, "repository": repository, "manifest": manifest, "layer": layer}
        return post(ArtifactView, "/v1/artifacts", **body, **where, sha256=sha256, size=size).within(1800)

    @call
    def list_platform_artifacts(
        self,
        *,
        name: str | None = None,
        withdrawn: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[ArtifactView]]:
        return get(Page[ArtifactView], "/v1/artifacts", name=name, withdrawn=withdrawn, limit=limit, cursor=cursor)

    @call
    def get_platform_artifact(self, artifact_id: str) -> Request[ArtifactView]:
        return get(ArtifactView, "/v1/artifacts/{}", artifact_id)

    @call
    def withdraw_platform_artifact(self, artifact_id: str, *, reason: str | None = None) -> Request[ArtifactView]:
        return post(ArtifactView, "/v1/artifacts/{}/withdraw", artifact_id, reason=reason)

    @call
    def register_tenant_artifact(
        self,
        tenant_id: str,
        *,
        name: str,
        version: str,
        source_id: str | None = None,
        path: str | None = None,
        repository: str | None = None,
        manifest: str | None = None,
        layer: str | None = None,
        sha256: str | None = None,
        size: int | None = None,
        media_type: str | None = None,
    ) -> Request[ArtifactView]:
        """Register an artifact of one tenant, with the same arguments as `register_platform_artifact`."""
        body: dict[str, object] = {"name": name, "version": version, "source_id": source_id, "media_type": media_type}
        where: dict[str, object] = {"path": path, "repository": repository, "manifest": manifest, "layer": layer}
        content: dict[str, object] = {"sha256": sha256, "size": size}
        return post(ArtifactView, "/v1/tenants/{}/artifacts", tenant_id, **body, **where, **content).within(1800)

    @call
    def list_tenant_artifacts(
        self,
        tenant_id: str,
        *,
        name: str | None = None,
        withdrawn: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[ArtifactView]]:
        """List the artifacts of the tenant and of the platform."""
        body: dict[str, object] = {"name": name, "withdrawn": withdrawn, "limit": limit, "cursor": cursor}
        return get(Page[ArtifactView], "/v1/tenants/{}/artifacts", tenant_id, **body)

    @call
    def get_tenant_artifact(self, tenant_id: str, artifact_id: str) -> Request[ArtifactView]:
        return get(ArtifactView, "/v1/tenants/{}/artifacts/{}", tenant_id, artifact_id)

    @call
    def withdraw_tenant_artifact(
        self, tenant_id: str, artifact_id: str, *, reason: str | None = None
    ) -> Request[ArtifactView]:
        return post(ArtifactView, "/v1/tenants/{}/artifacts/{}/withdraw", tenant_id, artifact_id, reason=reason)

    @call
    def list_project_artifacts(
        self, project_id: str, *, name: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[ProjectArtifactView]]:
        """List the registered artifacts, each with whether the project may use it."""
        where = "/v1/projects/{}/artifacts"
        return get(Page[ProjectArtifactView], where, project_id, name=name, limit=limit, cursor=cursor)

    @call
    def get_project_artifact(self, project_id: str, artifact_id: str) -> Request[ProjectArtifactView]:
        return get(ProjectArtifactView, "/v1/projects/{}/artifacts/{}", project_id, artifact_id)

    @call
    def resolve_artifact(
        self,
        project_id: str,
        *,
        artifact_id: str | None = None,
        name: str | None = None,
        version: str | None = None,
        app_slug: str | None = None,
    ) -> Request[ProjectArtifactView]:
        """Find an artifact by id, or by name and version. The call fails for the same reasons for which a delivery
        would fail."""
        body: dict[str, object] = {"artifact_id": artifact_id, "name": name, "version": version, "app_slug": app_slug}
        return post(ProjectArtifactView, "/v1/projects/{}/artifacts/resolve", project_id, **body)
