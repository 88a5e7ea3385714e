"""Policies: which apps, regions and SKUs may be used where. Called by administrators to set them, and by callers to
read what they allow.

Rules are per field (`regions`, `skus`, `apps`, …) `{"only": […]}`, `{"deny": […]}` or both. Policies only narrow.
"""

from __future__ import annotations

from ..call import call
from ..models import EffectiveView, PolicyView, RulingView
from ..request import JsonObject, Page, Request, delete, get, put


class PolicyCalls:
    @call
    def set_platform_policy(
        self,
        name: str,
        *,
        rules: JsonObject,
        reason: str | None = None,
        enables: JsonObject | None = None,
        etag: str | None = None,
    ) -> Request[PolicyView]:
        """Create the platform's policy, or replace the version identified by `etag`. `enables={"platform_managed":
        [apps]}` lets the platform operate these apps itself."""
        body = {"rules": rules, "reason": reason, "enables": enables}
        return put(PolicyView, "/v1/policies/{}", name, etag=etag, **body)

    @call
    def list_platform_policies(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[PolicyView]]:
        return get(Page[PolicyView], "/v1/policies", limit=limit, cursor=cursor)

    @call
    def get_platform_policy(self, name: str) -> Request[PolicyView]:
        return get(PolicyView, "/v1/policies/{}", name)

    @call
    def remove_platform_policy(self, name: str, *, etag: str) -> Request[PolicyView]:
        return delete(PolicyView, "/v1/policies/{}", name, etag=etag)

    @call
    def set_tenant_policy(
        self, tenant_id: str, name: str, *, rules: JsonObject, reason: str | None = None, etag: str | None = None
    ) -> Request[PolicyView]:
        where = "/v1/tenants/{}/policies/{}"
        return put(PolicyView, where, tenant_id, name, etag=etag, rules=rules, reason=reason)

    @call
    def list_tenant_policies(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[PolicyView]]:
        return get(Page[PolicyView], "/v1/tenants/{}/policies", tenant_id, limit=limit, cursor=cursor)

    @call
    def get_tenant_policy(self, tenant_id: str, name: str) -> Request[PolicyView]:
        return get(PolicyView, "/v1/tenants/{}/policies/{}", tenant_id, name)

    @call
    def remove_tenant_policy(self, tenant_id: str, name: str, *, etag: str) -> Request[PolicyView]:
        return delete(PolicyView, "/v1/tenants/{}/policies/{}", tenant_id, name, etag=etag)

    @call
    def set_project_policy(
        self, project_id: str, name: str, *, rules: JsonObject, reason: str | None = None, etag: str | None = None
    ) -> Request[PolicyView]:
        where = "/v1/projects/{}/policies/{}"
        return put(PolicyView, where, project_id, name, etag=etag, rules=rules, reason=reason)

    @call
    def list_project_policies(
        self, project_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[PolicyView]]:
        return get(Page[PolicyView], "/v1/projects/{}/policies", project_id, limit=limit, cursor=cursor)

    @call
    def get_project_policy(self, project_id: str, name: str) -> Request[PolicyView]:
        return get(PolicyView, "/v1/projects/{}/policies/{}", project_id, name)

    @call
    def remove_project_policy(self, project_id: str, name: str, *, etag: str) -> Request[PolicyView]:
        return delete(PolicyView, "/v1/projects/{}/policies/{}", project_id, name, etag=etag)

    @call
    def get_effective_policy(self, project_id: str, *, app_slug: str | None = None) -> Request[EffectiveView]:
        """Get what the policies of all levels allow together, and which level narrowed each value."""
        return get(EffectiveView, "/v1/projects/{}/policy/effective", project_id, app_slug=app_slug)

    @call
    def explain_policy(
        self, project_id: str, *, field: str, value: str, app_slug: str | None = None
    ) -> Request[RulingView]:
        where = "/v1/projects/{}/policy/explain"
        return get(RulingView, where, project_id, field=field, value=value, app_slug=app_slug)
