"""SQL conditions for the scopes in which a caller may have a permission, for queries over all scopes of the caller.

The condition is necessary, not sufficient: for each row found, the evaluator still checks deny rules and whether the
grantor of a delegation still has the permission.
"""

from sqlalchemy import ColumnElement, and_, exists, false, or_, true

from ..authz.evaluate import Principal
from .tables import break_glass, delegations, principals


def covered(
    principal: Principal,
    key: str,
    now: int,
    *,
    kind: ColumnElement[str],
    place: ColumnElement[str],
    tenant: ColumnElement[str],
) -> ColumnElement[bool]:
    """Build the SQL condition that the caller may have the permission in the scope of a row.

    `kind` and `place` are the columns with the scope of the row; `tenant` is the column with the tenant of the row.
    """
    bound: list[ColumnElement[bool]] = []
    for binding in principal.bindings:
        if key in binding.keys:
            bound.append(_within(binding.place, kind, place, tenant))
    own = or_(false(), *bound)
    if principal.project_id:  # a service account acts in its own project, and where permissions are lent to it
        own = and_(own, kind == "project", place == principal.project_id)
    if not principal.borrows:
        return own
    d, b = delegations.c, break_glass.c
    lent = exists().where(
        d.grantee_id == principal.id, d.project_id == place, d.revoked_at.is_(None), d.expires_at > now
    )
    opened = exists().where(b.opened_by == principal.id, b.state == "active", b.expires_at > now, b.tenant_id == tenant)
    return or_(own, and_(kind == "project", lent), opened)


def _within(
    where: tuple[str, str], kind: ColumnElement[str], place: ColumnElement[str], tenant: ColumnElement[str]
) -> ColumnElement[bool]:
    if where[0] == "platform":
        return true()
    return tenant == where[1] if where[0] == "tenant" else and_(kind == where[0], place == where[1])


def enabled(account_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Build the SQL condition that the account exists and is not disabled."""
    return and_(principals.c.id == account_id, principals.c.disabled_at.is_(None))
