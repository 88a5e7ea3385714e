"""Invitations: an invited person creates their own account with a single-use token. The token is computed with a key of
the platform and never stored.

The permissions of the inviter are checked when the invitation is created and again when it is accepted: an inviter who
has lost a permission in between can no longer grant it.
"""

import hmac

from sqlalchemy import Connection, bindparam, insert, select, update

from ..authz.context import Context
from ..authz.evaluate import Principal, Scope
from ..events.event_log import declare
from ..iam import roles
from ..iam.bindings import bind
from ..iam.directory import find_by_email, get_principal
from ..iam.principals import principal_of
from ..iam.rows import PrincipalRow
from ..kit.ids import new_id
from ..kit.problems import NotFound, Problem
from ..kit.rows import Query
from ..kit.vault import Vault
from ..tenancy.reads import scope_in_tenant, tenant_scope
from . import schemas
from .errors import EmailTaken, InvitationInvalid
from .rows import InvitationRow
from .tables import invitations
from .users import create_user

declare(
    {
        "tenancy.invitation.created": "A person was invited to the tenant.",
        "tenancy.invitation.revoked": "An invitation was revoked; it can no longer be used.",
        "tenancy.invitation.accepted": "An invitation was accepted; the invited person has an account.",
    }
)


INVITATION_MS = 7 * 24 * 3600 * 1000
_i = invitations.c
INVITATION_ID = _i.id
_ROWS = Query(select(invitations), InvitationRow)
_BY_ID = _ROWS.where(_i.id == bindparam("invitation"))
_BY_ID_LOCKED = _BY_ID.locked()
_OF_EMAIL = (
    _ROWS.where(_i.tenant_id == bindparam("tenant"), _i.email == bindparam("email")).order_by(_i.id.desc()).locked()
)


def create_invitation(ctx: Context, tenant_id: str, body: schemas.CreateInvitation) -> InvitationRow:
    _check_free(ctx.tx, tenant_id, body.email)
    _check_role(ctx, tenant_id, body.role, body.project_id)
    invitation_id = ctx.resource_id = new_id("inv")
    row = {"id": invitation_id, "tenant_id": tenant_id, "invited_by": ctx.principal.id} | vars(body)
    ctx.tx.execute(insert(invitations).values(**row, expires_at=ctx.now + INVITATION_MS, created_at=ctx.now))
    facts = {"project": body.project_id} | ({"role": body.role} if body.role else {})
    ctx.emit("tenancy.invitation.created", invitation_id, facts)
    return _one(ctx.tx, tenant_id, invitation_id)


def revoke_invitation(ctx: Context, tenant_id: str, invitation_id: str) -> InvitationRow:
    row = _one(ctx.tx, tenant_id, invitation_id)
    ctx.resource_id = invitation_id
    if state_of(row, ctx.now) == "open":
        ctx.tx.execute(update(invitations).where(invitations.c.id == invitation_id).values(revoked_at=ctx.now))
        ctx.emit("tenancy.invitation.revoked", invitation_id, {})
    return _one(ctx.tx, tenant_id, invitation_id)


def invitation_token(vault: Vault, invitation_id: str) -> str:
    return f"{invitation_id}.{vault.mac(f'invitation:{invitation_id}')}"


def check_token(tx: Connection, vault: Vault, token: str, now: int, *, lock: bool = False) -> InvitationRow:
    """Return the open invitation of this token, or raise InvitationInvalid. With `lock`, its row stays locked until the
    transaction ends, so that the invitation is accepted only once."""
    invitation_id, _, _ = token.partition(".")
    row = (_BY_ID_LOCKED if lock else _BY_ID).first(tx, invitation=invitation_id)
    valid = hmac.compare_digest(invitation_token(vault, invitation_id).encode(), token.encode())
    if row is None or not valid or state_of(row, now) != "open":
        raise InvitationInvalid("This invitation is unknown, used, revoked or expired.")
    return row


def accept(ctx: Context, vault: Vault, body: schemas.AcceptInvitation, password_hash: str) -> PrincipalRow:
    return create_invited_user(ctx, check_token(ctx.tx, vault, body.token, ctx.now, lock=True), password_hash)


def find_open(tx: Connection, tenant_id: str, email: str, now: int) -> InvitationRow | None:
    """Lock and return the newest open invitation for an e-mail address, or return None. The caller must have verified
    that the invited person owns the address."""
    return next((row for row in _OF_EMAIL.all(tx, tenant=tenant_id, email=email) if state_of(row, now) == "open"), None)


def create_invited_user(ctx: Context, invitation: InvitationRow, password_hash: str | None) -> PrincipalRow:
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
    email, name = invitation.email, invitation.name
    user = create_user(ctx, invitation.tenant_id, email=email, name=name, password_hash=password_hash)
    if invitation.role:
        kind, where = scope.chain[0]
        bind(ctx.tx, user.id, invitation.role, kind, where, invitation.tenant_id, ctx.now)
    ctx.tx.execute(update(invitations).where(invitations.c.id == invitation.id).values(accepted_by=user.id))
    ctx.principal = Principal(user.id, "user", user.name, user.tenant_id)
    ctx.resource_id, ctx.reason = invitation.id, f"invited by {inviter.id}"
    ctx.emit("tenancy.invitation.accepted", invitation.id, {"user_id": user.id, "invited_by": inviter.id})
    return user


def invitations_of(tenant_id: str) -> Query[InvitationRow]:
    return _ROWS.where(_i.tenant_id == tenant_id)


def view(row: InvitationRow, now: int) -> schemas.InvitationView:
    return schemas.InvitationView.model_validate(vars(row) | {"state": state_of(row, now)})


def state_of(row: InvitationRow, now: int) -> str:
    if row.accepted_by:
        return "accepted"
    if row.revoked_at:
        return "revoked"
    return "expired" if row.expires_at <= now else "open"


def _check_free(tx: Connection, tenant_id: str, email: str) -> None:
    """Raise EmailTaken if the tenant has an account with this e-mail. Accounts of other tenants are neither checked nor
    revealed."""
    if find_by_email(tx, tenant_id, email):
        raise EmailTaken(f"{email} already has an account in this tenant.")


def _check_role(ctx: Context, tenant_id: str, role: str | None, project_id: str | None) -> Scope:
    scope = ctx.scope if project_id is None else scope_in_tenant(ctx.tx, tenant_id, project_id)
    if role is not None:
        ctx.allow("iam.binding.create")
        roles.check_bindable(ctx.tx, tenant_id, role, scope.chain[0][0])
        roles.check_holds_all(ctx.tx, ctx.principal, role, scope)
    return scope


def _one(tx: Connection, tenant_id: str, invitation_id: str) -> InvitationRow:
    row = _BY_ID.first(tx, invitation=invitation_id)
    if row is None or row.tenant_id != tenant_id:
        raise NotFound("There is no such invitation in this tenant.")
    return row
