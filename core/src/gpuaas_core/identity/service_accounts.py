"""Service accounts and their keys. To rotate a key without a gap: add the new key, switch to it, retire the old one."""

from typing import Any

from sqlalchemy import Connection, Row, Select, func, select, update

from ..authz.context import Context
from ..authz.evaluate import Place, Scope
from ..authz.permissions import OPERATOR_KEYS
from ..events.event_log import declare
from ..iam import roles
from ..iam.bindings import bind, roles_held_by, unbind_all
from ..iam.directory import add_principal, change_principal, get_principal, select_principals
from ..iam.principals import principal_of, with_grants
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.wire import canonical
from ..tenancy.reads import project_scope, tenant_scope
from . import assertions, schemas
from .errors import KeyTaken, TooManyKeys
from .sessions import close_sessions_of, close_sessions_of_keys
from .tables import principal_keys
from .users import principal_view

declare(
    {
        "tenancy.service_account.created": "Service account created in a project.",
        "tenancy.service_account.disabled": "Service account disabled: it cannot sign in, and its tokens are rejected.",
        "tenancy.service_account.enabled": "Service account enabled: it can sign in; its old tokens stay rejected.",
        "tenancy.service_account.deleted": "Service account deleted, with its keys, tokens and role bindings.",
        "tenancy.service_account.key_added": "Key added to a service account.",
        "tenancy.service_account.key_retired": "Key retired; it and the tokens issued for it are rejected.",
    }
)

MOST_KEYS = 10


def create_service_account(ctx: Context, project_id: str, body: schemas.CreateServiceAccount) -> Row[Any]:
    jwk = assertions.check_public_jwk(body.public_jwk)
    account_id = ctx.resource_id = new_id("sa")
    row = {"id": account_id, "kind": "service_account", "name": body.name, "created_at": ctx.now}
    add_principal(ctx.tx, **row, tenant_id=ctx.scope.tenant_id, project_id=project_id)
    assertions.add_key(ctx.tx, account_id, jwk, ctx.now)
    for role in body.roles:
        roles.check_bindable(ctx.tx, ctx.scope.tenant_id, role, "project")
        roles.check_holds_all(ctx.tx, ctx.principal, role, ctx.scope)
        bind(ctx.tx, account_id, role, "project", project_id, ctx.scope.tenant_id, ctx.now)
    ctx.emit("tenancy.service_account.created", account_id, {"name": body.name, "roles": body.roles})
    return account_row(ctx.tx, project_id, account_id)


def set_enabled(ctx: Context, project_id: str, account_id: str, *, enabled: bool) -> Row[Any]:
    row = account_row(ctx.tx, project_id, account_id)
    ctx.resource_id = account_id
    if enabled == (row.disabled_at is None):
        return row
    if enabled:
        _check_appoints(ctx, row)
    change_principal(ctx.tx, account_id, disabled_at=None if enabled else ctx.now)
    if enabled:
        ctx.emit("tenancy.service_account.enabled", account_id, {"name": row.name})
    else:
        close_sessions_of(ctx.tx, account_id, ctx.now)
        ctx.emit("tenancy.service_account.disabled", account_id, {"name": row.name})
        ctx.rights_changed(account_id)
    return account_row(ctx.tx, project_id, account_id)


def delete_service_account(ctx: Context, project_id: str, account_id: str) -> Row[Any]:
    """The row stays, because events and audit rows refer to it. It cannot sign in or be enabled again."""
    row = account_row(ctx.tx, project_id, account_id)
    ctx.resource_id = account_id
    change_principal(ctx.tx, account_id, disabled_at=ctx.now, deleted_at=ctx.now)
    unbind_all(ctx.tx, account_id)
    mine = (principal_keys.c.principal_id == account_id) & principal_keys.c.retired_at.is_(None)
    ctx.tx.execute(update(principal_keys).where(mine).values(retired_at=ctx.now))
    close_sessions_of(ctx.tx, account_id, ctx.now)
    ctx.emit("tenancy.service_account.deleted", account_id, {"name": row.name})
    ctx.rights_changed(account_id)
    return get_principal(ctx.tx, account_id)


