"""Creates, disables and enables the users of a tenant, and applies the changes that users make to their own account."""

from sqlalchemy import Connection

from ..audit import audit_log
from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Principal
from ..authz.permissions import PLATFORM_ADMIN
from ..events.event_log import declare
from ..iam.bindings import bind
from ..iam.directory import (
    NewPrincipal,
    add_principal,
    add_unless_taken,
    change_principal,
    find_by_email,
    find_user,
    get_principal,
    oldest_with_email,
)
from ..iam.rows import PrincipalRow
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..tenancy import visibility
from ..tenancy.rows import ProjectRow
from ..tenancy.schemas import TenantView
from . import schemas, sessions
from .errors import EmailTaken, NotYourself

declare(
    {
        "tenancy.user.created": "A user was created.",
        "tenancy.user.disabled": "A user was disabled: they cannot sign in, and all their sessions are closed.",
        "tenancy.user.enabled": "A user was enabled and can sign in again.",
        "tenancy.user.password_changed": "A user changed their password; all their other sessions are closed.",
    }
)

MOST_COMPARED = 2  # accounts that a sign-in without a tenant compares the password with
MOST_SHOWN = 100  # projects in whoami; GET /v1/projects pages through all of them


def create_user(ctx: Context, tenant_id: str, *, email: str, name: str, password_hash: str | None) -> PrincipalRow:
    """Create a user; raise EmailTaken if the tenant has an account with this e-mail. A user without a password signs in
    through an identity provider."""
    user_id = ctx.resource_id = new_id("usr")
    more: NewPrincipal = {"tenant_id": tenant_id, "email": email, "password_hash": password_hash}
    if not add_unless_taken(ctx.tx, user_id, "user", name, ctx.now, **more):
        raise EmailTaken(f"{email} already has an account in this tenant.")
    ctx.emit("tenancy.user.created", user_id, {})
    return get_principal(ctx.tx, user_id)


def set_enabled(ctx: Context, tenant_id: str, user_id: str, *, enabled: bool) -> PrincipalRow:
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
    """Change the password and close every other session of the account; the caller's session stays open."""
    sessions.record_in_own_tenant(ctx)
    me = ctx.resource_id = ctx.principal.id
    change_principal(ctx.tx, me, password_hash=password_hash)
    ended = sessions.close_other_sessions(ctx.tx, me, token, ctx.now)
    ctx.emit("tenancy.user.password_changed", me, {"ended_sessions": ended})
    ctx.rights_changed(me)
    return schemas.SessionsEnded(ended_sessions=ended)


def candidates(tx: Connection, email: str, tenant: str | None) -> list[PrincipalRow]:
    """Return the accounts to compare the password with; an e-mail may have one account per tenant.

    Without the tenant's name, at most `MOST_COMPARED` accounts are returned: the account without a tenant, which
    belongs to the platform, and then the oldest. Creating more accounts with the same e-mail therefore cannot lock an
    account out.
    """
    return oldest_with_email(tx, email, tenant, MOST_COMPARED)


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


def principal_view(row: PrincipalRow) -> schemas.PrincipalView:
    return schemas.PrincipalView.model_validate(vars(row) | {"disabled": row.disabled_at is not None})


def bootstrap_admin(tx: Connection, email: str, password_hash: str, now: int) -> str:
    """Create the first platform administrator and return its id. If the account exists, set its password. Called by the
    command line of the core."""
    row = find_by_email(tx, None, email)
    if row is None:
        user_id = new_id("usr")
        name = "Platform administrator"
        add_principal(tx, user_id, "user", name, now, email=email, password_hash=password_hash)
    else:
        user_id = row.id
        change_principal(tx, user_id, password_hash=password_hash)
    bind(tx, user_id, PLATFORM_ADMIN, *PLATFORM, None, now)
    audit_log.by_operator(tx, "platform.admin.create", f"{'new' if row is None else 'new password for'} {user_id}", now)
    return user_id


def _membership(project: ProjectRow, roles: list[str]) -> schemas.ProjectMembership:
    return schemas.ProjectMembership(
        id=project.id, tenant_id=project.tenant_id, slug=project.slug, name=project.name, roles=roles
    )


def _user(tx: Connection, tenant_id: str, user_id: str) -> PrincipalRow:
    row = find_user(tx, tenant_id, user_id)
    if row is None:
        raise NotFound("There is no such user in this tenant.")
    return row
