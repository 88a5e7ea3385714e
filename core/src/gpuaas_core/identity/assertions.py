"""Client assertions (private_key_jwt): service accounts and nodes sign in with a JWT that they sign with their private
key. The platform stores only the public key."""

import json
from collections.abc import Sequence
from typing import TypedDict, Unpack

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey
from sqlalchemy import Connection, bindparam, insert, select, update

from ..iam.directory import find_principal
from ..iam.rows import PrincipalRow
from ..kit.db import delete_some, insert_new
from ..kit.ids import new_id
from ..kit.json_types import Json
from ..kit.rows import Query
from .errors import AssertionRefused, KeyNotAccepted
from .rows import KeyId, KeyRow
from .tables import principal_keys, used_assertions

ISSUER = "gpuaas"
ASSERTION_MAX_S = 60
SKEW_S = 30
_k = principal_keys.c
KEYS = Query(select(principal_keys), KeyRow)
_ACTIVE = KEYS.where(_k.principal_id == bindparam("principal"), _k.retired_at.is_(None)).order_by(_k.id.desc())
_USED = update(principal_keys).where(_k.id == bindparam("key")).values(last_used_at=bindparam("now"))


class NodeKey(TypedDict, total=False):
    """The columns of `principal_keys` that only keys of nodes have."""

    generation: int
    thumbprint: str
    origin: str
    expires_at: int


def check_public_jwk(jwk: Json) -> Json:
    """Return the public members of an Ed25519 or P-256 key. Raises KeyNotAccepted for another kind of key, and for a
    JWK that contains a private key."""
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


def _import_key(jwk: Json) -> OKPKey | ECKey:
    members = jwk_members(jwk)
    return OKPKey.import_key(members) if jwk.get("kty") == "OKP" else ECKey.import_key(members)


def jwk_members(jwk: Json) -> dict[str, str | list[str]]:
    """Return the members of a JWK whose value is a string or a list of strings. Other members, such as times, do not
    define the key."""
    members: dict[str, str | list[str]] = {}
    for name, value in jwk.items():
        if isinstance(value, str):
            members[name] = value
        elif isinstance(value, Sequence):
            members[name] = [part for part in value if isinstance(part, str)]
    return members


def add_key(tx: Connection, principal_id: str, jwk: Json, now: int, **more: Unpack[NodeKey]) -> KeyId:
    key_id = new_id("key")
    row = {"id": key_id, "principal_id": principal_id, "public_jwk": jwk, "created_at": now}
    tx.execute(insert(principal_keys).values(**row, **more))
    return KeyId(key_id)


def check_assertion(tx: Connection, assertion: str, now: int) -> tuple[PrincipalRow, KeyId]:
    """Verify a client assertion; return its principal and the id of the key that signed it. Raises AssertionRefused if
    the signature, issuer, audience or age (at most 60 s) is wrong, or if the `jti` was used before."""
    issuer, kid = read_unverified(assertion)
    row = find_principal(tx, issuer)
    keys = [] if row is None or row.disabled_at is not None else _active_keys(tx, row.id, kid)
    if row is None or not keys:
        raise AssertionRefused("No enabled service account or node with this id has such a key.")
    _, key_id = verify(tx, assertion, keys, row.id, now)
    mark_used(tx, key_id, now)
    return row, key_id


def verify(tx: Connection, assertion: str, keys: Sequence[KeyRow], principal_id: str, now: int) -> tuple[Json, KeyId]:
    """Verify the signature and claims of an assertion; return the claims and the id of the signing key. Raises
    AssertionRefused if the assertion is invalid or was used before."""
    claims, key_id = _verified_claims(assertion, keys)
    jti, expires = _check_claims(claims, principal_id, now // 1000)
    expiry = (expires + SKEW_S) * 1000
    if not insert_new(tx, used_assertions, principal_id=principal_id, jti=jti, expires_at=expiry):
        raise AssertionRefused("This assertion was used before: each jti works once.")
    return claims, key_id


def mark_used(tx: Connection, key_id: str, now: int) -> None:
    tx.execute(_USED, {"key": key_id, "now": now})


def forget_old_assertions(tx: Connection, now: int) -> int:
    return delete_some(tx, used_assertions, used_assertions.c.expires_at < now)


def _active_keys(tx: Connection, principal_id: str, kid: str | None) -> list[KeyRow]:
    return [key for key in _ACTIVE.all(tx, principal=principal_id) if kid is None or key.id == kid]


def read_unverified(assertion: str) -> tuple[str, str | None]:
    """Return the issuer and the key id (`kid`, or None) of an assertion that is not verified yet. Raises
    AssertionRefused if the text is not a signed JWT."""
    try:
        token = jws.extract_compact(assertion.encode())
        issuer, kid = str(json.loads(token.payload)["iss"]), token.headers().get("kid")
        kid = None if kid is None else str(kid)
        f"{issuer}{kid}".encode()  # rejects lone surrogates
        return issuer, kid
    except (JoseError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AssertionRefused("The client assertion is not a signed JWT.") from error


def _verified_claims(assertion: str, keys: Sequence[KeyRow]) -> tuple[Json, KeyId]:
    failure: Exception | None = None
    for key in keys:
        try:
            read = jwt.decode(assertion, _import_key(key.public_jwk), algorithms=["EdDSA", "Ed25519", "ES256"])
            return read.claims, key.id
        except (JoseError, ValueError, TypeError) as error:
            failure = error
    raise AssertionRefused("The signature does not match a registered key.") from failure


def _check_claims(claims: Json, principal_id: str, now_s: int) -> tuple[str, int]:
    """Return the id of the assertion (`jti`) and its expiry in seconds since 1970. Raises AssertionRefused if a claim
    is invalid."""
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
    return jti, expires
