"""The keys that sign tasks for nodes. Nodes hold the public halves and reject tasks signed otherwise.

Derived from the vault's root key, so no row of the database can be replaced to forge a task. The last purpose signs and
nodes are given all public keys: to rotate, add a purpose, wait until every node applied newer trust, drop the old one.
"""

import base64
from hashlib import sha256
from typing import Any

PURPOSES = ("node-task/1",)
CONTEXT = b"gpuaas-node-task/1\n"  # prefix of the signed bytes, so that no other signature is valid for a task


def public_keys(vault: Any) -> list[dict[str, str]]:
    raw = [vault.public_key(purpose) for purpose in PURPOSES]
    return [{"id": key_id(public), "public_key": base64.b64encode(public).decode()} for public in raw]


def sign(vault: Any, payload: str) -> dict[str, str]:
    """The payload with its signature. The verifier needs exactly these bytes, no canonical form."""
    signature = vault.sign(PURPOSES[-1], CONTEXT + payload.encode())
    key = key_id(vault.public_key(PURPOSES[-1]))
    return {"payload": payload, "key_id": key, "signature": base64.b64encode(signature).decode()}


def key_id(public_key: bytes) -> str:
    return sha256(public_key).hexdigest()[:16]
