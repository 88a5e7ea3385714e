"""Sign-in through an OpenID provider: authorization code flow with PKCE.

A sign-in attempt is a row found by the hash of its `state`. It works once and expires after ten minutes. The nonce and
PKCE verifier of the attempt are derived from the state with the platform's key and not stored. A cookie binds the
attempt to the browser that started it, and a challenge binds it to the CLI that started it.

A user is identified by (issuer, subject), never by e-mail address alone. The first sign-in links the provider's account
to a user only if the provider has verified the e-mail address and the tenant accepts the address: as that of a member,
by an invitation, or by the provider's default role.
"""

import base64
import hashlib
import hmac
import secrets

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from ..authz.context import Context
from ..authz.evaluate import Principal
from ..authz.ids import PrincipalId
from ..events.event_log import declare
from ..iam import roles
from ..iam.bindings import bind
from ..iam.directory import find_by_email, get_principal
from ..iam.principals import principal_of
from ..iam.rows import PrincipalRow
from ..identity import invitations, users
from ..kit.db import delete_some
from ..kit.json_types import Json
from ..kit.problems import Problem
from ..kit.rows import Query
from ..kit.vault import Vault
from ..tenancy.reads import tenant_scope
from .errors import OidcRefused, OidcStateInvalid
from .providers import provider as provider_row
from .rows import AttemptRow, ProviderRow
from .tables import linked_identities, sign_in_attempts

declare(
    {
        "tenancy.identity.linked": (
            "A user was linked to an account at an identity provider and can sign in with that account."
        )
    }
)

ATTEMPT_MS = 10 * 60_000
CODE_MS = 2 * 60_000
_a, _l = sign_in_attempts.c, linked_identities.c
_ATTEMPTS = Query(select(sign_in_attempts), AttemptRow)
_BY_STATE = _ATTEMPTS.where(_a.state_hash == bindparam("state")).locked()
_BY_CODE = _ATTEMPTS.where(_a.code_hash == bindparam("code")).locked()
_LINKED = select(_l.principal_id).where(
    _l.tenant_id == bindparam("tenant"), _l.issuer == bindparam("issuer"), _l.subject == bindparam("subject")
)
_SUBJECTS = select(_l.subject).where(_l.principal_id == bindparam("principal"), _l.issuer == bindparam("issuer"))


def begin(tx: Connection, provider_id: str, binder: str, now: int, *, challenge: str | None, port: int | None) -> str:
    state = secrets.token_urlsafe(32)
    row = {"state_hash": _hash(state), "provider_id": provider_id, "binder_hash": _hash(binder)}
    more = {"cli_challenge": challenge, "cli_port": port, "expires_at": now + ATTEMPT_MS}
    tx.execute(insert(sign_in_attempts).values(**row, **more))
    return state


def nonce_of(vault: Vault, state: str) -> str:
    return vault.mac(f"oidc-nonce:{state}")


def verifier_of(vault: Vault, state: str) -> str:
    return vault.mac(f"oidc-pkce:{state}")


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def use_attempt(tx: Connection, state: str, binder: str, now: int) -> tuple[AttemptRow, ProviderRow]:
    """Mark a sign-in attempt as used; return the attempt and its provider. Raises OidcStateInvalid if the attempt is
    unknown, used, expired or of another browser."""
    row = _BY_STATE.first(tx, state=_hash(state))
    if row is None or row.used_at is not None or row.expires_at <= now:
        raise OidcStateInvalid("This sign-in is unknown, was completed already or took longer than ten minutes.")
    if not hmac.compare_digest(row.binder_hash, _hash(binder)):
        raise OidcStateInvalid("This sign-in was started in another browser.")
    tx.execute(update(sign_in_attempts).where(_a.state_hash == row.state_hash).values(used_at=now))
    return row, provider_row(tx, row.provider_id)


def find_user(ctx: Context, provider: ProviderRow, claims: Json) -> PrincipalRow:
    """Return the user in the provider's tenant who matches these ID-token claims, or raise OidcRefused. The first
    sign-in links the user to the provider's account, and creates the user if none exists and creation is allowed."""
    ctx.scope = tenant_scope(ctx.tx, provider.tenant_id)
    email = _verified_email(provider, claims)
    user = _linked(ctx.tx, provider, str(claims["sub"])) or _link(ctx, provider, claims, email)
    if user.disabled_at is not None:
        raise OidcRefused(f"{user.name} is disabled.")
    return user