def add_key(ctx: Context, project_id: str, account_id: str, body: schemas.AddKey) -> Row[Any]:
    account = account_row(ctx.tx, project_id, account_id)
    _check_appoints(ctx, account)
    jwk = assertions.check_public_jwk(body.public_jwk)
    known = keys_of(ctx.tx, account_id)
    if any(canonical(key.public_jwk) == canonical(jwk) for key in known):
        raise KeyTaken(f"{account.name} has, or had, exactly this key.")
    if sum(key.retired_at is None for key in known) >= MOST_KEYS:
        raise TooManyKeys(f"{account.name} has {MOST_KEYS} active keys.")
    key_id = ctx.resource_id = assertions.add_key(ctx.tx, account_id, jwk, ctx.now)
    ctx.emit("tenancy.service_account.key_added", account_id, {"key_id": key_id})
    return _key(ctx.tx, account_id, key_id)


def retire_key(ctx: Context, project_id: str, account_id: str, key_id: str) -> Row[Any]:
    account_row(ctx.tx, project_id, account_id)
    key = _key(ctx.tx, account_id, key_id)
    ctx.resource_id = key_id
    if key.retired_at is None:
        ctx.tx.execute(update(principal_keys).where(principal_keys.c.id == key_id).values(retired_at=ctx.now))
        close_sessions_of_keys(ctx.tx, [key_id], ctx.now)
        ctx.emit("tenancy.service_account.key_retired", account_id, {"key_id": key_id})
        ctx.rights_changed(account_id)
    return _key(ctx.tx, account_id, key_id)


def _check_appoints(ctx: Context, account: Row[Any]) -> None:
    """The caller could sign in as the account: where it operates apps, the caller needs `iam.operator.appoint`.

    Retiring a key or deleting the account needs no such permission.
    """
    holder = with_grants(ctx.tx, principal_of(ctx.tx, account), ctx.now)
    for held in (*holder.bindings, *holder.grants):
        if held.keys & OPERATOR_KEYS:
            scope = _scope(ctx.tx, held.place)
            roles.check_appoints(ctx.tx, ctx.principal, scope, f"Signing in as {account.name}")


def _scope(tx: Connection, place: Place) -> Scope:
    kind, where = place
    if kind == "project":
        return project_scope(tx, where)
    return tenant_scope(tx, where) if kind == "tenant" else Scope()


def accounts_of(project_id: str) -> Select[Any]:
    query = select_principals(kind="service_account")
    p = query.selected_columns
    return query.where(p.project_id == project_id, p.deleted_at.is_(None))


def account_row(tx: Connection, project_id: str, account_id: str) -> Row[Any]:
    query = accounts_of(project_id)
    row = tx.execute(query.where(query.selected_columns.id == account_id)).first()
    if row is None:
        raise NotFound("There is no such service account in this project.")
    return row


def keys_of(tx: Connection, account_id: str) -> list[Row[Any]]:
    mine = principal_keys.c.principal_id == account_id
    return list(tx.execute(select(principal_keys).where(mine).order_by(principal_keys.c.id)))


def _key(tx: Connection, account_id: str, key_id: str) -> Row[Any]:
    mine = (principal_keys.c.principal_id == account_id) & (principal_keys.c.id == key_id)
    row = tx.execute(select(principal_keys).where(mine)).first()
    if row is None:
        raise NotFound("The service account has no such key.")
    return row


def account_view(tx: Connection, row: Row[Any]) -> schemas.ServiceAccountView:
    used = select(func.max(principal_keys.c.last_used_at)).where(principal_keys.c.principal_id == row.id)
    facts = principal_view(row).model_dump() | {
        "roles": roles_held_by(tx, row.id),
        "active_keys": sum(key.retired_at is None for key in keys_of(tx, row.id)),
        "last_used_at": tx.execute(used).scalar(),
    }
    return schemas.ServiceAccountView.model_validate(facts)


def key_view(row: Row[Any]) -> schemas.KeyView:
    return schemas.KeyView.model_validate(dict(row._mapping) | {"active": row.retired_at is None})
