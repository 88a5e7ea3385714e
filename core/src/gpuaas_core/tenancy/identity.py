"""Proving who calls: passwords (argon2), client assertions (private_key_jwt), and the opaque tokens both lead to.

Tokens are random and stored hashed: revocation is a row, effective on the next request, and nothing in the store can be
used to sign in. See docs/decisions/0003-opaque-tokens.md.
"""

import functools
import hashlib
import json
import secrets
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey
from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from ..access.context import TokenExpired, Unauthenticated
from ..access.evaluate import Binding, Principal
from ..access.permissions import PERMISSIONS
from ..kit.db import insert_into
from ..kit.ids import new_id
from .errors import AssertionRefused, KeyNotAccepted
from .tables import custom_roles, principal_keys, principals, role_bindings, sessions, used_assertions

ISSUER = "gpuaas"
USER_TOKEN_S = 12 * 3600
MACHINE_TOKEN_S = 15 * 60
ASSERTION_MAX_S = 60
SKEW_S = 30

_hasher = PasswordHasher()

# Asked on every request, so built once.
_BY_TOKEN = (
    select(principals, sessions.c.expires_at, sessions.c.revoked_at)
    .join(sessions, sessions.c.principal_id == principals.c.id)
    .where(sessions.c.token_hash == bindparam("token"))
)
_HELD_BY = (
    select(role_bindings, custom_roles.c.id.label("own_role"), custom_roles.c.permissions.label("own_keys"))
    .outerjoin(
        custom_roles,
        (custom_roles.c.tenant_id == role_bindings.c.tenant_id) & (custom_roles.c.name == role_bindings.c.role),
    )
    .where(role_bindings.c.principal_id == bindparam("principal"))
    .order_by(role_bindings.c.id)
)


@functools.cache
def _nobody() -> str:
    return _hasher.hash("nobody has this password")


def hash_password(password: str) -> str:
    return _hasher.hash(password)


def password_matches(stored: str | None, given: str) -> bool:
    """Takes the same time whether or not the account exists."""
    try:
        return _hasher.verify(stored or _nobody(), given) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def open_session(
    tx: Connection, principal_id: str, *, lives_s: int, now: int, address: str | None = None, key_id: str | None = None
) -> str:
    token = f"gpt_{secrets.token_urlsafe(32)}"
    row = {"token_hash": token_hash(token), "id": new_id("ses"), "principal_id": principal_id, "created_at": now}
    more = {"expires_at": now + lives_s * 1000, "address": address, "key_id": key_id}
    tx.execute(insert(sessions).values(**row, **more))
    return token


def close_session(tx: Connection, token: str, now: int) -> None:
    close_sessions(tx, sessions.c.token_hash == token_hash(token), now=now)


def close_sessions(tx: Connection, *which: Any, now: int) -> int:
    """They are dead on their next request, and stay so if their owner is enabled again."""
    return tx.execute(update(sessions).where(*which, sessions.c.revoked_at.is_(None)).values(revoked_at=now)).rowcount


def forget_old_sessions(tx: Connection, now: int) -> None:
    tx.execute(delete(sessions).where(sessions.c.expires_at < now - 3600_000))
    tx.execute(delete(used_assertions).where(used_assertions.c.expires_at < now))


def authenticate(tx: Connection, token: str, now: int) -> Principal:
    row = tx.execute(_BY_TOKEN, {"token": token_hash(token)}).first()
    if row is None:
        raise Unauthenticated("This bearer token is unknown.")
    if row.disabled_at is not None:
        raise Unauthenticated(f"{row.name} is disabled.")
    if row.revoked_at is not None or row.expires_at <= now:
        raise TokenExpired("This access token has expired or was revoked.")
    return principal_of(tx, row)


def principal_of(tx: Connection, row: Row[Any]) -> Principal:
    held = tx.execute(_HELD_BY, {"principal": row.id})
    bindings = tuple(Binding(b.role, (b.scope_kind, b.scope_id), b.id, _own_keys(b)) for b in held)
    return Principal(row.id, row.kind, row.name, row.tenant_id, row.project_id, row.email, bindings)


def _own_keys(row: Row[Any]) -> frozenset[str] | None:
    """The keys of a tenant's own role; one that cannot be read gives nothing."""
    if row.own_role is None:
        return None
    return (
        frozenset(key for key in row.own_keys if key in PERMISSIONS) if isinstance(row.own_keys, list) else frozenset()
    )


