"""Invitations: a person makes their own local account with a single-use token, computed and never stored.

What the invitation gives is checked twice: when it is written, and when it is taken up, for a grantor who has lost a
right meanwhile can no longer give it.
"""

import hmac
from typing import Any, Protocol

from sqlalchemy import Connection, Row, Select, insert, select, update

from ..access.context import Context
from ..access.evaluate import Principal, Scope
from ..iam import roles
from ..iam.principals import principal_of
from ..kit.ids import new_id
from ..kit.problems import NotFound, Problem
from ..ledger.events import declare
from ..tenancy import schemas, service
from ..tenancy.errors import EmailTaken, InvitationInvalid
from ..tenancy.reads import project_scope, tenant_scope
from ..tenancy.tables import invitations, principals

declare(
    {
        "tenancy.invitation.created": "A person is invited to the tenant.",
        "tenancy.invitation.revoked": "An invitation can no longer be used.",
        "tenancy.invitation.accepted": "An invited person has an account.",
    }
)


class Vault(Protocol):
    def mac(self, message: str) -> str: ...


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


def check_token(tx: Connection, vault: Vault, token: str, now: int, *, hold: bool = False) -> Row[Any]:
    """With `hold` the invitation is locked until the transaction ends, so that it is accepted once."""
    invitation_id, _, _ = token.partition(".")
    mine = select(invitations).where(invitations.c.id == invitation_id)
    row = tx.execute(mine.with_for_update() if hold else mine).first()
    good = hmac.compare_digest(invitation_token(vault, invitation_id).encode(), token.encode())
    if row is None or not good or state_of(row, now) != "open":
        raise InvitationInvalid("This invitation is unknown, used, revoked or expired.")
    return row


def accept(ctx: Context, vault: Vault, body: schemas.AcceptInvitation, password_hash: str) -> Row[Any]:
    return take_up(ctx, check_token(ctx.tx, vault, body.token, ctx.now, hold=True), password_hash)


def open_for(tx: Connection, tenant_id: str, email: str, now: int) -> Row[Any] | None:
    """The newest open invitation of an address, locked: somebody else has verified whose address it is."""
    mine = invitations_of(tenant_id).where(invitations.c.email == email).order_by(invitations.c.id.desc())
    return next((row for row in tx.execute(mine.with_for_update()).all() if state_of(row, now) == "open"), None)


def take_up(ctx: Context, invitation: Row[Any], password_hash: str | None) -> Row[Any]:
    inviter = ctx.tx.execute(select(principals).where(principals.c.id == invitation.invited_by)).one()
    ctx.scope = tenant_scope(ctx.tx, invitation.tenant_id)
    invited = ctx.principal
    if inviter.disabled_at is not None:
        raise InvitationInvalid("Whoever invited you is no longer active.")
    try:
        ctx.principal = principal_of(ctx.tx, inviter)
        ctx.allow("tenancy.user.create")
        scope = _check_role(ctx, invitation.tenant_id, invitation.role, invitation.project_id)
    except Problem as error:
        raise InvitationInvalid("Whoever invited you may no longer give what the invitation says.") from error
    finally:
        ctx.principal = invited
    person = {"email": invitation.email, "name": invitation.name}
    user = service.add_user(ctx, invitation.tenant_id, **person, password_hash=password_hash)
    if invitation.role:
        kind, where = scope.chain[0]
        service.bind(ctx.tx, user.id, invitation.role, kind, where, invitation.tenant_id, ctx.now)
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
    """Only here: what other tenants have is not told, and does not matter."""
    mine = (principals.c.email == email) & (principals.c.tenant_id == tenant_id)
    if tx.execute(select(principals.c.id).where(mine)).first():
        raise EmailTaken(f"{email} already has an account in this tenant.")


def _check_role(ctx: Context, tenant_id: str, role: str | None, project_id: str | None) -> Scope:
    scope = ctx.scope
    if project_id is not None:
        scope = project_scope(ctx.tx, project_id)
        if scope.tenant_id != tenant_id:
            raise NotFound("There is no such project in this tenant.")
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
