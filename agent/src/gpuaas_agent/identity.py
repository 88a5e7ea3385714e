"""The host's identity: its own Ed25519 key, created here and never sent, and the node id from the platform.

The key is on disk before it is sent to the platform. So a crash after a successful request only means repeating it with
the same key and the same token, which gives the same node.
"""

import base64
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from gpuaas_agent import files
from gpuaas_agent.places import Places

ASSERTION_LIFE_S = 45


@dataclass(frozen=True)
class Node:
    """The result of enrolment. `token_hash` is the hash of the used token: if the settings have another token, it is a
    new one."""

    node_id: str
    issuer: str
    token_hash: str
    reported_generation: int = 0

    @classmethod
    def load(cls, places: Places) -> "Node | None":
        data = files.read(places.node)
        return cls(**json.loads(data)) if data else None

    def save(self, places: Places) -> None:
        files.write(places.node, json.dumps(asdict(self)), 0o600)


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def ensure_key(path: Path) -> Ed25519PrivateKey:
    """Return the private key in this file. If the file does not exist, a key is created and written to disk first."""
    pem = files.read(path)
    if pem:
        key = load_pem_private_key(pem, None)
        if isinstance(key, Ed25519PrivateKey):
            return key
    key = Ed25519PrivateKey.generate()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write(path, private_pem(key), 0o600)
    return key


def private_pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {"kty": "OKP", "crv": "Ed25519", "x": b64(raw)}


def thumbprint(jwk: dict[str, str]) -> str:
    """Return the RFC 7638 thumbprint of a key."""
    text = json.dumps(jwk, sort_keys=True, separators=(",", ":"))
    return b64(hashlib.sha256(text.encode()).digest())


def assertion(key: Ed25519PrivateKey, node_id: str, audience: str, now: float, **more: str) -> str:
    """Return a single-use JWT, valid for less than a minute, to exchange for an access token."""
    claims: dict[str, object] = {
        "iss": node_id,
        "sub": node_id,
        "aud": audience,
        "iat": int(now),
        "jti": secrets.token_urlsafe(18),
    }
    claims["exp"] = int(now) + ASSERTION_LIFE_S
    head: dict[str, object] = {"alg": "EdDSA", "typ": "JWT", "kid": thumbprint(public_jwk(key))}
    signed = f"{_part(head)}.{_part(claims | more)}"
    return f"{signed}.{b64(key.sign(signed.encode()))}"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _part(value: dict[str, object]) -> str:
    return b64(json.dumps(value, separators=(",", ":")).encode())
