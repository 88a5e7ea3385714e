"""Users: created, disabled and enabled by administrators of their tenant; what users see and change of themselves."""

from typing import Any

from sqlalchemy import Connection, Row, Select

from ..audit import audit_log
from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Principal
from ..authz.permissions import PLATFORM_ADMIN
from ..events.event_log import declare
from ..iam.bindings import bind
from ..iam.directory import add_principal, add_unless_taken, change_principal, get_principal, select_principals
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..tenancy import visibility
from ..tenancy.reads import ids_of_tenants_named
from ..tenancy.schemas import TenantView
from . import schemas, sessions
from .errors import EmailTaken, NotYourself

declare(
    {
        "tenancy.user.created": "User created.",
        "tenancy.user.disabled": "User disabled: they cannot sign in, and all their sessions are closed.",
        "tenancy.user.enabled": "User enabled: they can sign in again.",
        "tenancy.user.password_changed": "A user changed their password; all their other sessions are closed.",
    }
)

MOST_COMPARED = 2  # accounts that a sign-in without a tenant compares the password with
MOST_SHOWN = 100  # projects in whoami; GET /v1/projects pages through all of them


def create_user(ctx: Context, tenant_id: str, *, email: str, name: str, password_hash: str | None) -> Row[Any]:
    """Without a password the user signs in through an identity provider."""
    user_id = ctx.resource_id = new_id("usr")
    row = {"id": user_id, "kind": "user", "name": name, "tenant_id": tenant_id, "created_at": ctx.now}
    if not add_unless_taken(ctx.tx, **row, email=email, password_hash=password_hash):
        raise EmailTaken(f"{email} already has an account in this tenant.")
    ctx.emit("tenancy.user.created", user_id, {})
    return get_principal(ctx.tx, user_id)


def set_enabled(ctx: Context, tenant_id: str, user_id: str, *, enabled: bool) -> Row[Any]:
    row = _user(ctx.tx, tenant_id, user_id)
    ctx.resource_id = user_id
    if user_id == ctx.principal.id:
        raise NotYourself("You cannot disable or enable your own account.")
    if enabled == (row.disabled_at is None):
        return row
    change_principal(ctx.tx, user_id, disabled_at=None if enabled else ctx.now)
    if enabled:
        ctx.emit("tenancy.user.enabled", user_id, {})
    else:
        sessions.close_sessions_of(ctx.tx, user_id, ctx.now)
        ctx.emit("tenancy.user.disabled", user_id, {})
        ctx.rights_changed(user_id)
    return _user(ctx.tx, tenant_id, user_id)


def change_password(ctx: Context, token: str, password_hash: str) -> schemas.SessionsEnded:
    """The caller's session stays open; every other session of the account is closed."""
    sessions.record_in_own_tenant(ctx)
    me = ctx.resource_id = ctx.principal.id
    change_principal(ctx.tx, me, password_hash=password_hash)
    ended = sessions.close_other_sessions(ctx.tx, me, token, ctx.now)
    ctx.emit("tenancy.user.password_changed", me, {"ended_sessions": ended})
    ctx.rights_changed(me)
    return schemas.SessionsEnded(ended_sessions=ended)


def users_of(tenant_id: str) -> Select[Any]:
    return select_principals(kind="user", tenant_id=tenant_id)


def find_by_email(tx: Connection, tenant_id: str, email: str) -> Row[Any] | None:
    query = select_principals(tenant_id=tenant_id)
    return tx.execute(query.where(query.selected_columns.email == email)).first()


def candidates(tx: Connection, email: str, tenant: str | None) -> list[Row[Any]]:
    """The accounts that a sign-in compares the password with; an e-mail may have one account per tenant.

    Without the tenant's name only the first few are compared: the account of the platform, which belongs to no tenant,
    and then the oldest. Creating more accounts with the same e-mail therefore cannot lock an account out.
    """
    query = select_principals()
    p = query.selected_columns
    query = query.where(p.email == email).order_by(p.tenant_id.is_not(None), p.id)
    if tenant is not None:
        query = query.where(p.tenant_id.in_(ids_of_tenants_named(tenant)))
    return list(tx.execute(query.limit(MOST_COMPARED)))


def whoami(tx: Connection, principal: Principal) -> schemas.WhoamiView:
    seen = visibility.seen_by(tx, principal)
    first = visibility.first_projects(tx, seen, MOST_SHOWN + 1)
    shown = first[:MOST_SHOWN]
    roles_in, listed = visibility.Roles(principal), {project.id for project in shown}
    return schemas.WhoamiView(
        principal=principal_view(get_principal(tx, principal.id)),
        tenants=[TenantView.model_validate(row) for row in visibility.tenants_around(tx, principal, seen)],
        projects=[_membership(project, roles_in(project)) for project in shown],
        more_projects=len(first) > MOST_SHOWN,
        roles=[
            schemas.HeldRole(role=b.role, scope_kind=b.place[0], scope_id=b.place[1])
            for b in principal.bindings
            if b.place[0] != "project" or b.place[1] in listed
        ],
    )


def principal_view(row: Row[Any]) -> schemas.PrincipalView:
    return schemas.PrincipalView.model_validate(dict(row._mapping) | {"disabled": row.disabled_at is not None})


def bootstrap_admin(tx: Connection, email: str, password_hash: str, now: int) -> str:
    """Creates the first platform administrator, or sets its password. Called by the command line of the core."""
    query = select_principals()
    p = query.selected_columns
    row = tx.execute(query.where(p.email == email, p.tenant_id.is_(None))).first()
    if row is None:
        user_id = new_id("usr")
        user = {"id": user_id, "kind": "user", "name": "Platform administrator", "email": email}
        add_principal(tx, **user, password_hash=password_hash, created_at=now)
    else:
        user_id = row.id
        change_principal(tx, user_id, password_hash=password_hash)
    bind(tx, user_id, PLATFORM_ADMIN, *PLATFORM, None, now)
    audit_log.by_operator(tx, "platform.admin.create", f"{'new' if row is None else 'new password for'} {user_id}", now)
    return user_id


def _membership(project: Row[Any], roles: list[str]) -> schemas.ProjectMembership:
    return schemas.ProjectMembership(
        id=project.id, tenant_id=project.tenant_id, slug=project.slug, name=project.name, roles=roles
    )


def _user(tx: Connection, tenant_id: str, user_id: str) -> Row[Any]:
    query = users_of(tenant_id)
    row = tx.execute(query.where(query.selected_columns.id == user_id)).first()
    if row is None:
        raise NotFound("There is no such user in this tenant.")
    return row
