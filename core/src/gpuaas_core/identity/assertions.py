"""Client assertions (private_key_jwt): how service accounts and nodes sign in with a registered public key."""

import json
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey
from sqlalchemy import Connection, Row, insert, select, update

from ..iam.directory import find_principal
from ..kit.db import delete_some, insert_new
from ..kit.ids import new_id
from .errors import AssertionRefused, KeyNotAccepted
from .tables import principal_keys, used_assertions

ISSUER = "gpuaas"
ASSERTION_MAX_S = 60
SKEW_S = 30


def check_public_jwk(jwk: dict[str, Any]) -> dict[str, Any]:
    """Returns only the public members of a supported key. A private key is rejected and not stored."""
    if "d" in jwk:
        raise KeyNotAccepted("This JWK contains a private key. Create a new key pair and send only the public key.")
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
    """The principal that signed it, and the key. Checks signature, issuer, audience, age (60 s) and that jti is new."""
    issuer, kid = read_unverified(assertion)
    row = find_principal(tx, issuer)
    keys = [] if row is None or row.disabled_at is not None else _active_keys(tx, row.id, kid)
    if row is None or not keys:
        raise AssertionRefused("No enabled service account or node with this id has such a key.")
    _, key_id = verify(tx, assertion, keys, row.id, now)
    mark_used(tx, key_id, now)
    return row, key_id


def verify(
    tx: Connection, assertion: str, keys: list[Row[Any]], principal_id: str, now: int
) -> tuple[dict[str, Any], str]:
    """The claims and the id of the key that signed them. The assertion cannot be used again."""
    claims, key_id = _verified_claims(assertion, keys)
    _check_claims(claims, principal_id, now // 1000)
    expiry = (claims["exp"] + SKEW_S) * 1000
    if not insert_new(tx, used_assertions, principal_id=principal_id, jti=claims["jti"], expires_at=expiry):
        raise AssertionRefused("This assertion was used before: each jti works once.")
    return claims, key_id


def mark_used(tx: Connection, key_id: str, now: int) -> None:
    tx.execute(update(principal_keys).where(principal_keys.c.id == key_id).values(last_used_at=now))


def forget_old_assertions(tx: Connection, now: int) -> int:
    return delete_some(tx, used_assertions, used_assertions.c.expires_at < now)


def _active_keys(tx: Connection, principal_id: str, kid: str | None) -> list[Row[Any]]:
    mine = [principal_keys.c.principal_id == principal_id, principal_keys.c.retired_at.is_(None)]
    if kid is not None:
        mine.append(principal_keys.c.id == kid)
    return list(tx.execute(select(principal_keys).where(*mine).order_by(principal_keys.c.id.desc())))


def read_unverified(assertion: str) -> tuple[str, str | None]:
    """The issuer and key id (`kid`) that the assertion names, before anything of it is verified."""
    try:
        token = jws.extract_compact(assertion.encode())
        issuer, kid = str(json.loads(token.payload)["iss"]), token.headers().get("kid")
        kid = None if kid is None else str(kid)
        f"{issuer}{kid}".encode()  # rejects lone surrogates
        return issuer, kid
    except (JoseError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AssertionRefused("The client assertion is not a signed JWT.") from error


def _verified_claims(assertion: str, keys: list[Row[Any]]) -> tuple[dict[str, Any], str]:
    failure: Exception | None = None
    for key in keys:
        try:
            read = jwt.decode(assertion, _import_key(key.public_jwk), algorithms=["EdDSA", "Ed25519", "ES256"])
            return read.claims, key.id
        except (JoseError, ValueError, TypeError) as error:
            failure = error
    raise AssertionRefused("The signature does not match a registered key.") from failure


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
        raise AssertionRefused("The assertion is expired, issued in the future, or valid for longer than 60 seconds.")