def check_public_jwk(jwk: dict[str, Any]) -> dict[str, Any]:
    """Only the public members of a supported key are kept; a private key is refused, not stored."""
    if "d" in jwk:
        raise KeyNotAccepted("This JWK contains a private key. It must never leave its owner: make a new one.")
    wanted = {"OKP": ("kty", "crv", "x"), "EC": ("kty", "crv", "x", "y")}.get(str(jwk.get("kty")), ())
    public = {name: jwk.get(name) for name in wanted}
    if public.get("crv") not in ("Ed25519", "P-256"):
        raise KeyNotAccepted("The key must be Ed25519 or P-256.")
    try:
        _import_key(public)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise KeyNotAccepted("The JWK cannot be read as a public key.") from error
    return public


def _import_key(jwk: dict[str, Any]) -> OKPKey | ECKey:
    return OKPKey.import_key(jwk) if jwk.get("kty") == "OKP" else ECKey.import_key(jwk)


def add_key(tx: Connection, principal_id: str, jwk: dict[str, Any], now: int) -> str:
    key_id = new_id("key")
    row = {"id": key_id, "principal_id": principal_id, "public_jwk": jwk, "created_at": now}
    tx.execute(insert(principal_keys).values(**row))
    return key_id


def check_assertion(tx: Connection, assertion: str, now: int) -> tuple[Row[Any], str]:
    """Signature, issuer, audience, age at most 60 s, jti never seen: then the principal it proves, and the key."""
    issuer, kid = _claimed(assertion)
    row = tx.execute(select(principals).where(principals.c.id == issuer)).first()
    keys = [] if row is None or row.disabled_at is not None else _active_keys(tx, row.id, kid)
    if row is None or not keys:
        raise AssertionRefused("No enabled service account or node with this id has such a key.")
    claims, key_id = _verified_claims(assertion, keys)
    _check_claims(claims, row.id, now // 1000)
    expiry = (claims["exp"] + SKEW_S) * 1000
    use = insert_into(tx, used_assertions).values(principal_id=row.id, jti=claims["jti"], expires_at=expiry)
    if tx.execute(use.on_conflict_do_nothing().returning(used_assertions.c.jti)).first() is None:
        raise AssertionRefused("This assertion was used before: each jti works once.")
    tx.execute(update(principal_keys).where(principal_keys.c.id == key_id).values(last_used_at=now))
    return row, key_id


def _active_keys(tx: Connection, principal_id: str, kid: str | None) -> list[Row[Any]]:
    mine = [principal_keys.c.principal_id == principal_id, principal_keys.c.retired_at.is_(None)]
    if kid is not None:
        mine.append(principal_keys.c.id == kid)
    return list(tx.execute(select(principal_keys).where(*mine).order_by(principal_keys.c.id.desc())))


def _claimed(assertion: str) -> tuple[str, str | None]:
    """Who it says it is from, and the key it names (`kid`); nothing of it is believed yet."""
    try:
        found = jws.extract_compact(assertion.encode())
        issuer, kid = str(json.loads(found.payload)["iss"]), found.headers().get("kid")
        kid = None if kid is None else str(kid)
        f"{issuer}{kid}".encode()  # half characters are no id
        return issuer, kid
    except (JoseError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AssertionRefused("The client assertion is not a signed JWT.") from error


def _verified_claims(assertion: str, keys: list[Row[Any]]) -> tuple[dict[str, Any], str]:
    refusal: Exception | None = None
    for key in keys:
        try:
            read = jwt.decode(assertion, _import_key(key.public_jwk), algorithms=["EdDSA", "Ed25519", "ES256"])
            return read.claims, key.id
        except (JoseError, ValueError, TypeError) as error:
            refusal = error
    raise AssertionRefused("The signature does not match a registered key.") from refusal


def _check_claims(claims: dict[str, Any], principal_id: str, now_s: int) -> None:
    issued, expires, jti = claims.get("iat"), claims.get("exp"), claims.get("jti")
    if claims.get("sub") != principal_id or claims.get("iss") != principal_id:
        raise AssertionRefused("iss and sub must both be the id of the caller.")
    if claims.get("aud") != ISSUER:
        raise AssertionRefused(f"The audience must be exactly {ISSUER!r}.")
    if (
        not isinstance(issued, int)
        or not isinstance(expires, int)
        or not isinstance(jti, str)
        or not 8 <= len(jti) <= 128
        or not jti.isprintable()
    ):
        raise AssertionRefused("iat, exp and jti (8 to 128 printable characters) are required.")
    if expires - issued > ASSERTION_MAX_S or issued > now_s + SKEW_S or expires <= now_s - SKEW_S:
        raise AssertionRefused("The assertion is expired, from the future, or lives longer than 60 seconds.")
