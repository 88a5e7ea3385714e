"""Proving who calls: passwords (argon2), client assertions (private_key_jwt), and the opaque tokens both lead to.

Tokens are random and stored hashed: revocation is a row, effective on the next request, and nothing in the store can be
used to sign in. See docs/decisions/0003-opaque-tokens.md.
"""

import functools
import hashlib
import json
import secrets
from dataclasses import replace
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey
from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from ..access.context import TokenExpired, Unauthenticated
from ..access.evaluate import Principal
from ..edge.console import PREFIX as CONSOLE
from ..iam.principals import HAS_GRANTS, principal_of, with_grants
from ..kit.db import delete_some, insert_into
from ..kit.ids import new_id
from ..tenancy.errors import AssertionRefused, KeyNotAccepted
from ..tenancy.tables import principal_keys, principals, sessions, used_assertions

ISSUER = "gpuaas"
USER_TOKEN_S = 12 * 3600
CONSOLE_IDLE_S = 3600  # of the same half a day: a console nobody uses is signed out
MACHINE_TOKEN_S = 15 * 60
ASSERTION_MAX_S = 60
SKEW_S = 30

_hasher = PasswordHasher()

# Asked on every request, so built once.
_BY_TOKEN = (
    select(
        principals,
        sessions.c.expires_at,
        sessions.c.idle_until,
        sessions.c.revoked_at,
        sessions.c.key_id,
        HAS_GRANTS,
    )
    .join(sessions, sessions.c.principal_id == principals.c.id)
    .where(sessions.c.token_hash == bindparam("token"))
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
    tx: Connection,
    principal_id: str,
    *,
    lives_s: int,
    now: int,
    address: str | None = None,
    key_id: str | None = None,
    console: bool = False,
) -> str:
    token = f"{CONSOLE if console else 'gpt_'}{secrets.token_urlsafe(32)}"
    row = {"token_hash": token_hash(token), "id": new_id("ses"), "principal_id": principal_id, "created_at": now}
    more = {"expires_at": now + lives_s * 1000, "address": address, "key_id": key_id}
    idle_until = now + CONSOLE_IDLE_S * 1000 if console else None
    tx.execute(insert(sessions).values(**row, **more, idle_until=idle_until))
    return token


def renew_session(tx: Connection, token: str, now: int) -> None:
    """A console session that is used goes on, but never past its half day."""
    alive = (sessions.c.token_hash == token_hash(token)) & (sessions.c.idle_until > now)
    tx.execute(update(sessions).where(alive).values(idle_until=now + CONSOLE_IDLE_S * 1000))


def close_session(tx: Connection, token: str, now: int) -> None:
    close_sessions(tx, sessions.c.token_hash == token_hash(token), now=now)


def close_sessions(tx: Connection, *which: Any, now: int) -> int:
    """They are dead on their next request, and stay so if their owner is enabled again."""
    return tx.execute(update(sessions).where(*which, sessions.c.revoked_at.is_(None)).values(revoked_at=now)).rowcount


def end_all_sessions(tx: Connection) -> int:
    """After a restore: one that was ended since would live again."""
    return tx.execute(delete(sessions)).rowcount


def forget_old_sessions(tx: Connection, now: int) -> int:
    return delete_some(tx, sessions, sessions.c.expires_at < now - 3600_000)


def forget_old_assertions(tx: Connection, now: int) -> int:
    return delete_some(tx, used_assertions, used_assertions.c.expires_at < now)


def authenticate(tx: Connection, token: str, now: int, *, lent: bool = True) -> Principal:
    """`lent`: with all that is lent to it, which can be much; without, it only says that there is something."""
    row = tx.execute(_BY_TOKEN, {"token": token_hash(token)}).first()
    if row is None:
        raise Unauthenticated("This bearer token is unknown.")
    if row.disabled_at is not None:
        raise Unauthenticated(f"{row.name} is disabled.")
    if row.revoked_at is not None or row.expires_at <= now or (row.idle_until or row.expires_at) <= now:
        raise TokenExpired("This access token has expired or was revoked.")
    ends_at = min(row.expires_at, row.idle_until or row.expires_at)
    principal = replace(principal_of(tx, row, row.key_id), session_ends_at=ends_at, borrows=bool(row.has_grants))
    return with_grants(tx, principal, now) if lent and row.has_grants else principal


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


def add_key(tx: Connection, principal_id: str, jwk: dict[str, Any], now: int, **more: Any) -> str:
    key_id = new_id("key")
    row = {"id": key_id, "principal_id": principal_id, "public_jwk": jwk, "created_at": now}
    tx.execute(insert(principal_keys).values(**row, **more))
    return key_id


def check_assertion(tx: Connection, assertion: str, now: int) -> tuple[Row[Any], str]:
    """Signature, issuer, audience, age at most 60 s, jti never seen: then the principal it proves, and the key."""
    issuer, kid = claimed(assertion)
    row = tx.execute(select(principals).where(principals.c.id == issuer)).first()
    keys = [] if row is None or row.disabled_at is not None else _active_keys(tx, row.id, kid)
    if row is None or not keys:
        raise AssertionRefused("No enabled service account or node with this id has such a key.")
    _, key_id = verified(tx, assertion, keys, row.id, now)
    mark_used(tx, key_id, now)
    return row, key_id


def verified(
    tx: Connection, assertion: str, keys: list[Row[Any]], principal_id: str, now: int
) -> tuple[dict[str, Any], str]:
    """What it claims and the key that signed it; it cannot be shown again."""
    claims, key_id = _verified_claims(assertion, keys)
    _check_claims(claims, principal_id, now // 1000)
    expiry = (claims["exp"] + SKEW_S) * 1000
    use = insert_into(tx, used_assertions).values(principal_id=principal_id, jti=claims["jti"], expires_at=expiry)
    if tx.execute(use.on_conflict_do_nothing().returning(used_assertions.c.jti)).first() is None:
        raise AssertionRefused("This assertion was used before: each jti works once.")
    return claims, key_id


def mark_used(tx: Connection, key_id: str, now: int) -> None:
    tx.execute(update(principal_keys).where(principal_keys.c.id == key_id).values(last_used_at=now))


def _active_keys(tx: Connection, principal_id: str, kid: str | None) -> list[Row[Any]]:
    mine = [principal_keys.c.principal_id == principal_id, principal_keys.c.retired_at.is_(None)]
    if kid is not None:
        mine.append(principal_keys.c.id == kid)
    return list(tx.execute(select(principal_keys).where(*mine).order_by(principal_keys.c.id.desc())))


def claimed(assertion: str) -> tuple[str, str | None]:
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
