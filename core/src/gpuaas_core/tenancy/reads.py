"""What other rooms may ask tenancy: where a project or tenant is."""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from ..access.evaluate import PLATFORM, Scope
from ..kit.problems import UNSEEN, NotFound
from .tables import projects, tenants

# Asked on every request, so built once.
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


def tenant_scope(tx: Connection, tenant_id: str) -> Scope:
    row = tx.execute(_TENANT, {"tenant": tenant_id}).first()
    if row is None:
        raise NotFound(UNSEEN)
    return Scope((("tenant", row.id), PLATFORM), tenant_id=row.id)
