"""Decrypts values that the platform sealed to a service account's key, and checks the platform's signature and the
recipient.

The JWE is ECDH-ES with A256GCM (RFC 7518, 4.6); the account's Ed25519 key is used as its X25519 counterpart. Needs the
`auth` extra, as service account sign-in does.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from .models import SealedCredentialView


class SealBroken(Exception):
    """The sealed value is for another account or claim, was not signed by the platform, or is too old."""


def open_secret(
    sealed: str,
    *,
    private_jwk: dict[str, str],
    platform_jwk: dict[str, str],
    audience: str,
    operation_id: str,
    claim_epoch: int,
) -> str:
    """Return the value of a sealed secret. Raises SealBroken if a check fails. `platform_jwk` is `keys.secrets` of `GET
    /v1`."""
    use = {"aud": audience, "operation_id": operation_id, "claim_epoch": claim_epoch}
    return _opened(sealed, private_jwk, platform_jwk, use)


def open_credential(
    answer: SealedCredentialView,
    *,
    private_jwk: dict[str, str],
    platform_jwk: dict[str, str],
    audience: str,
    operation_id: str,
    claim_epoch: int,
) -> str:
    """Return the private key of a sealed credential in OpenSSH form. Raises SealBroken if a check fails, for example if
    the sealed credential id or version differs from the answer."""
    use = {"aud": audience, "operation_id": operation_id, "claim_epoch": claim_epoch}
    use |= {"credential_id": answer.credential_id, "version": answer.version}
    return _opened(answer.sealed, private_jwk, platform_jwk, use)


def _opened(sealed: str, private_jwk: dict[str, str], platform_jwk: dict[str, str], use: Mapping[str, object]) -> str:
    from cryptography.exceptions import InvalidSignature, InvalidTag
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        signed = _decrypted(sealed, private_jwk)
        statement, _, signature = signed.rpartition(".")
        platform = Ed25519PublicKey.from_public_bytes(_raw(platform_jwk["x"]))
        platform.verify(_raw(signature), statement.encode())
        claims: dict[str, Any] = msgspec.json.decode(_raw(statement.partition(".")[2]))
    except (InvalidTag, InvalidSignature, ValueError, msgspec.DecodeError) as error:
        raise SealBroken("the value was not sealed by this platform for this account") from error
    wrong = [name for name, value in use.items() if claims.get(name) != value]
    if wrong or claims["exp"] < time.time() - 60:
        raise SealBroken(f"the value was sealed for another use: {', '.join(wrong) or 'too old'}")
    return claims["value"]


def _decrypted(sealed: str, private_jwk: dict[str, str]) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash

    head, _, nonce, text, tag = sealed.split(".")
    header = msgspec.json.decode(_raw(head), type=dict[str, Any])
    if (header.get("alg"), header.get("enc")) != ("ECDH-ES", "A256GCM"):
        raise ValueError("not the agreed algorithms")
    parts = b"A256GCM", b"", b""
    info = b"".join(len(part).to_bytes(4, "big") + part for part in parts) + (256).to_bytes(4, "big")
    key = ConcatKDFHash(SHA256(), 32, info).derive(_agreed(private_jwk, header["epk"]))
    return AESGCM(key).decrypt(_raw(nonce), _raw(text) + _raw(tag), head.encode()).decode()


def _agreed(private_jwk: dict[str, str], ephemeral: dict[str, str]) -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    if private_jwk["kty"] == "OKP":
        scalar = hashlib.sha512(_raw(private_jwk["d"])).digest()[:32]  # as Ed25519 itself derives it (RFC 8032, 5.1.5)
        private = X25519PrivateKey.from_private_bytes(scalar)
        return private.exchange(X25519PublicKey.from_public_bytes(_raw(ephemeral["x"])))
    curve = ec.SECP256R1()
    x, y = (int.from_bytes(_raw(ephemeral[name]), "big") for name in ("x", "y"))
    public = ec.EllipticCurvePublicNumbers(x, y, curve).public_key()
    return ec.derive_private_key(int.from_bytes(_raw(private_jwk["d"]), "big"), curve).exchange(ec.ECDH(), public)


def _raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
