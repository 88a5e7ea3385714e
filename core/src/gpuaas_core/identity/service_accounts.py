"""Service accounts and their keys. To rotate a key without interruption: add the new key, use it, then retire the old
key."""

from sqlalchemy import Connection, bindparam, update

from ..authz.context import Context
from ..authz.evaluate import Place, Scope
from ..authz.permissions import OPERATOR_KEYS
from ..events.event_log import declare
from ..iam import roles
from ..iam.bindings import bind, roles_held_by, unbind_all
from ..iam.directory import NewPrincipal, add_principal, change_principal, find_account, get_principal
from ..iam.principals import principal_of, with_grants
from ..iam.rows import PrincipalRow
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.wire import canonical
from ..tenancy.reads import project_scope, tenant_scope
from . import assertions, schemas
from .errors import KeyTaken, TooManyKeys
from .rows import KeyRow
from .sessions import close_sessions_of, close_sessions_of_keys
from .tables import principal_keys
from .users import principal_view

declare(
    {
        "tenancy.service_account.created": "A service account was created in a project.",
        "tenancy.service_account.disabled": (
            "A service account was disabled: it cannot sign in, and its tokens are rejected."
        ),
        "tenancy.service_account.enabled": (
            "A service account was enabled: it can sign in again; its old tokens stay rejected."
        ),
        "tenancy.service_account.deleted": "A service account was deleted, with its keys, tokens and role bindings.",
        "tenancy.service_account.key_added": "A key was added to a service account.",
        "tenancy.service_account.key_retired": (
            "A key of a service account was retired; the key and the tokens issued for it are rejected."
        ),
    }
)

MOST_KEYS = 10
_k = principal_keys.c
_OF_ACCOUNT = assertions.KEYS.where(_k.principal_id == bindparam("account")).order_by(_k.id)


def create_service_account(ctx: Context, project_id: str, body: schemas.CreateServiceAccount) -> PrincipalRow:
    jwk = assertions.check_public_jwk(body.public_jwk)
    account_id = ctx.resource_id = new_id("sa")
    where: NewPrincipal = {"tenant_id": ctx.scope.tenant_id, "project_id": project_id}
    add_principal(ctx.tx, account_id, "service_account", body.name, ctx.now, **where)
    assertions.add_key(ctx.tx, account_id, jwk, ctx.now)
    for role in body.roles:
        roles.check_bindable(ctx.tx, ctx.scope.tenant_id, role, "project")
        roles.check_holds_all(ctx.tx, ctx.principal, role, ctx.scope)
        bind(ctx.tx, account_id, role, "project", project_id, ctx.scope.tenant_id, ctx.now)
    ctx.emit("tenancy.service_account.created", account_id, {"name": body.name, "roles": body.roles})
    return account_row(ctx.tx, project_id, account_id)


def set_enabled(ctx: Context, project_id: str, account_id: str, *, enabled: bool) -> PrincipalRow:
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


def delete_service_account(ctx: Context, project_id: str, account_id: str) -> PrincipalRow:
    """Delete a service account: it can never sign in or be enabled again. Its row stays, because events and audit rows
    refer to it."""
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


def add_key(ctx: Context, project_id: str, account_id: str, body: schemas.AddKey) -> KeyRow:
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


def retire_key(ctx: Context, project_id: str, account_id: str, key_id: str) -> KeyRow:
    account_row(ctx.tx, project_id, account_id)
    key = _key(ctx.tx, account_id, key_id)
    ctx.resource_id = key_id
    if key.retired_at is None:
        ctx.tx.execute(update(principal_keys).where(principal_keys.c.id == key_id).values(retired_at=ctx.now))
        close_sessions_of_keys(ctx.tx, [key_id], ctx.now)
        ctx.emit("tenancy.service_account.key_retired", account_id, {"key_id": key_id})
        ctx.rights_changed(account_id)
    return _key(ctx.tx, account_id, key_id)


def _check_appoints(ctx: Context, account: PrincipalRow) -> None:
    """If the account is an operator, raise 403 unless the caller may appoint operators: with a new key, the caller can
    act as the account.

    Retiring a key or deleting the account does not need this permission.
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


def account_row(tx: Connection, project_id: str, account_id: str) -> PrincipalRow:
    row = find_account(tx, project_id, account_id)
    if row is None:
        raise NotFound("There is no such service account in this project.")
    return row


def keys_of(tx: Connection, account_id: str) -> list[KeyRow]:
    return _OF_ACCOUNT.all(tx, account=account_id)


def _key(tx: Connection, account_id: str, key_id: str) -> KeyRow:
    row = next((key for key in keys_of(tx, account_id) if key.id == key_id), None)
    if row is None:
        raise NotFound("The service account has no such key.")
    return row


def account_view(tx: Connection, row: PrincipalRow) -> schemas.ServiceAccountView:
    keys = keys_of(tx, row.id)
    facts = principal_view(row).model_dump() | {
        "roles": roles_held_by(tx, row.id),
        "active_keys": sum(key.retired_at is None for key in keys),
        "last_used_at": max((key.last_used_at for key in keys if key.last_used_at is not None), default=None),
    }
    return schemas.ServiceAccountView.model_validate(facts)


def key_view(row: KeyRow) -> schemas.KeyView:
    return schemas.KeyView.model_validate(vars(row) | {"active": row.retired_at is None})
