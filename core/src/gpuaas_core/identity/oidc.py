"""Signing in through an OpenID provider: authorization code with PKCE, one attempt at a time.

An attempt is a row found by the hash of its `state`, used once and soon over. Its nonce and PKCE verifier are computed
from the state with the platform's key and stored nowhere. It is bound to the browser that began it by a cookie, and to
a CLI that began it by a challenge of its own.

People are recognised by (issuer, subject), never by an e-mail address alone. A first sign-in is linked only if the
provider has verified the address and the tenant knows it: as a member, as somebody invited, or by a rule for newcomers.
"""

import base64
import hashlib
import hmac
import secrets
from typing import Any, Protocol

from sqlalchemy import Connection, Row, delete, insert, select, update

from ..access.context import Context
from ..access.evaluate import Principal
from ..iam import roles
from ..iam.principals import principal_of
from ..kit.db import delete_some
from ..kit.problems import Problem
from ..ledger.events import declare
from ..tenancy import service
from ..tenancy.errors import OidcRefused, OidcStateInvalid
from ..tenancy.reads import tenant_scope
from ..tenancy.tables import identity_providers, linked_identities, principals, sign_in_attempts
from . import invitations

declare({"tenancy.identity.linked": "A person can sign in through an identity provider from now on."})

ATTEMPT_MS = 10 * 60_000
CODE_MS = 2 * 60_000


class Vault(Protocol):
    def mac(self, message: str) -> str: ...


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


def take(tx: Connection, state: str, binder: str, now: int) -> tuple[Row[Any], Row[Any]]:
    """The attempt and its provider. Used up by this, whatever comes of it; a stranger's browser does not use it up."""
    mine = sign_in_attempts.c.state_hash == _hash(state)
    row = tx.execute(select(sign_in_attempts).where(mine).with_for_update()).first()
    if row is None or row.used_at is not None or row.expires_at <= now:
        raise OidcStateInvalid("This sign-in is unknown, was completed already or took longer than ten minutes.")
    if not hmac.compare_digest(row.binder_hash, _hash(binder)):
        raise OidcStateInvalid("This sign-in was begun in another browser.")
    tx.execute(update(sign_in_attempts).where(mine).values(used_at=now))
    chosen = identity_providers.c.id == row.provider_id
    return row, tx.execute(select(identity_providers).where(chosen)).one()


def person(ctx: Context, provider: Row[Any], claims: dict[str, Any]) -> Row[Any]:
    """Who this is to the tenant of the provider; linked, and if need be made, on the first time."""
    ctx.scope = tenant_scope(ctx.tx, provider.tenant_id)
    email = _verified_email(provider, claims)
    known = _linked(ctx.tx, provider, claims["sub"]) or _first_time(ctx, provider, claims, email)
    if known.disabled_at is not None:
        raise OidcRefused(f"{known.name} is disabled.")
    return known


def give_code(tx: Connection, attempt: Row[Any], principal_id: str, now: int) -> str:
    """For the CLI that began this: only whoever has the verifier of its challenge can use it, once."""
    code = secrets.token_urlsafe(24)
    done = {"code_hash": _hash(code), "principal_id": principal_id, "expires_at": now + CODE_MS}
    mine = sign_in_attempts.c.state_hash == attempt.state_hash
    tx.execute(update(sign_in_attempts).where(mine).values(**done))
    return code


def redeem_code(tx: Connection, code: str, verifier: str, now: int) -> str:
    mine = sign_in_attempts.c.code_hash == _hash(code)
    row = tx.execute(select(sign_in_attempts).where(mine).with_for_update()).first()
    good = row is not None and row.expires_at > now and hmac.compare_digest(row.cli_challenge, challenge_of(verifier))
    if row is None or not good:
        raise OidcStateInvalid("This code is unknown, used, older than two minutes, or was given to another CLI.")
    tx.execute(delete(sign_in_attempts).where(mine))
    return row.principal_id


