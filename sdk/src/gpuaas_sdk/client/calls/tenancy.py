"""Tenants, projects, people, invitations, service accounts. Called by administrators, the lab and bootstrap scripts."""

from __future__ import annotations

from ..call import call
from ..models import (
    InvitationView,
    InvitedView,
    KeyView,
    PrincipalView,
    ProjectView,
    ProviderView,
    ServiceAccountView,
    TenantView,
)
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
    def list_projects(
        self, *, tenant_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[ProjectView]]:
        """List every project that you can see, in all your tenants or in one of them."""
        return get(Page[ProjectView], "/v1/projects", tenant_id=tenant_id, limit=limit, cursor=cursor)

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
    def disable_user(self, tenant_id: str, user_id: str) -> Request[PrincipalView]:
        """Disable a user; their sessions end at once."""
        return post(PrincipalView, "/v1/tenants/{}/users/{}/disable", tenant_id, user_id)

    @call
    def enable_user(self, tenant_id: str, user_id: str) -> Request[PrincipalView]:
        return post(PrincipalView, "/v1/tenants/{}/users/{}/enable", tenant_id, user_id)

    @call
    def invite(
        self, tenant_id: str, *, email: str, name: str, role: str | None = None, project_id: str | None = None
    ) -> Request[InvitedView]:
        """Invite a person. The token is shown only in this answer; the invited person sends the token with a
        password."""
        body = {"email": email, "name": name, "role": role, "project_id": project_id}
        return post(InvitedView, "/v1/tenants/{}/invitations", tenant_id, **body)

    @call
    def list_invitations(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[InvitationView]]:
        return get(Page[InvitationView], "/v1/tenants/{}/invitations", tenant_id, limit=limit, cursor=cursor)

    @call
    def revoke_invitation(self, tenant_id: str, invitation_id: str) -> Request[InvitationView]:
        return post(InvitationView, "/v1/tenants/{}/invitations/{}/revoke", tenant_id, invitation_id)

    @call
    def create_identity_provider(
        self,
        tenant_id: str,
        *,
        name: str,
        issuer: str,
        client_id: str,
        client_secret: str | None = None,
        email_domains: list[str] | None = None,
        scopes: list[str] | None = None,
        default_role: str | None = None,
    ) -> Request[ProviderView]:
        """Create an identity provider. Register the `callback_url` of the answer with the provider."""
        who = {"name": name, "issuer": issuer, "client_id": client_id, "client_secret": client_secret}
        whom = {"email_domains": email_domains, "scopes": scopes, "default_role": default_role}
        return post(ProviderView, "/v1/tenants/{}/identity-providers", tenant_id, **who, **whom)

    @call
    def list_identity_providers(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[ProviderView]]:
        return get(Page[ProviderView], "/v1/tenants/{}/identity-providers", tenant_id, limit=limit, cursor=cursor)

    @call
    def get_identity_provider(self, tenant_id: str, provider_id: str) -> Request[ProviderView]:
        return get(ProviderView, "/v1/tenants/{}/identity-providers/{}", tenant_id, provider_id)

    @call
    def update_identity_provider(
        self,
        tenant_id: str,
        provider_id: str,
        *,
        name: str | None = None,
        client_secret: str | None = None,
        email_domains: list[str] | None = None,
        scopes: list[str] | None = None,
        default_role: str | None = None,
    ) -> Request[ProviderView]:
        """Change an identity provider. A field that is None stays as it is."""
        who = {"name": name, "client_secret": client_secret}
        whom = {"email_domains": email_domains, "scopes": scopes, "default_role": default_role}
        return post(ProviderView, "/v1/tenants/{}/identity-providers/{}/update", tenant_id, provider_id, **who, **whom)

    @call
    def delete_identity_provider(self, tenant_id: str, provider_id: str) -> Request[ProviderView]:
        return post(ProviderView, "/v1/tenants/{}/identity-providers/{}/delete", tenant_id, provider_id)

    @call
    def create_service_account(
        self, project_id: str, *, name: str, public_jwk: dict[str, str], roles: list[str]
    ) -> Request[ServiceAccountView]:
        body = {"name": name, "public_jwk": public_jwk, "roles": roles}
        return post(ServiceAccountView, "/v1/projects/{}/service-accounts", project_id, **body)

    @call
    def list_service_accounts(
        self, project_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[ServiceAccountView]]:
        path = "/v1/projects/{}/service-accounts"
        return get(Page[ServiceAccountView], path, project_id, limit=limit, cursor=cursor)

    @call
    def disable_service_account(self, project_id: str, service_account_id: str) -> Request[ServiceAccountView]:
        path = "/v1/projects/{}/service-accounts/{}/disable"
        return post(ServiceAccountView, path, project_id, service_account_id)

    @call
    def enable_service_account(self, project_id: str, service_account_id: str) -> Request[ServiceAccountView]:
        path = "/v1/projects/{}/service-accounts/{}/enable"
        return post(ServiceAccountView, path, project_id, service_account_id)

    @call
    def delete_service_account(self, project_id: str, service_account_id: str) -> Request[ServiceAccountView]:
        path = "/v1/projects/{}/service-accounts/{}/delete"
        return post(ServiceAccountView, path, project_id, service_account_id)

    @call
    def list_keys(self, project_id: str, service_account_id: str) -> Request[Page[KeyView]]:
        """List all keys of the account, including retired ones, with their last use."""
        path = "/v1/projects/{}/service-accounts/{}/keys"
        return get(Page[KeyView], path, project_id, service_account_id)

    @call
    def add_key(self, project_id: str, service_account_id: str, *, public_jwk: dict[str, str]) -> Request[KeyView]:
        """Add a key to the account beside the current keys. Retire the old key when the new key is in use."""
        path = "/v1/projects/{}/service-accounts/{}/keys"
        return post(KeyView, path, project_id, service_account_id, public_jwk=public_jwk)

    @call
    def retire_key(self, project_id: str, service_account_id: str, key_id: str) -> Request[KeyView]:
        """Retire a key of the account: it can no longer sign in, and its tokens stop working."""
        path = "/v1/projects/{}/service-accounts/{}/keys/{}/retire"
        return post(KeyView, path, project_id, service_account_id, key_id)
