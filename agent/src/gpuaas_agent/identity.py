"""Who this host is to the platform: its own Ed25519 key, made here and never sent, and the node id it was given.

The key is on disk before the platform hears of it. So a crash after the platform said yes only means asking again with
the same key and the same token, which gives the same node.
"""

import base64
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass

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
    """What enrolment gave us. `token_hash` tells an old token left in the config from a new one."""

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


def ensure_key(places: Places) -> Ed25519PrivateKey:
    pem = files.read(places.key)
    if pem:
        key = load_pem_private_key(pem, None)
        if isinstance(key, Ed25519PrivateKey):
            return key
    key = Ed25519PrivateKey.generate()
    places.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write(places.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    return key


def public_jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {"kty": "OKP", "crv": "Ed25519", "x": b64(raw)}


def assertion(key: Ed25519PrivateKey, node_id: str, audience: str, now: float) -> str:
    """A JWT that lives under a minute and works once: what we show to get an access token."""
    claims = {"iss": node_id, "sub": node_id, "aud": audience, "iat": int(now), "jti": secrets.token_urlsafe(18)}
    claims["exp"] = int(now) + ASSERTION_LIFE_S
    signed = f"{_part({'alg': 'EdDSA', 'typ': 'JWT'})}.{_part(claims)}"
    return f"{signed}.{b64(key.sign(signed.encode()))}"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _part(value: dict[str, object]) -> str:
    return b64(json.dumps(value, separators=(",", ":")).encode())
