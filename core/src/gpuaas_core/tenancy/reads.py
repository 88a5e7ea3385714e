"""Queries for tenants and projects, for other rooms: their scopes, and subqueries to join with.

The scope of a project or tenant is part of every request, so it is read together with the deny rules that apply there.
"""

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, exists, select

from ..authz.evaluate import PLATFORM, Place, Scope
from ..authz.ids import ProjectId, TenantId
from ..authz.rules import ScopeAndRules, rules_in, with_rules_at
from ..kit.problems import UNSEEN, NotFound
from ..kit.rows import Query
from .rows import ProjectRow, TenantRow
from .tables import projects, tenants

TENANTS = Query(select(tenants), TenantRow)
PROJECTS = Query(select(projects), ProjectRow)
_TENANT = TENANTS.where(tenants.c.id == bindparam("tenant"))
_PROJECT = PROJECTS.where(projects.c.id == bindparam("project"))
_SLUG = select(tenants.c.slug).where(tenants.c.id == bindparam("tenant"))
_RULED_PROJECT = with_rules_at(
    projects, projects.c.tenant_id, ("project", projects.c.id), ("tenant", projects.c.tenant_id)
)
_RULED_TENANT = with_rules_at(tenants, tenants.c.id, ("tenant", tenants.c.id))


def project_row(tx: Connection, project_id: str) -> ProjectRow:
    row = _PROJECT.first(tx, project=project_id)
    if row is None:
        raise NotFound(UNSEEN)
    return row


def tenant_row(tx: Connection, tenant_id: str) -> TenantRow:
    row = _TENANT.first(tx, tenant=tenant_id)
    if row is None:
        raise NotFound(UNSEEN)
    return row


def project_scope(tx: Connection, project_id: str) -> Scope:
    row = project_row(tx, project_id)
    return _scope_of_project(row.id, row.tenant_id)


def tenant_scope(tx: Connection, tenant_id: str) -> Scope:
    return _scope_of_tenant(tenant_row(tx, tenant_id).id)


def project_with_rules(tx: Connection, project_id: str) -> ScopeAndRules:
    rows = _RULED_PROJECT.all(tx, place=project_id)
    if not rows:
        raise NotFound(UNSEEN)
    return _scope_of_project(ProjectId(project_id), rows[0].tenant_id), rules_in(rows)


def tenant_with_rules(tx: Connection, tenant_id: str) -> ScopeAndRules:
    rows = _RULED_TENANT.all(tx, place=tenant_id)
    if not rows:
        raise NotFound(UNSEEN)
    return _scope_of_tenant(rows[0].tenant_id), rules_in(rows)


def scope_in_tenant(tx: Connection, tenant_id: str | None, project_id: str) -> Scope:
    """Return the scope of a project that a request body names. Raises 404 unless the project belongs to the tenant of
    the request."""
    scope = project_scope(tx, project_id)
    if scope.tenant_id != tenant_id:
        raise NotFound("There is no such project in this tenant.")
    return scope


def tenant_slug(tx: Connection, tenant_id: str) -> str:
    return tx.execute(_SLUG, {"tenant": tenant_id}).scalar_one()


def ids_of_tenants_named(slug: ColumnElement[str]) -> Select[str]:
    """Build the SQL subquery for the id of the tenant with this slug. A query that uses it takes the same time for an
    unknown slug."""
    return select(tenants.c.id).where(tenants.c.slug == slug)


def ids_of_projects_in(tenant_id: ColumnElement[str]) -> Select[str]:
    return select(projects.c.id).where(projects.c.tenant_id == tenant_id)


def belongs_to(project_id: ColumnElement[str], tenant_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Build the SQL condition that the project belongs to the tenant."""
    return exists().where(and_(projects.c.id == project_id, projects.c.tenant_id == tenant_id))


def _scope_of_project(project_id: ProjectId, tenant_id: TenantId) -> Scope:
    chain: tuple[Place, ...] = (("project", project_id), ("tenant", tenant_id), PLATFORM)
    return Scope(chain, tenant_id=tenant_id, project_id=project_id)


def _scope_of_tenant(tenant_id: TenantId) -> Scope:
    return Scope((("tenant", tenant_id), PLATFORM), tenant_id=tenant_id)
