"""HTTP client for OpenID providers: metadata, keys, exchange of a code for an ID token, verification of that token.

Providers are not trusted: https only, no redirects, limits on time and size. No claim of an ID token is used before its
signature was verified with one of the issuer's published asymmetric keys.
"""

import asyncio
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack
from urllib.parse import urlsplit

import httpx2
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from ..http.console import LOOPBACK
from ..identity.assertions import jwk_members
from ..kit.clock import Clock
from ..kit.json_types import Json, JsonValue
from .errors import IssuerNotAccepted, IssuerUnreachable, OidcRefused

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA", "Ed25519"})
# Only asymmetric keys: no shared secrets.
KEY_TYPES: dict[str, type[RSAKey | ECKey | OKPKey]] = {
    "RSA": RSAKey,
    "EC": ECKey,
    "OKP": OKPKey,
}
METADATA_MS = 3600_000
KEYS_AGAIN_MS = 10_000  # an unknown key id triggers a new fetch, at most this often
MOST_BYTES = 256 * 1024
SKEW_S = 30


class _Form(TypedDict, total=False):
    data: dict[str, str]
    auth: tuple[str, str] | None


class Issuers:
    def __init__(self, clock: Clock, *, loopback: bool) -> None:
        """Create the client. `loopback` permits a provider on this host without https, for a platform that itself uses
        plain http."""
        self._clock, self._loopback = clock, loopback
        self._metadata: dict[str, tuple[int, Json]] = {}
        self._keys: dict[str, tuple[int, list[Json]]] = {}

    def check_address(self, url: str) -> str:
        try:
            parts = urlsplit(url)
            valid = bool(parts.hostname) and not parts.username and not parts.fragment and parts.port != 0
        except ValueError:
            valid, parts = False, urlsplit("")
        if not valid or not (parts.scheme == "https" or self._plain(parts.scheme, parts.hostname)):
            raise IssuerNotAccepted(f"{url[:200]!r} is not an https address.")
        return url

    def _plain(self, scheme: str, host: str | None) -> bool:
        return self._loopback and scheme == "http" and host in LOOPBACK

    async def metadata(self, issuer: str) -> Json:
        read_at, known = self._metadata.get(issuer, (0, {}))
        if known and self._clock() - read_at < METADATA_MS:
            return known
        found = await self._fetch("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise OidcRefused("The provider's metadata names another issuer.")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            self.check_address(str(found.get(name)))
        self._metadata[issuer] = (self._clock(), found)
        return found

    async def redeem(self, issuer: str, form: dict[str, str], secret: str | None) -> str:
        """Exchange an authorization code for the ID token. With a `secret`, the client authenticates by HTTP Basic if
        the provider supports it, otherwise in the form. Raises OidcRefused if the provider returns no ID token."""
        metadata = await self.metadata(issuer)
        listed = metadata.get("token_endpoint_auth_methods_supported")
        methods = listed if listed and isinstance(listed, Sequence) else ["client_secret_basic"]
        auth = None
        if secret is not None and "client_secret_basic" in methods:
            auth = (form["client_id"], secret)
        elif secret is not None:
            form = form | {"client_secret": secret}
        answer = await self._fetch("POST", str(metadata["token_endpoint"]), data=form, auth=auth)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise OidcRefused("The provider returned no ID token for this code.")
        return token

    async def claims(self, issuer: str, client_id: str, token: str, nonce: str) -> Json:
        header = _header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise OidcRefused(f"The ID token is signed with {str(algorithm)[:20]!r}, which is not accepted.")
        key = await self._key(issuer, algorithm, kid)
        try:
            claims = jwt.decode(token, key, algorithms=[algorithm]).claims
        except (JoseError, ValueError, TypeError) as error:
            raise OidcRefused("The signature of the ID token is not the issuer's.") from error
        _check(claims, issuer, client_id, nonce, self._clock() // 1000)
        return claims

    async def _key(self, issuer: str, algorithm: str, kid: object) -> RSAKey | ECKey | OKPKey:
        for again in (False, True):
            found = [key for key in await self._jwks(issuer, again=again) if _fits(key, algorithm, kid)]
            if len(found) == 1 or (found and kid is not None):
                try:
                    return KEY_TYPES[str(found[0]["kty"])].import_key(jwk_members(found[0]))
                except (JoseError, ValueError, TypeError, KeyError) as error:
                    raise OidcRefused("The issuer's key cannot be read.") from error
        raise OidcRefused("The issuer publishes no such key.")

    async def _jwks(self, issuer: str, *, again: bool) -> list[Json]:
        read_at, known = self._keys.get(issuer, (0, []))
        age = self._clock() - read_at
        if known and age < (KEYS_AGAIN_MS if again else METADATA_MS):
            return known
        found = await self._fetch("GET", str((await self.metadata(issuer))["jwks_uri"]))
        listed = found.get("keys")
        keys = [key for key in listed if isinstance(key, Mapping)] if isinstance(listed, Sequence) else []
        self._keys[issuer] = (self._clock(), keys)
        return keys

    async def _fetch(self, method: str, url: str, **request: Unpack[_Form]) -> Json:
        self.check_address(url)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        proxied = url.startswith("https:")  # a provider on this host needs no proxy
        try:
            async with (
                asyncio.timeout(10),
                httpx2.AsyncClient(timeout=5, trust_env=proxied) as http,
                http.stream(method, url, headers=headers, follow_redirects=False, **request) as answer,
            ):
                body = await _bounded(answer)
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            raise IssuerUnreachable("The identity provider does not answer.", retry_after_s=5) from error
        if answer.status_code != 200:
            raise OidcRefused(f"The identity provider answered {answer.status_code}.")
        try:
            read: JsonValue = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise OidcRefused("The identity provider's response is not JSON.") from error
        return read if isinstance(read, Mapping) else {}


async def _bounded(answer: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            raise OidcRefused("The identity provider's response is too large.")
    return bytes(body)


def _header(token: str) -> Json:
    try:
        return jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        raise OidcRefused("The ID token is not a signed JWT.") from error


def _fits(key: Json, algorithm: str, kid: object) -> bool:
    wanted = {"R": "RSA", "P": "RSA"}.get(algorithm[0]) or ("EC" if algorithm.startswith("ES") else "OKP")
    return key.get("kty") == wanted and key.get("use", "sig") == "sig" and (kid is None or key.get("kid") == kid)


def _check(claims: Json, issuer: str, client_id: str, nonce: str, now_s: int) -> None:
    audience, subject = claims.get("aud"), claims.get("sub")
    issued, expires = claims.get("iat"), claims.get("exp")
    if claims.get("iss") != issuer:
        raise OidcRefused("The ID token was issued by another issuer.")
    several = isinstance(audience, list) and len(audience) > 1
    if client_id not in (audience if isinstance(audience, list) else [audience]):
        raise OidcRefused("The ID token is for another client (aud).")
    if claims.get("azp", None if several else client_id) != client_id:
        raise OidcRefused("The ID token was requested by another client (azp).")
    if not isinstance(issued, int | float) or not isinstance(expires, int | float):
        raise OidcRefused("The ID token has no iat or exp.")
    if expires <= now_s - SKEW_S or issued > now_s + SKEW_S:
        raise OidcRefused("The ID token has expired or was issued in the future.")
    given = claims.get("nonce")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()):
        raise OidcRefused("The ID token belongs to another sign-in (nonce).")
    if not isinstance(subject, str) or not 1 <= len(subject) <= 255:
        raise OidcRefused("The ID token has no sub.")
