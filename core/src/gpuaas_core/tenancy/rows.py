"""Rows of tenants and projects, for other rooms. Each class has the columns of its table, in their order."""

from dataclasses import dataclass

from ..authz.ids import ProjectId, TenantId


@dataclass(frozen=True)
class TenantRow:
    id: TenantId
    slug: str
    name: str
    created_at: int


@dataclass(frozen=True)
class ProjectRow:
    id: ProjectId
    tenant_id: TenantId
    slug: str
    name: str
    created_at: int
