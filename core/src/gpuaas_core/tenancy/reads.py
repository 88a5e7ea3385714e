"""What other rooms may ask tenancy: where a project or tenant is."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..access.evaluate import PLATFORM, Scope
from ..kit.problems import UNSEEN, NotFound
from .tables import projects, tenants


def project_row(tx: Connection, project_id: str) -> Row[Any]:
    row = tx.execute(select(projects).where(projects.c.id == project_id)).first()
    if row is None:
        raise NotFound(UNSEEN)
    return row


def project_scope(tx: Connection, project_id: str) -> Scope:
    row = project_row(tx, project_id)
    chain = (("project", row.id), ("tenant", row.tenant_id), PLATFORM)
    return Scope(chain, tenant_id=row.tenant_id, project_id=row.id)


def tenant_scope(tx: Connection, tenant_id: str) -> Scope:
    row = tx.execute(select(tenants.c.id).where(tenants.c.id == tenant_id)).first()
    if row is None:
        raise NotFound(UNSEEN)
    return Scope((("tenant", row.id), PLATFORM), tenant_id=row.id)
