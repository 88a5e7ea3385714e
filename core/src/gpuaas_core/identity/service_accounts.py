"""Service accounts and their keys. A key follows another with overlap: add the new one, switch, retire the old one."""

from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update

from ..access.context import Context
from ..access.evaluate import Place, Scope
from ..access.permissions import OPERATOR_KEYS
from ..iam import roles
from ..iam.principals import principal_of, with_grants
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.wire import canonical
from ..ledger.events import declare
from ..tenancy import schemas
from ..tenancy.errors import KeyTaken, TooManyKeys
from ..tenancy.reads import project_scope, tenant_scope
from ..tenancy.service import bind, principal_view
from ..tenancy.tables import principal_keys, principals, role_bindings, sessions
from . import authentication

declare(
    {
        "tenancy.service_account.created": "A service account exists in a project.",
        "tenancy.service_account.disabled": "A service account can no longer sign in; its tokens are dead.",
        "tenancy.service_account.enabled": "A service account can sign in again; its old tokens stay dead.",
        "tenancy.service_account.deleted": "A service account is gone, with its keys, tokens and roles.",
        "tenancy.service_account.key_added": "A service account can sign in with one more key.",
        "tenancy.service_account.key_retired": "A key no longer signs in; the tokens it opened are dead.",
    }
)

MOST_KEYS = 10


def create_service_account(ctx: Context, project_id: str, body: schemas.CreateServiceAccount) -> Row[Any]:
    jwk = authentication.check_public_jwk(body.public_jwk)
    account_id = ctx.resource_id = new_id("sa")
    row = {"id": account_id, "kind": "service_account", "name": body.name, "created_at": ctx.now}
    ctx.tx.execute(insert(principals).values(**row, tenant_id=ctx.scope.tenant_id, project_id=project_id))
    authentication.add_key(ctx.tx, account_id, jwk, ctx.now)
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
    mine = principals.c.id == account_id
    ctx.tx.execute(update(principals).where(mine).values(disabled_at=None if enabled else ctx.now))
    if enabled:
        ctx.emit("tenancy.service_account.enabled", account_id, {"name": row.name})
    else:
        authentication.close_sessions(ctx.tx, sessions.c.principal_id == account_id, now=ctx.now)
        ctx.emit("tenancy.service_account.disabled", account_id, {"name": row.name})
        ctx.rights_changed(account_id)
    return account_row(ctx.tx, project_id, account_id)


def delete_service_account(ctx: Context, project_id: str, account_id: str) -> Row[Any]:
    """The row stays for the history that names it; nothing can be done with it any more."""
    row = account_row(ctx.tx, project_id, account_id)
    ctx.resource_id = account_id
    gone = {"disabled_at": ctx.now, "deleted_at": ctx.now}
    ctx.tx.execute(update(principals).where(principals.c.id == account_id).values(**gone))
    ctx.tx.execute(delete(role_bindings).where(role_bindings.c.principal_id == account_id))
    mine = (principal_keys.c.principal_id == account_id) & principal_keys.c.retired_at.is_(None)
    ctx.tx.execute(update(principal_keys).where(mine).values(retired_at=ctx.now))
    authentication.close_sessions(ctx.tx, sessions.c.principal_id == account_id, now=ctx.now)
    ctx.emit("tenancy.service_account.deleted", account_id, {"name": row.name})
    ctx.rights_changed(account_id)
    return ctx.tx.execute(select(principals).where(principals.c.id == account_id)).one()


def add_key(ctx: Context, project_id: str, account_id: str, body: schemas.AddKey) -> Row[Any]:
    account = account_row(ctx.tx, project_id, account_id)
    _check_appoints(ctx, account)
    jwk = authentication.check_public_jwk(body.public_jwk)
    known = keys_of(ctx.tx, account_id)
    if any(canonical(key.public_jwk) == canonical(jwk) for key in known):
        raise KeyTaken(f"{account.name} has, or had, exactly this key.")
    if sum(key.retired_at is None for key in known) >= MOST_KEYS:
        raise TooManyKeys(f"{account.name} has {MOST_KEYS} active keys.")
    key_id = ctx.resource_id = authentication.add_key(ctx.tx, account_id, jwk, ctx.now)
    ctx.emit("tenancy.service_account.key_added", account_id, {"key_id": key_id})
    return _key(ctx.tx, account_id, key_id)


def retire_key(ctx: Context, project_id: str, account_id: str, key_id: str) -> Row[Any]:
    account_row(ctx.tx, project_id, account_id)
    key = _key(ctx.tx, account_id, key_id)
    ctx.resource_id = key_id
    if key.retired_at is None:
        ctx.tx.execute(update(principal_keys).where(principal_keys.c.id == key_id).values(retired_at=ctx.now))
        authentication.close_sessions(ctx.tx, sessions.c.key_id == key_id, now=ctx.now)
        ctx.emit("tenancy.service_account.key_retired", account_id, {"key_id": key_id})
        ctx.rights_changed(account_id)
    return _key(ctx.tx, account_id, key_id)


def _check_appoints(ctx: Context, account: Row[Any]) -> None:
    """A key of an operator is worth what the operator is: wherever it operates apps, the caller must appoint operators.

    Taking away (a key, the account) needs no such right.
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
    mine = [principals.c.project_id == project_id, principals.c.kind == "service_account"]
    return select(principals).where(*mine, principals.c.deleted_at.is_(None))


def account_row(tx: Connection, project_id: str, account_id: str) -> Row[Any]:
    row = tx.execute(accounts_of(project_id).where(principals.c.id == account_id)).first()
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
    held = select(role_bindings.c.role).where(role_bindings.c.principal_id == row.id).order_by(role_bindings.c.role)
    used = select(func.max(principal_keys.c.last_used_at)).where(principal_keys.c.principal_id == row.id)
    facts = principal_view(row).model_dump() | {
        "roles": list(tx.execute(held).scalars()),
        "active_keys": sum(key.retired_at is None for key in keys_of(tx, row.id)),
        "last_used_at": tx.execute(used).scalar(),
    }
    return schemas.ServiceAccountView.model_validate(facts)


def key_view(row: Row[Any]) -> schemas.KeyView:
    return schemas.KeyView.model_validate(dict(row._mapping) | {"active": row.retired_at is None})
