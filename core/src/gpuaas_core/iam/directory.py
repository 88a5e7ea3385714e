"""The directory of principals: one table for users, service accounts and nodes.

IAM owns the table because roles, delegations and break-glass refer to it. Identity, which depends on IAM, creates,
finds and changes principals through these functions. Rooms whose rows belong to an account join `ACCOUNTS` to read its
name and whether it is disabled.
"""

from collections.abc import Sequence
from typing import TypedDict, Unpack

from sqlalchemy import Connection, bindparam, insert, select, update

from ..authz.ids import PrincipalId, ProjectId, TenantId
from ..kit.db import insert_new
from ..kit.rows import Query
from ..tenancy.reads import ids_of_tenants_named
from .rows import PrincipalRow
from .tables import principals

_p = principals.c
PRINCIPAL_ID = _p.id
ACCOUNTS = select(_p.id, _p.kind, _p.name, _p.disabled_at).subquery("accounts")
PRINCIPALS = Query(select(principals), PrincipalRow)
_BY_ID = PRINCIPALS.where(_p.id == bindparam("principal"))
_BY_IDS = PRINCIPALS.where(_p.id.in_(bindparam("principals", expanding=True)))
_USER = _BY_ID.where(_p.kind == "user", _p.tenant_id == bindparam("tenant"))
_ACCOUNT = _BY_ID.where(_p.kind == "service_account", _p.project_id == bindparam("project"), _p.deleted_at.is_(None))
_WITH_EMAIL = PRINCIPALS.where(_p.email == bindparam("email"))
_IN_TENANT = _WITH_EMAIL.where(_p.tenant_id == bindparam("tenant"))
_OF_PLATFORM = _WITH_EMAIL.where(_p.tenant_id.is_(None))
_OLDEST = _WITH_EMAIL.order_by(_p.tenant_id.is_not(None), _p.id).limit(bindparam("most"))
_OLDEST_IN_TENANT = _OLDEST.where(_p.tenant_id.in_(ids_of_tenants_named(bindparam("slug"))))
_ENABLED = select(_p.id).where(_p.id == bindparam("principal"), _p.disabled_at.is_(None))


class NewPrincipal(TypedDict, total=False):
    tenant_id: str | None
    project_id: str | None
    email: str | None
    password_hash: str | None


class PrincipalChanges(TypedDict, total=False):
    password_hash: str
    disabled_at: int | None
    deleted_at: int


def add_principal(
    tx: Connection, principal_id: str, kind: str, name: str, now: int, **more: Unpack[NewPrincipal]
) -> PrincipalId:
    tx.execute(insert(principals).values(id=principal_id, kind=kind, name=name, created_at=now, **more))
    return PrincipalId(principal_id)


def add_unless_taken(
    tx: Connection, principal_id: str, kind: str, name: str, now: int, **more: Unpack[NewPrincipal]
) -> bool:
    """Insert a principal and return True. Return False if the tenant already has an account with this e-mail."""
    return insert_new(tx, principals, id=principal_id, kind=kind, name=name, created_at=now, **more)


def change_principal(tx: Connection, principal_id: str, **changes: Unpack[PrincipalChanges]) -> None:
    tx.execute(update(principals).where(principals.c.id == principal_id).values(**changes))


def find_principal(tx: Connection, principal_id: str) -> PrincipalRow | None:
    return _BY_ID.first(tx, principal=principal_id)


def get_principal(tx: Connection, principal_id: str) -> PrincipalRow:
    """Return the row of a principal that is known to exist. Raises NoResultFound if it does not."""
    return _BY_ID.one(tx, principal=principal_id)


def get_principals(tx: Connection, ids: Sequence[str]) -> list[PrincipalRow]:
    return _BY_IDS.all(tx, principals=list(ids))


def find_user(tx: Connection, tenant_id: str, user_id: str) -> PrincipalRow | None:
    return _USER.first(tx, principal=user_id, tenant=tenant_id)


def find_account(tx: Connection, project_id: str, account_id: str) -> PrincipalRow | None:
    """Return a service account of the project that was not deleted, or None."""
    return _ACCOUNT.first(tx, principal=account_id, project=project_id)


def find_by_email(tx: Connection, tenant_id: str | None, email: str) -> PrincipalRow | None:
    """Return the account with this e-mail in the tenant, or among the accounts without a tenant if `tenant_id` is None.
    Return None if there is no such account."""
    if tenant_id is None:
        return _OF_PLATFORM.first(tx, email=email)
    return _IN_TENANT.first(tx, email=email, tenant=tenant_id)


def oldest_with_email(tx: Connection, email: str, tenant_slug: str | None, most: int) -> list[PrincipalRow]:
    """Return at most `most` accounts with this e-mail: the account without a tenant first, then the oldest. With
    `tenant_slug`, return only accounts of that tenant."""
    if tenant_slug is None:
        return _OLDEST.all(tx, email=email, most=most)
    return _OLDEST_IN_TENANT.all(tx, email=email, slug=tenant_slug, most=most)


def users_of(tenant_id: TenantId | str) -> Query[PrincipalRow]:
    return PRINCIPALS.where(_p.kind == "user", _p.tenant_id == tenant_id)


def accounts_of(project_id: ProjectId | str) -> Query[PrincipalRow]:
    """Build the query for the service accounts of the project that were not deleted."""
    return PRINCIPALS.where(_p.kind == "service_account", _p.project_id == project_id, _p.deleted_at.is_(None))


def is_enabled(tx: Connection, principal_id: str) -> bool:
    return tx.execute(_ENABLED, {"principal": principal_id}).first() is not None
