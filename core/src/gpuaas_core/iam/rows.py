"""Rows of principals, roles, bindings, delegations and break-glass, for other rooms.

Each class has the columns of its table, in their order, unless its docstring states something else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType

from ..authz.ids import PrincipalId, ProjectId, TenantId
from ..kit.json_types import JsonValue

BindingId = NewType("BindingId", str)
RoleId = NewType("RoleId", str)
DelegationId = NewType("DelegationId", str)
BreakGlassId = NewType("BreakGlassId", str)


@dataclass(frozen=True)
class PrincipalRow:
    id: PrincipalId
    kind: str
    name: str
    tenant_id: TenantId | None
    project_id: ProjectId | None
    email: str | None
    password_hash: str | None
    disabled_at: int | None
    deleted_at: int | None
    created_at: int


@dataclass(frozen=True)
class HolderRow:
    """A principal with one of its role bindings, or without a binding if it has none. The columns of
    `principals.HOLDERS`."""

    id: PrincipalId
    kind: str
    name: str
    tenant_id: TenantId | None
    project_id: ProjectId | None
    email: str | None
    disabled_at: int | None
    has_grants: bool | int
    binding_id: BindingId | None
    role: str | None
    scope_kind: str | None
    scope_id: str | None
    custom_role: RoleId | None
    custom_keys: JsonValue


@dataclass(frozen=True)
class CustomRoleRow:
    id: RoleId
    tenant_id: TenantId
    name: str
    permissions: list[str]
    created_by: PrincipalId
    created_at: int


@dataclass(frozen=True)
class BindingRow:
    id: BindingId
    principal_id: PrincipalId
    role: str
    scope_kind: str
    scope_id: str
    tenant_id: TenantId | None
    created_at: int


@dataclass(frozen=True)
class MemberRow(BindingRow):
    """A role binding with the columns of its principal that the list of project members shows."""

    name: str
    kind: str
    email: str | None
    disabled_at: int | None


@dataclass(frozen=True)
class DelegationRow:
    id: DelegationId
    tenant_id: TenantId
    project_id: ProjectId
    grantor_id: PrincipalId
    grantee_id: PrincipalId
    permissions: Sequence[str]
    subject: str | None
    reason: str
    expires_at: int
    revoked_at: int | None
    revoked_by: PrincipalId | None
    created_at: int


@dataclass(frozen=True)
class BreakGlassRow:
    id: BreakGlassId
    tenant_id: TenantId
    mode: str
    reason: str
    ticket: str
    minutes: int
    state: str
    opened_by: PrincipalId
    approved_by: PrincipalId | None
    closed_by: PrincipalId | None
    created_at: int
    active_at: int | None
    expires_at: int
    ended_at: int | None
