"""What other rooms may ask tenancy: where a project or tenant is, and which key a service account uses."""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select

from ..access.evaluate import PLATFORM, Scope
from ..kit.problems import UNSEEN, NotFound
from .tables import principal_keys, projects, tenants

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


def tenant_slug(tx: Connection, tenant_id: str) -> str:
    return tx.execute(select(tenants.c.slug).where(tenants.c.id == tenant_id)).scalar_one()


def key_in_use(tx: Connection, principal_id: str) -> dict[str, Any] | None:
    """The public key a service account signed in with last, of those that are not retired."""
    k = principal_keys.c
    mine = select(k.public_jwk).where(k.principal_id == principal_id, k.retired_at.is_(None))
    newest = mine.order_by(func.coalesce(k.last_used_at, 0).desc(), k.id.desc())
    return tx.execute(newest.limit(1)).scalar()
