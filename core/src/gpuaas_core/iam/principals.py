"""Who somebody is to the evaluator: a principal with the roles bound to it, and with what is lent to it for a time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, exists, or_, select

from ..access.evaluate import BREAK_GLASS, DELEGATION, Binding, Grant, Principal
from ..access.permissions import BREAK_GLASS as OPENABLE
from ..access.permissions import PERMISSIONS, UNLENDABLE
from ..tenancy.tables import break_glass, custom_roles, delegations, principals, role_bindings

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
    .where(role_bindings.c.principal_id.in_(bindparam("principals", expanding=True)))
    .order_by(role_bindings.c.id)
)


def principal_of(tx: Connection, row: Row[Any], key_id: str | None = None) -> Principal:
    """With what it holds by itself; that is all it can lend, and all it can give to others."""
    return replace(_principals_of(tx, [row])[row.id], key_id=key_id)


def _principals_of(tx: Connection, rows: Sequence[Row[Any]]) -> dict[str, Principal]:
    """All of them at once: one question, however many lend something to one caller."""
    held: dict[str, list[Binding]] = {row.id: [] for row in rows}
    for b in tx.execute(_HELD_BY, {"principals": [*held]}):
        held[b.principal_id].append(Binding(b.role, (b.scope_kind, b.scope_id), b.id, _own_keys(b)))
    return {
        row.id: Principal(row.id, row.kind, row.name, row.tenant_id, row.project_id, row.email, tuple(held[row.id]))
        for row in rows
    }


def with_grants(tx: Connection, principal: Principal, now: int, project_id: str | None = None) -> Principal:
    """And with what is lent to it at this moment; of what is lent in projects, only that of `project_id` if given."""
    return replace(principal, grants=(*_delegated(tx, principal, now, project_id), *_opened(tx, principal, now)))


def _delegated(tx: Connection, grantee: Principal, now: int, project_id: str | None) -> list[Grant]:
    live = (delegations.c.revoked_at.is_(None)) & (delegations.c.expires_at > now)
    query = select(delegations).where(delegations.c.grantee_id == grantee.id, live).order_by(delegations.c.id)
    if project_id is not None:
        query = query.where(delegations.c.project_id == project_id)
    rows = tx.execute(query).all()
    lenders = _lenders(tx, {row.grantor_id for row in rows})
    return [delegated(row, lenders[row.grantor_id]) for row in rows if row.grantor_id in lenders]


def lender_of(tx: Connection, row: Row[Any]) -> Principal | None:
    """Nobody, once they are disabled or gone: then nothing is lent."""
    return _lenders(tx, {row.grantor_id}).get(row.grantor_id)


def _lenders(tx: Connection, ids: set[str]) -> dict[str, Principal]:
    able = principals.c.disabled_at.is_(None) & principals.c.deleted_at.is_(None)
    rows = tx.execute(select(principals).where(principals.c.id.in_(sorted(ids)), able)).all()
    return _principals_of(tx, rows) if rows else {}


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
