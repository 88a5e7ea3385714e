"""Loads principals for the evaluator: with their role bindings and the permissions delegated to them.

Called when a request is authenticated, and wherever one principal acts in the name of another.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from sqlalchemy import Connection, bindparam, exists, func, or_, select

from ..authz.evaluate import BREAK_GLASS, DELEGATION, Binding, Grant, Principal
from ..authz.ids import PrincipalId
from ..authz.permissions import BREAK_GLASS as OPENABLE
from ..authz.permissions import PERMISSIONS, UNLENDABLE
from ..kit.rows import Query
from .rows import BreakGlassRow, DelegationRow, HolderRow
from .states import ACTIVE
from .tables import break_glass, custom_roles, delegations, principals, role_bindings

_p, _b = principals.c, role_bindings.c
# The maximum is the last entry of an index. With EXISTS, PostgreSQL reads the whole table for a principal without
# delegations, where most delegations are those of one other account: it expects to meet a match in the first row.
_LENT_UNTIL = (
    select(func.max(delegations.c.expires_at))
    .where(delegations.c.grantee_id == _p.id, delegations.c.revoked_at.is_(None))
    .scalar_subquery()
)
_HAS_GRANTS = or_(
    _LENT_UNTIL.is_not(None),
    exists().where(break_glass.c.opened_by == _p.id, break_glass.c.state == ACTIVE),
)
# Principals with their role bindings: identity joins its sessions to it, so that one statement authenticates a request.
# The flag is read with it: callers without grants, which are most, cost no further query.
HOLDERS = (
    select(
        *(_p.id, _p.kind, _p.name, _p.tenant_id, _p.project_id, _p.email, _p.disabled_at),
        _HAS_GRANTS.label("has_grants"),
        *(_b.id.label("binding_id"), _b.role, _b.scope_kind, _b.scope_id),
        *(custom_roles.c.id.label("custom_role"), custom_roles.c.permissions.label("custom_keys")),
    )
    .select_from(principals)
    .outerjoin(role_bindings, _b.principal_id == _p.id)
    .outerjoin(custom_roles, (custom_roles.c.tenant_id == _b.tenant_id) & (custom_roles.c.name == _b.role))
    .order_by(_b.id)
)
_BY_ID = Query(HOLDERS.where(_p.id == bindparam("principal")), HolderRow)
_ABLE = Query(HOLDERS.where(_p.disabled_at.is_(None), _p.deleted_at.is_(None)), HolderRow)
_LENDER = _ABLE.where(_p.id == bindparam("lender"))
_LENDERS = _ABLE.where(_p.id.in_(bindparam("lenders", expanding=True)))

_LENT = (
    Query(select(delegations), DelegationRow)
    .where(
        delegations.c.grantee_id == bindparam("grantee"),
        delegations.c.revoked_at.is_(None),
        delegations.c.expires_at > bindparam("now"),
    )
    .order_by(delegations.c.id)
)
_LENT_IN_PROJECT = _LENT.where(delegations.c.project_id == bindparam("project"))
_OPENED = Query(select(break_glass), BreakGlassRow).where(
    break_glass.c.opened_by == bindparam("principal"),
    break_glass.c.state == ACTIVE,
    break_glass.c.expires_at > bindparam("now"),
)


class Identified(Protocol):
    @property
    def id(self) -> PrincipalId: ...


def principal_of(tx: Connection, row: Identified) -> Principal:
    """Return the principal with its role bindings, without delegations and break-glass: those permissions cannot be
    passed on."""
    return holder(_BY_ID.all(tx, principal=row.id))


def holder(rows: Sequence[HolderRow], *, key_id: str | None = None, session_ends_at: int | None = None) -> Principal:
    """Build the principal from its rows: one row per role binding, or a single row if it has no binding."""
    first = rows[0]
    return Principal(
        first.id,
        first.kind,
        first.name,
        first.tenant_id,
        first.project_id,
        first.email,
        tuple(_bindings(rows)),
        borrows=bool(first.has_grants),
        key_id=key_id,
        session_ends_at=session_ends_at,
    )


def _bindings(rows: Iterable[HolderRow]) -> Iterable[Binding]:
    for row in rows:
        if row.binding_id is not None and row.role is not None:
            place = (row.scope_kind or "", row.scope_id or "")
            yield Binding(row.role, place, row.binding_id, _custom_keys(row))


def with_grants(tx: Connection, principal: Principal, now: int, project_id: str | None = None) -> Principal:
    """Return a copy of the principal with its active break-glass and delegations. With `project_id`, delegations in
    other projects are left out."""
    return replace(principal, grants=(*_delegated(tx, principal, now, project_id), *_opened(tx, principal, now)))


def _delegated(tx: Connection, grantee: Principal, now: int, project_id: str | None) -> list[Grant]:
    if project_id is None:
        rows = _LENT.all(tx, grantee=grantee.id, now=now)
    else:
        rows = _LENT_IN_PROJECT.all(tx, grantee=grantee.id, now=now, project=project_id)
    lenders = _lenders(tx, {row.grantor_id for row in rows})
    return [delegated(row, lenders[row.grantor_id]) for row in rows if row.grantor_id in lenders]


def lender_of(tx: Connection, row: DelegationRow) -> Principal | None:
    """Return the grantor of a delegation. Return None if the grantor is disabled or deleted: the delegation then grants
    nothing."""
    return _lenders(tx, {row.grantor_id}).get(row.grantor_id)


def _lenders(tx: Connection, ids: set[PrincipalId]) -> dict[PrincipalId, Principal]:
    """Return these grantors by id, read with one query. Disabled and deleted grantors are left out."""
    if not ids:
        return {}
    found: dict[PrincipalId, list[HolderRow]] = {}
    for row in _LENDER.all(tx, lender=next(iter(ids))) if len(ids) == 1 else _LENDERS.all(tx, lenders=sorted(ids)):
        found.setdefault(row.id, []).append(row)
    return {principal_id: holder(rows) for principal_id, rows in found.items()}


def delegated(row: DelegationRow, lender: Principal) -> Grant:
    keys = frozenset(key for key in row.permissions if key in PERMISSIONS) - UNLENDABLE
    return Grant(row.id, DELEGATION, ("project", row.project_id), keys, lender)


def _opened(tx: Connection, principal: Principal, now: int) -> list[Grant]:
    if principal.kind != "user":
        return []  # only platform administrators open a break-glass, and they are people
    return [
        Grant(row.id, BREAK_GLASS, ("tenant", row.tenant_id), OPENABLE.get(row.mode, frozenset()), principal)
        for row in _OPENED.all(tx, principal=principal.id, now=now)
    ]


def _custom_keys(row: HolderRow) -> frozenset[str] | None:
    """Return the permissions of the binding's custom role, or None for a system role. An invalid stored value grants
    nothing."""
    if row.custom_role is None:
        return None
    stored = row.custom_keys if isinstance(row.custom_keys, list) else []
    return frozenset(key for key in stored if isinstance(key, str) and key in PERMISSIONS)
