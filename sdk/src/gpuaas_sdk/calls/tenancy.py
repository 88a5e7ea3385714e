"""Tenants, projects, people, roles, service accounts. Called by administrators, the lab and bootstrap scripts."""

from __future__ import annotations

from ..call import call
from ..models import BindingView, PrincipalView, ProjectView, TenantView
from ..request import Page, Request, get, post


class TenancyCalls:
    @call
    def create_tenant(self, *, slug: str, name: str) -> Request[TenantView]:
        return post(TenantView, "/v1/tenants", slug=slug, name=name)

    @call
    def list_tenants(self, *, limit: int | None = None, cursor: str | None = None) -> Request[Page[TenantView]]:
        return get(Page[TenantView], "/v1/tenants", limit=limit, cursor=cursor)

    @call
    def get_tenant(self, tenant_id: str) -> Request[TenantView]:
        return get(TenantView, "/v1/tenants/{}", tenant_id)

    @call
    def create_project(self, tenant_id: str, *, slug: str, name: str) -> Request[ProjectView]:
        return post(ProjectView, "/v1/tenants/{}/projects", tenant_id, slug=slug, name=name)

    @call
    def list_projects(self, *, limit: int | None = None, cursor: str | None = None) -> Request[Page[ProjectView]]:
        """Every project you can see, over all your tenants."""
        return get(Page[ProjectView], "/v1/projects", limit=limit, cursor=cursor)

    @call
    def get_project(self, project_id: str) -> Request[ProjectView]:
        return get(ProjectView, "/v1/projects/{}", project_id)

    @call
    def create_user(self, tenant_id: str, *, email: str, name: str, password: str) -> Request[PrincipalView]:
        return post(PrincipalView, "/v1/tenants/{}/users", tenant_id, email=email, name=name, password=password)

    @call
    def list_users(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[PrincipalView]]:
        return get(Page[PrincipalView], "/v1/tenants/{}/users", tenant_id, limit=limit, cursor=cursor)

    @call
    def create_role_binding(
        self, tenant_id: str, *, principal_id: str, role: str, project_id: str | None = None
    ) -> Request[BindingView]:
        """Without a project the role holds in the whole tenant."""
        body = {"principal_id": principal_id, "role": role, "project_id": project_id}
        return post(BindingView, "/v1/tenants/{}/role-bindings", tenant_id, **body)

    @call
    def list_role_bindings(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[BindingView]]:
        return get(Page[BindingView], "/v1/tenants/{}/role-bindings", tenant_id, limit=limit, cursor=cursor)

    @call
    def create_service_account(
        self, project_id: str, *, name: str, public_jwk: dict[str, str], roles: list[str]
    ) -> Request[PrincipalView]:
        body = {"name": name, "public_jwk": public_jwk, "roles": roles}
        return post(PrincipalView, "/v1/projects/{}/service-accounts", project_id, **body)

    @call
    def list_service_accounts(
        self, project_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[PrincipalView]]:
        return get(Page[PrincipalView], "/v1/projects/{}/service-accounts", project_id, limit=limit, cursor=cursor)

    @call
    def disable_service_account(self, project_id: str, service_account_id: str) -> Request[PrincipalView]:
        path = "/v1/projects/{}/service-accounts/{}/disable"
        return post(PrincipalView, path, project_id, service_account_id)