def issue_code(tx: Connection, attempt: AttemptRow, principal_id: str, now: int) -> str:
    """Issue a code for the CLI that started the attempt. The code works once, and only with the verifier of the CLI's
    challenge."""
    code = secrets.token_urlsafe(24)
    changes = {"code_hash": _hash(code), "principal_id": principal_id, "expires_at": now + CODE_MS}
    mine = sign_in_attempts.c.state_hash == attempt.state_hash
    tx.execute(update(sign_in_attempts).where(mine).values(**changes))
    return code


def redeem_code(tx: Connection, code: str, verifier: str, now: int) -> PrincipalId:
    row = _BY_CODE.first(tx, code=_hash(code))
    challenge = challenge_of(verifier)
    valid = row and row.expires_at > now and hmac.compare_digest(row.cli_challenge or "", challenge)
    if row is None or row.principal_id is None or not valid:
        raise OidcStateInvalid("This code is unknown, used, older than two minutes, or was issued to another CLI.")
    tx.execute(delete(sign_in_attempts).where(_a.state_hash == row.state_hash))
    return row.principal_id


def forget_old(tx: Connection, now: int) -> int:
    return delete_some(tx, sign_in_attempts, sign_in_attempts.c.expires_at < now)


def _verified_email(provider: ProviderRow, claims: Json) -> str:
    email = claims.get("email")
    if not isinstance(email, str) or email.count("@") != 1 or len(email) > 254:
        raise OidcRefused("The provider did not send your e-mail address.")
    if claims.get("email_verified") is not True:
        raise OidcRefused("The provider has not verified your e-mail address.")
    email = email.lower()
    if provider.email_domains and email.rpartition("@")[2] not in provider.email_domains:
        raise OidcRefused("Addresses of your domain are not accepted here.")
    return email


def _linked(tx: Connection, provider: ProviderRow, subject: str) -> PrincipalRow | None:
    here = {"tenant": provider.tenant_id, "issuer": provider.issuer, "subject": subject}
    principal_id = tx.execute(_LINKED, here).scalar()
    return None if principal_id is None else get_principal(tx, principal_id)


def _link(ctx: Context, provider: ProviderRow, claims: Json, email: str) -> PrincipalRow:
    member = find_by_email(ctx.tx, provider.tenant_id, email)
    if member is not None:
        _check_unlinked(ctx.tx, provider, member)
    invitation = None if member else invitations.find_open(ctx.tx, provider.tenant_id, email, ctx.now)
    if invitation is not None:
        member = invitations.create_invited_user(ctx, invitation, password_hash=None)
    if member is None:
        member = _create_user(ctx, provider, claims, email)
    link = {"tenant_id": provider.tenant_id, "issuer": provider.issuer, "subject": claims["sub"]}
    ctx.tx.execute(insert(linked_identities).values(**link, principal_id=member.id, created_at=ctx.now))
    ctx.principal = Principal(member.id, "user", member.name, member.tenant_id)
    ctx.resource_id, ctx.reason = member.id, f"verified by {provider.issuer}"
    ctx.emit("tenancy.identity.linked", member.id, {"provider_id": provider.id, "issuer": provider.issuer})
    return member


def _check_unlinked(tx: Connection, provider: ProviderRow, member: PrincipalRow) -> None:
    """Raise OidcRefused if the user is already linked to an account at this provider. A matching e-mail address is not
    enough, because the provider may have reassigned the address to another person."""
    if tx.execute(_SUBJECTS, {"principal": member.id, "issuer": provider.issuer}).first():
        raise OidcRefused("This account belongs to another person at the provider.")


def _create_user(ctx: Context, provider: ProviderRow, claims: Json, email: str) -> PrincipalRow:
    if provider.default_role is None:
        raise OidcRefused("You have no invitation to this tenant.")
    grantor = get_principal(ctx.tx, provider.created_by)
    caller = ctx.principal
    try:
        if grantor.disabled_at is not None:
            raise OidcRefused("The administrator who set up this provider is disabled.")
        ctx.principal = principal_of(ctx.tx, grantor)
        ctx.allow("tenancy.user.create")
        roles.check_holds_all(ctx.tx, ctx.principal, provider.default_role, ctx.scope)
    except Problem as error:
        raise OidcRefused("The administrator who set up this provider may no longer grant its default role.") from error
    finally:
        ctx.principal = caller
    name = "".join(c for c in str(claims.get("name") or email) if c.isprintable())[:120] or email
    member = users.create_user(ctx, provider.tenant_id, email=email, name=name, password_hash=None)
    bind(ctx.tx, member.id, provider.default_role, *ctx.scope.chain[0], provider.tenant_id, ctx.now)
    return member


def new_binder() -> str:
    return secrets.token_urlsafe(24)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
