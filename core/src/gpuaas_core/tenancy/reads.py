"""Tenants and projects as other rooms read them: their scopes, and queries that others join with."""

from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, select

from ..authz.evaluate import PLATFORM, Scope
from ..kit.problems import UNSEEN, NotFound
from .tables import projects, tenants

# Built once: these queries run on every request.
_PROJECT = select(projects).where(projects.c.id == bindparam("project"))
_TENANT = select(tenants.c.id).where(tenants.c.id == bindparam("tenant"))


def project_row(tx: Connection, project_id: str) -> Row[Any]:
    row = tx.execute(_PROJECT, {"project": project_id}).first()
    if row is None:
        raise NotFound(UNSEEN)
    return row


def project_scope(tx: Connection, project_id: str) -> Scope:
    row = project_row(tx, project_id)
    chain = (("project", row.id), ("tenant", row.tenant_id), PLATFORM)
    return Scope(chain, tenant_id=row.tenant_id, project_id=row.id)


def scope_in_tenant(tx: Connection, tenant_id: str | None, project_id: str) -> Scope:
    """The scope of a project that a request names in its body: it must belong to the tenant of the request."""
    scope = project_scope(tx, project_id)
    if scope.tenant_id != tenant_id:
        raise NotFound("There is no such project in this tenant.")
    return scope


def tenant_scope(tx: Connection, tenant_id: str) -> Scope:
    row = tx.execute(_TENANT, {"tenant": tenant_id}).first()
    if row is None:
        raise NotFound(UNSEEN)
    return Scope((("tenant", row.id), PLATFORM), tenant_id=row.id)


def tenant_slug(tx: Connection, tenant_id: str) -> str:
    return tx.execute(select(tenants.c.slug).where(tenants.c.id == tenant_id)).scalar_one()


def ids_of_tenants_named(slug: str) -> Select[Any]:
    """One id or none; a subquery, so that an unknown tenant costs the caller's query the same time."""
    return select(tenants.c.id).where(tenants.c.slug == slug)


def ids_of_projects_in(tenant_id: str | None) -> Select[Any]:
    return select(projects.c.id).where(projects.c.tenant_id == tenant_id)
