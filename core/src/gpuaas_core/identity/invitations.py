"""Invitations: a person creates their own account with a single-use token, which is computed and never stored.

The permissions of the inviter are checked twice, when the invitation is created and when it is accepted: an inviter
that has lost a permission in the meantime can no longer grant it.
"""

import hmac
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from ..authz.context import Context
from ..authz.evaluate import Principal, Scope
from ..events.event_log import declare
from ..iam import roles
from ..iam.bindings import bind
from ..iam.directory import get_principal
from ..iam.principals import principal_of
from ..kit.ids import new_id
from ..kit.problems import NotFound, Problem
from ..kit.vault import Vault
from ..tenancy.reads import scope_in_tenant, tenant_scope
from . import schemas
from .errors import EmailTaken, InvitationInvalid
from .tables import invitations
from .users import create_user, find_by_email

declare(
    {
        "tenancy.invitation.created": "Person invited to the tenant.",
        "tenancy.invitation.revoked": "Invitation revoked: it can no longer be used.",
        "tenancy.invitation.accepted": "Invitation accepted: the invited person has an account.",
    }
)


INVITATION_MS = 7 * 24 * 3600 * 1000


def create_invitation(ctx: Context, tenant_id: str, body: schemas.CreateInvitation) -> Row[Any]:
    _check_free(ctx.tx, tenant_id, body.email)
    _check_role(ctx, tenant_id, body.role, body.project_id)
    row = {"id": new_id("inv"), "tenant_id": tenant_id, "invited_by": ctx.principal.id} | vars(body)
    ctx.tx.execute(insert(invitations).values(**row, expires_at=ctx.now + INVITATION_MS, created_at=ctx.now))
    ctx.resource_id = row["id"]
    facts = {"project": body.project_id} | ({"role": body.role} if body.role else {})
    ctx.emit("tenancy.invitation.created", row["id"], facts)
    return _one(ctx.tx, tenant_id, row["id"])


def revoke_invitation(ctx: Context, tenant_id: str, invitation_id: str) -> Row[Any]:
    row = _one(ctx.tx, tenant_id, invitation_id)
    ctx.resource_id = invitation_id
    if state_of(row, ctx.now) == "open":
        ctx.tx.execute(update(invitations).where(invitations.c.id == invitation_id).values(revoked_at=ctx.now))
        ctx.emit("tenancy.invitation.revoked", invitation_id, {})
    return _one(ctx.tx, tenant_id, invitation_id)


def invitation_token(vault: Vault, invitation_id: str) -> str:
    return f"{invitation_id}.{vault.mac(f'invitation:{invitation_id}')}"


def check_token(tx: Connection, vault: Vault, token: str, now: int, *, lock: bool = False) -> Row[Any]:
    """With `lock` the invitation is locked until the transaction ends, so that it is accepted only once."""
    invitation_id, _, _ = token.partition(".")
    mine = select(invitations).where(invitations.c.id == invitation_id)
    row = tx.execute(mine.with_for_update() if lock else mine).first()
    valid = hmac.compare_digest(invitation_token(vault, invitation_id).encode(), token.encode())
    if row is None or not valid or state_of(row, now) != "open":
        raise InvitationInvalid("This invitation is unknown, used, revoked or expired.")
    return row


def accept(ctx: Context, vault: Vault, body: schemas.AcceptInvitation, password_hash: str) -> Row[Any]:
    return create_invited_user(ctx, check_token(ctx.tx, vault, body.token, ctx.now, lock=True), password_hash)


def find_open(tx: Connection, tenant_id: str, email: str, now: int) -> Row[Any] | None:
    """The newest open invitation of an address, locked. The caller must have verified who owns the address."""
    mine = invitations_of(tenant_id).where(invitations.c.email == email).order_by(invitations.c.id.desc())
    return next((row for row in tx.execute(mine.with_for_update()).all() if state_of(row, now) == "open"), None)


def create_invited_user(ctx: Context, invitation: Row[Any], password_hash: str | None) -> Row[Any]:
    inviter = get_principal(ctx.tx, invitation.invited_by)
    ctx.scope = tenant_scope(ctx.tx, invitation.tenant_id)
    invited = ctx.principal
    if inviter.disabled_at is not None:
        raise InvitationInvalid("The person who invited you is disabled.")
    try:
        ctx.principal = principal_of(ctx.tx, inviter)
        ctx.allow("tenancy.user.create")
        scope = _check_role(ctx, invitation.tenant_id, invitation.role, invitation.project_id)
    except Problem as error:
        raise InvitationInvalid("The person who invited you may no longer grant the role of the invitation.") from error
    finally:
        ctx.principal = invited
    person = {"email": invitation.email, "name": invitation.name}
    user = create_user(ctx, invitation.tenant_id, **person, password_hash=password_hash)
    if invitation.role:
        kind, where = scope.chain[0]
        bind(ctx.tx, user.id, invitation.role, kind, where, invitation.tenant_id, ctx.now)
    ctx.tx.execute(update(invitations).where(invitations.c.id == invitation.id).values(accepted_by=user.id))
    ctx.principal = Principal(user.id, "user", user.name, user.tenant_id)
    ctx.resource_id, ctx.reason = invitation.id, f"invited by {inviter.id}"
    ctx.emit("tenancy.invitation.accepted", invitation.id, {"user_id": user.id, "invited_by": inviter.id})
    return user


def invitations_of(tenant_id: str) -> Select[Any]:
    return select(invitations).where(invitations.c.tenant_id == tenant_id)


def view(row: Row[Any], now: int) -> schemas.InvitationView:
    return schemas.InvitationView.model_validate(dict(row._mapping) | {"state": state_of(row, now)})


def state_of(row: Row[Any], now: int) -> str:
    if row.accepted_by:
        return "accepted"
    if row.revoked_at:
        return "revoked"
    return "expired" if row.expires_at <= now else "open"


def _check_free(tx: Connection, tenant_id: str, email: str) -> None:
    """Accounts of other tenants do not matter, and the answer must not reveal them."""
    if find_by_email(tx, tenant_id, email):
        raise EmailTaken(f"{email} already has an account in this tenant.")


def _check_role(ctx: Context, tenant_id: str, role: str | None, project_id: str | None) -> Scope:
    scope = ctx.scope if project_id is None else scope_in_tenant(ctx.tx, tenant_id, project_id)
    if role is not None:
        ctx.allow("iam.binding.create")
        roles.check_bindable(ctx.tx, tenant_id, role, scope.chain[0][0])
        roles.check_holds_all(ctx.tx, ctx.principal, role, scope)
    return scope


def _one(tx: Connection, tenant_id: str, invitation_id: str) -> Row[Any]:
    row = tx.execute(invitations_of(tenant_id).where(invitations.c.id == invitation_id)).first()
    if row is None:
        raise NotFound("There is no such invitation in this tenant.")
    return row
