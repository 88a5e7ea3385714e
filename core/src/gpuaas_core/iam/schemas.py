"""Requests and responses of IAM."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..kit.wire import Id, Input, Moment, Slug, View, Whole, describe_pattern


class CreateBinding(Input):
    principal_id: Id
    role: Id
    project_id: Id | None = None


class BindingView(View):
    id: str
    principal_id: str
    role: str
    scope_kind: str
    scope_id: str
    created_at: Moment


_WORD = describe_pattern(r"^[A-Za-z0-9._:/#-]{1,80}$", "1 to 80 letters, digits and . _ : / # -")


Word = Annotated[str, StringConstraints(pattern=_WORD)]


Reason = Annotated[str, StringConstraints(min_length=3, max_length=400, pattern=r"^[^\x00-\x1f\x7f]+$")]


PermissionKey = Annotated[str, StringConstraints(min_length=3, max_length=80)]


class CreateRole(Input):
    name: Slug
    permissions: list[PermissionKey] = Field(min_length=1, max_length=100)


class RoleView(View):
    name: str
    permissions: list[str]
    bindable_at: list[str]
    system: bool = Field(description="a role of the platform; otherwise a custom role of the tenant")


class CreateDeny(Input):
    permissions: list[PermissionKey] = Field(
        min_length=1, max_length=100, description="keys, or families like `apps.*`"
    )
    reason: Reason


class CreateTenantDeny(CreateDeny):
    project_id: Annotated[str, StringConstraints(max_length=40)] | None = None


class DenyView(View):
    id: str
    scope_kind: str
    scope_id: str
    permissions: list[str]
    reason: str
    created_by: str
    created_at: Moment


class CreateDelegation(Input):
    grantee_id: Id = Field(description="a service account of this or another project of the tenant")
    permissions: list[PermissionKey] = Field(min_length=1, max_length=100, description="permissions you have here")
    subject: Word | None = Field(default=None, description="what it is for, such as a runtime's id; informational")
    reason: Reason
    expires_in_s: Whole = Field(ge=60, le=90 * 24 * 3600, description="at most 90 days")


class DelegationView(View):
    id: str
    project_id: str
    grantor_id: str
    grantee_id: str
    permissions: list[str]
    effective: list[str] = Field(description="the permissions it grants now, without those the grantor has lost")
    subject: str | None = None
    reason: str
    state: str = Field(description="active, revoked or expired")
    expires_at: Moment
    revoked_at: Moment | None = None
    revoked_by: str | None = None
    created_at: Moment


class OpenBreakGlass(Input):
    tenant_id: Id
    mode: Literal["look", "operate"] = Field(
        description="what each grants: `break_glass` in contracts/permissions.json"
    )
    reason: Reason = Field(description="the tenant reads it")
    ticket: Word
    minutes: Whole = Field(ge=1, le=60)


class BreakGlassView(View):
    id: str
    tenant_id: str
    mode: str
    state: str = Field(description="awaiting_approval, active, closed or expired")
    reason: str
    ticket: str
    minutes: int
    opened_by: str
    approved_by: str | None = None
    closed_by: str | None = None
    created_at: Moment
    active_at: Moment | None = None
    expires_at: Moment
    ended_at: Moment | None = None


class MatchedRule(View):
    kind: str = Field(description="binding, delegation, break_glass or deny")
    id: str
    role: str | None = None
    scope_kind: str
    scope_id: str
    reason: str = ""


class ExplainView(View):
    principal_id: str
    principal_name: str
    permission: str
    scope_kind: str
    scope_id: str
    allowed: bool
    visible: bool = Field(description="if not allowed: whether requests get 403 (visible) or 404 (not visible)")
    decided_by: str = Field(description="containment, deny, binding, delegation, break_glass, everybody, default")
    reason: str
    matched: list[MatchedRule]
    roles_that_hold_it: list[str] = Field(description="roles that can be bound here and contain the permission")


class PermissionsView(View):
    scope_kind: str
    scope_id: str
    permissions: list[str] = Field(description="the permissions of the caller there, sorted")


class ProjectMemberView(View):
    principal_id: str
    kind: str
    name: str
    email: str | None = None
    disabled: bool
    role: str
    scope_kind: str = Field(description="where the role is bound: at this project or at its tenant")
    scope_id: str
    binding_id: str
