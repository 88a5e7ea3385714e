"""Encryption of secrets for delivery: the platform signs a secret, then encrypts it to the caller's registered key.

The JWE is ECDH-ES with A256GCM around a JWS of the platform. Only the recipient can decrypt it, and the recipient can
verify the sender, the addressee, the operation and the claim epoch.
"""

import base64
import secrets
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from joserfc import jwe
from joserfc.jwk import ECKey, OKPKey

from ..authz.context import Context
from ..custody.vault import Vault
from ..identity.assertions import jwk_members
from ..identity.reads import key_in_use
from ..kit.json_types import JsonValue
from ..kit.problems import Problem
from ..kit.wire import canonical

PURPOSE = "secret-delivery"
LIVES_S = 300
P25519 = 2**255 - 19


class NoKeyToSealTo(Problem):
    status, code, title = 409, "no_key_to_seal_to", "The caller has no registered public key"
    way_out = "Sign in as the app's controller. Secrets are encrypted to the public key of its service account."


def sealed_to_caller(ctx: Context, vault: Vault, claims: Mapping[str, JsonValue]) -> str:
    """Sign the claims and encrypt them to the caller's registered key; raise NoKeyToSealTo if the caller has none.
    `claims`: the secret, with its operation and claim epoch."""
    jwk = key_in_use(ctx.tx, ctx.principal.id)
    if jwk is None:
        raise NoKeyToSealTo(f"{ctx.principal.name} has no public key.")
    seconds = ctx.now // 1000
    frame = {
        "iss": "gpuaas",
        "aud": ctx.principal.id,
        "jti": secrets.token_hex(16),
        "iat": seconds,
        "exp": seconds + LIVES_S,
    }
    return _encrypted(_signed(vault, {**frame, **claims}), jwk_members(jwk))


def signing_jwk(vault: Vault) -> dict[str, str]:
    """Return the public key with which a recipient verifies the platform's signature."""
    return {"kty": "OKP", "crv": "Ed25519", "x": _b64(vault.public_key(PURPOSE))}


def _signed(vault: Vault, claims: Mapping[str, JsonValue]) -> str:
    head, body = _b64(b'{"alg":"EdDSA"}'), _b64(canonical(claims).encode())
    return f"{head}.{body}.{_b64(vault.sign(PURPOSE, f'{head}.{body}'.encode()))}"


def _encrypted(text: str, jwk: dict[str, str | list[str]]) -> str:
    key = OKPKey.import_key(_agreement_key(jwk)) if jwk["kty"] == "OKP" else ECKey.import_key(jwk)
    head = {"alg": "ECDH-ES", "enc": "A256GCM", "cty": "JWT"}
    return jwe.encrypt_compact(head, text, key, algorithms=["ECDH-ES", "A256GCM"])


def _agreement_key(jwk: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
    """Convert a registered Ed25519 signing key to the X25519 key for key agreement (RFC 7748, 4.1)."""
    raw = base64.urlsafe_b64decode(f"{jwk['x']}==")
    Ed25519PublicKey.from_public_bytes(raw)
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    u = (1 + y) * pow(1 - y, -1, P25519) % P25519
    return {"kty": "OKP", "crv": "X25519", "x": _b64(u.to_bytes(32, "little"))}


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
