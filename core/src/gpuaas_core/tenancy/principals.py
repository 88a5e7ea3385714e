"""Who somebody is to the evaluator: a principal with the roles bound to it, and with what is lent to it for a time."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, exists, or_, select

from ..access.evaluate import BREAK_GLASS, DELEGATION, Binding, Grant, Principal
from ..access.permissions import BREAK_GLASS as OPENABLE
from ..access.permissions import PERMISSIONS, UNLENDABLE
from .tables import break_glass, custom_roles, delegations, principals, role_bindings

# Asked together with the session, so that the many callers to whom nothing is lent cost no question more.
HAS_GRANTS = or_(
    exists().where(delegations.c.grantee_id == principals.c.id, delegations.c.revoked_at.is_(None)),
    exists().where(break_glass.c.opened_by == principals.c.id, break_glass.c.state == "active"),
).label("has_grants")

_HELD_BY = (
    select(role_bindings, custom_roles.c.id.label("own_role"), custom_roles.c.permissions.label("own_keys"))
    .outerjoin(
        custom_roles,
        (custom_roles.c.tenant_id == role_bindings.c.tenant_id) & (custom_roles.c.name == role_bindings.c.role),
    )
    .where(role_bindings.c.principal_id == bindparam("principal"))
    .order_by(role_bindings.c.id)
)


def principal_of(tx: Connection, row: Row[Any], key_id: str | None = None) -> Principal:
    """With what it holds by itself; that is all it can lend, and all it can give to others."""
    held = tx.execute(_HELD_BY, {"principal": row.id})
    bindings = tuple(Binding(b.role, (b.scope_kind, b.scope_id), b.id, _own_keys(b)) for b in held)
    return Principal(row.id, row.kind, row.name, row.tenant_id, row.project_id, row.email, bindings, key_id=key_id)


def with_grants(tx: Connection, principal: Principal, now: int) -> Principal:
    """And with what is lent to it at this moment."""
    return replace(principal, grants=(*_delegated(tx, principal, now), *_opened(tx, principal, now)))


def _delegated(tx: Connection, grantee: Principal, now: int) -> list[Grant]:
    live = (delegations.c.revoked_at.is_(None)) & (delegations.c.expires_at > now)
    query = select(delegations).where(delegations.c.grantee_id == grantee.id, live).order_by(delegations.c.id)
    found = [(row, lender_of(tx, row)) for row in tx.execute(query).all()]
    return [delegated(row, lender) for row, lender in found if lender]


def lender_of(tx: Connection, row: Row[Any]) -> Principal | None:
    """Nobody, once they are disabled or gone: then nothing is lent."""
    lender = tx.execute(select(principals).where(principals.c.id == row.grantor_id)).one()
    return None if lender.disabled_at is not None or lender.deleted_at is not None else principal_of(tx, lender)


def delegated(row: Row[Any], lender: Principal) -> Grant:
    keys = frozenset(key for key in row.permissions if key in PERMISSIONS) - UNLENDABLE
    return Grant(row.id, DELEGATION, ("project", row.project_id), keys, lender)


def _opened(tx: Connection, principal: Principal, now: int) -> list[Grant]:
    live = (break_glass.c.state == "active") & (break_glass.c.expires_at > now)
    rows = tx.execute(select(break_glass).where(break_glass.c.opened_by == principal.id, live))
    return [
        Grant(row.id, BREAK_GLASS, ("tenant", row.tenant_id), OPENABLE.get(row.mode, frozenset()), principal)
        for row in rows
    ]


def _own_keys(row: Row[Any]) -> frozenset[str] | None:
    """The keys of a tenant's own role; one that cannot be read gives nothing."""
    if row.own_role is None:
        return None
    return (
        frozenset(key for key in row.own_keys if key in PERMISSIONS) if isinstance(row.own_keys, list) else frozenset()
    )