def forget_old(tx: Connection, now: int) -> int:
    return delete_some(tx, sign_in_attempts, sign_in_attempts.c.expires_at < now)


def _verified_email(provider: Row[Any], claims: dict[str, Any]) -> str:
    email = claims.get("email")
    if not isinstance(email, str) or email.count("@") != 1 or len(email) > 254:
        raise OidcRefused("The provider does not say your e-mail address.")
    if claims.get("email_verified") is not True:
        raise OidcRefused("The provider has not verified your e-mail address.")
    email = email.lower()
    if provider.email_domains and email.rpartition("@")[2] not in provider.email_domains:
        raise OidcRefused("Addresses of your domain are not accepted here.")
    return email


def _linked(tx: Connection, provider: Row[Any], subject: str) -> Row[Any] | None:
    link = linked_identities.c
    here = (link.tenant_id == provider.tenant_id) & (link.issuer == provider.issuer) & (link.subject == subject)
    joined = principals.join(linked_identities, link.principal_id == principals.c.id)
    return tx.execute(select(principals).select_from(joined).where(here)).first()


def _first_time(ctx: Context, provider: Row[Any], claims: dict[str, Any], email: str) -> Row[Any]:
    mine = (principals.c.tenant_id == provider.tenant_id) & (principals.c.email == email)
    member = ctx.tx.execute(select(principals).where(mine)).first()
    if member is not None:
        _check_unlinked(ctx.tx, provider, member)
    invitation = None if member else invitations.open_for(ctx.tx, provider.tenant_id, email, ctx.now)
    if invitation is not None:
        member = invitations.take_up(ctx, invitation, password_hash=None)
    if member is None:
        member = _newcomer(ctx, provider, claims, email)
    link = {"tenant_id": provider.tenant_id, "issuer": provider.issuer, "subject": claims["sub"]}
    ctx.tx.execute(insert(linked_identities).values(**link, principal_id=member.id, created_at=ctx.now))
    ctx.principal = Principal(member.id, "user", member.name, member.tenant_id)
    ctx.resource_id, ctx.reason = member.id, f"verified by {provider.issuer}"
    ctx.emit("tenancy.identity.linked", member.id, {"provider_id": provider.id, "issuer": provider.issuer})
    return member


def _check_unlinked(tx: Connection, provider: Row[Any], member: Row[Any]) -> None:
    """An address that moved to another person at the provider must not carry the account with it."""
    link = linked_identities.c
    taken = (link.principal_id == member.id) & (link.issuer == provider.issuer)
    if tx.execute(select(link.subject).where(taken)).first():
        raise OidcRefused("This account belongs to another person at the provider.")


def _newcomer(ctx: Context, provider: Row[Any], claims: dict[str, Any], email: str) -> Row[Any]:
    if provider.default_role is None:
        raise OidcRefused("Nobody has invited you to this tenant.")
    giver = ctx.tx.execute(select(principals).where(principals.c.id == provider.created_by)).one()
    nobody = ctx.principal
    try:
        if giver.disabled_at is not None:
            raise OidcRefused("Whoever set this up is no longer active.")
        ctx.principal = principal_of(ctx.tx, giver)
        ctx.allow("tenancy.user.create")
        roles.check_holds_all(ctx.tx, ctx.principal, provider.default_role, ctx.scope)
    except Problem as error:
        raise OidcRefused("Whoever set this up may no longer give newcomers their role.") from error
    finally:
        ctx.principal = nobody
    said = "".join(c for c in str(claims.get("name") or email) if c.isprintable())[:120] or email
    member = service.add_user(ctx, provider.tenant_id, email=email, name=said, password_hash=None)
    service.bind(ctx.tx, member.id, provider.default_role, *ctx.scope.chain[0], provider.tenant_id, ctx.now)
    return member


def new_binder() -> str:
    return secrets.token_urlsafe(24)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
