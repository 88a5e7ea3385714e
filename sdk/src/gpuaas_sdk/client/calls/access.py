"""Permissions: role bindings, roles, delegations, deny rules, members. Called by administrators and `gpuaas iam`."""

from __future__ import annotations

from ..call import call
from ..models import BindingView, BreakGlassView, DelegationView, DenyView, ExplainView, ProjectMemberView, RoleView
from ..request import Page, Request, get, post


class AccessCalls:
    @call
    def create_role_binding(
        self, tenant_id: str, *, principal_id: str, role: str, project_id: str | None = None
    ) -> Request[BindingView]:
        """Bind a role to a principal. Without a project the binding applies to the whole tenant."""
        body = {"principal_id": principal_id, "role": role, "project_id": project_id}
        return post(BindingView, "/v1/tenants/{}/role-bindings", tenant_id, **body)

    @call
    def list_role_bindings(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[BindingView]]:
        return get(Page[BindingView], "/v1/tenants/{}/role-bindings", tenant_id, limit=limit, cursor=cursor)

    @call
    def remove_role_binding(self, tenant_id: str, binding_id: str) -> Request[BindingView]:
        return post(BindingView, "/v1/tenants/{}/role-bindings/{}/remove", tenant_id, binding_id)

    @call
    def list_project_members(self, project_id: str) -> Request[Page[ProjectMemberView]]:
        """List the principals with a role in the project, and whether the role comes from the tenant."""
        return get(Page[ProjectMemberView], "/v1/projects/{}/members", project_id)

    @call
    def explain(self, project_id: str, *, permission: str, principal_id: str) -> Request[ExplainView]:
        """Explain why a principal may or may not do something in a project."""
        path = "/v1/projects/{}/explain"
        return get(ExplainView, path, project_id, permission=permission, principal_id=principal_id)

    @call
    def explain_in_tenant(self, tenant_id: str, *, permission: str, principal_id: str) -> Request[ExplainView]:
        path = "/v1/tenants/{}/explain"
        return get(ExplainView, path, tenant_id, permission=permission, principal_id=principal_id)

    @call
    def create_role(self, tenant_id: str, *, name: str, permissions: list[str]) -> Request[RoleView]:
        """Create a role of the tenant. It can contain only permissions that the caller has."""
        return post(RoleView, "/v1/tenants/{}/roles", tenant_id, name=name, permissions=permissions)

    @call
    def list_roles(self, tenant_id: str) -> Request[Page[RoleView]]:
        return get(Page[RoleView], "/v1/tenants/{}/roles", tenant_id)

    @call
    def delete_role(self, tenant_id: str, role: str) -> Request[RoleView]:
        return post(RoleView, "/v1/tenants/{}/roles/{}/delete", tenant_id, role)

    @call
    def create_deny_rule(
        self, tenant_id: str, *, permissions: list[str], reason: str, project_id: str | None = None
    ) -> Request[DenyView]:
        """Deny permissions to every principal of the tenant or of one project. No role overrides the rule."""
        body = {"permissions": permissions, "reason": reason, "project_id": project_id}
        return post(DenyView, "/v1/tenants/{}/deny-rules", tenant_id, **body)

    @call
    def list_deny_rules(self, tenant_id: str) -> Request[Page[DenyView]]:
        return get(Page[DenyView], "/v1/tenants/{}/deny-rules", tenant_id)

    @call
    def remove_deny_rule(self, tenant_id: str, rule_id: str) -> Request[DenyView]:
        return post(DenyView, "/v1/tenants/{}/deny-rules/{}/remove", tenant_id, rule_id)

    @call
    def create_delegation(
        self,
        project_id: str,
        *,
        grantee_id: str,
        permissions: list[str],
        reason: str,
        expires_in_s: int,
        subject: str | None = None,
    ) -> Request[DelegationView]:
        """Delegate permissions that you have in the project to a service account. The audit trail records that the
        account acts for you."""
        body = {"grantee_id": grantee_id, "permissions": permissions, "reason": reason, "subject": subject}
        return post(DelegationView, "/v1/projects/{}/delegations", project_id, expires_in_s=expires_in_s, **body)

    @call
    def list_delegations(
        self, project_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[DelegationView]]:
        """List current and past delegations of the project; `effective` has the permissions that still apply."""
        return get(Page[DelegationView], "/v1/projects/{}/delegations", project_id, limit=limit, cursor=cursor)

    @call
    def revoke_delegation(self, project_id: str, delegation_id: str) -> Request[DelegationView]:
        return post(DelegationView, "/v1/projects/{}/delegations/{}/revoke", project_id, delegation_id)

    @call
    def open_break_glass(
        self, *, tenant_id: str, mode: str, reason: str, ticket: str, minutes: int
    ) -> Request[BreakGlassView]:
        """Request break-glass access to a tenant: `look` starts at once, `operate` after another administrator has
        approved it. The tenant is notified."""
        body = {"tenant_id": tenant_id, "mode": mode, "reason": reason, "ticket": ticket, "minutes": minutes}
        return post(BreakGlassView, "/v1/platform/break-glass", **body)

    @call
    def list_break_glass(self, *, limit: int | None = None, cursor: str | None = None) -> Request[Page[BreakGlassView]]:
        return get(Page[BreakGlassView], "/v1/platform/break-glass", limit=limit, cursor=cursor)

    @call
    def approve_break_glass(self, break_glass_id: str) -> Request[BreakGlassView]:
        return post(BreakGlassView, "/v1/platform/break-glass/{}/approve", break_glass_id)

    @call
    def close_break_glass(self, break_glass_id: str) -> Request[BreakGlassView]:
        return post(BreakGlassView, "/v1/platform/break-glass/{}/close", break_glass_id)

    @call
    def list_tenant_break_glass(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[BreakGlassView]]:
        """List which platform administrators had access to the tenant, when and why."""
        return get(Page[BreakGlassView], "/v1/tenants/{}/break-glass", tenant_id, limit=limit, cursor=cursor)

    @call
    def create_platform_deny_rule(self, *, permissions: list[str], reason: str) -> Request[DenyView]:
        """Deny permissions to every principal on the platform."""
        return post(DenyView, "/v1/deny-rules", permissions=permissions, reason=reason)

    @call
    def list_platform_deny_rules(self) -> Request[Page[DenyView]]:
        return get(Page[DenyView], "/v1/deny-rules")

    @call
    def remove_platform_deny_rule(self, rule_id: str) -> Request[DenyView]:
        return post(DenyView, "/v1/deny-rules/{}/remove", rule_id)
