"""Principals as the evaluator needs them: with the roles bound to them and the permissions lent to them.

Called when a request is authenticated, and wherever one principal acts in the name of another.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, exists, or_, select

from ..authz.evaluate import BREAK_GLASS, DELEGATION, Binding, Grant, Principal
from ..authz.permissions import BREAK_GLASS as OPENABLE
from ..authz.permissions import PERMISSIONS, UNLENDABLE
from .tables import break_glass, custom_roles, delegations, principals, role_bindings

# Read together with the session: callers without grants, which are most, cost no further query.
_HAS_GRANTS = or_(
    exists().where(delegations.c.grantee_id == principals.c.id, delegations.c.revoked_at.is_(None)),
    exists().where(break_glass.c.opened_by == principals.c.id, break_glass.c.state == "active"),
).label("has_grants")
WITH_GRANT_FLAG = select(principals, _HAS_GRANTS)

_HELD_BY = (
    select(role_bindings, custom_roles.c.id.label("custom_role"), custom_roles.c.permissions.label("custom_keys"))
    .outerjoin(
        custom_roles,
        (custom_roles.c.tenant_id == role_bindings.c.tenant_id) & (custom_roles.c.name == role_bindings.c.role),
    )
    .where(role_bindings.c.principal_id.in_(bindparam("principals", expanding=True)))
    .order_by(role_bindings.c.id)
)


def principal_of(tx: Connection, row: Row[Any], key_id: str | None = None) -> Principal:
    """With its role bindings only: these are all it can lend or grant to others."""
    return replace(_principals_of(tx, [row])[row.id], key_id=key_id)


def _principals_of(tx: Connection, rows: Sequence[Row[Any]]) -> dict[str, Principal]:
    """All of them in one query, however many grantors lend to one caller."""
    held: dict[str, list[Binding]] = {row.id: [] for row in rows}
    for b in tx.execute(_HELD_BY, {"principals": [*held]}):
        held[b.principal_id].append(Binding(b.role, (b.scope_kind, b.scope_id), b.id, _custom_keys(b)))
    return {
        row.id: Principal(row.id, row.kind, row.name, row.tenant_id, row.project_id, row.email, tuple(held[row.id]))
        for row in rows
    }


def with_grants(tx: Connection, principal: Principal, now: int, project_id: str | None = None) -> Principal:
    """The same principal with the grants that are active now: break-glass, and delegations (into `project_id` only)."""
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
    """None once the grantor is disabled or deleted: then the delegation grants nothing."""
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


def _custom_keys(row: Row[Any]) -> frozenset[str] | None:
    """The permissions of a custom role. A value that is not a list grants nothing."""
    if row.custom_role is None:
        return None
    return (
        frozenset(key for key in row.custom_keys if key in PERMISSIONS)
        if isinstance(row.custom_keys, list)
        else frozenset()
    )
