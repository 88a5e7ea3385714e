"""The keys that sign tasks for nodes. Nodes have the public keys and reject tasks with other signatures.

The keys are derived from the vault's root key, so a task cannot be forged by replacing a row of the database. The key
of the last purpose in `PURPOSES` signs, and nodes get all public keys. To rotate: add a purpose, wait until every node
has applied newer trust, then drop the old purpose.
"""

import base64
from hashlib import sha256
from typing import Protocol

PURPOSES = ("node-task/1",)
CONTEXT = b"gpuaas-node-task/1\n"  # prefix of the signed bytes, so that no other signature is valid for a task


class Signer(Protocol):
    """The methods of the vault that are used here."""

    def sign(self, purpose: str, message: bytes) -> bytes: ...
    def public_key(self, purpose: str) -> bytes: ...


def public_keys(vault: Signer) -> list[dict[str, str]]:
    raw = [vault.public_key(purpose) for purpose in PURPOSES]
    return [{"id": key_id(public), "public_key": base64.b64encode(public).decode()} for public in raw]


def sign(vault: Signer, payload: str) -> dict[str, str]:
    """Return the payload with its signature and the id of the key. The verifier checks exactly the bytes of the
    payload, not a canonical form."""
    signature = vault.sign(PURPOSES[-1], CONTEXT + payload.encode())
    key = key_id(vault.public_key(PURPOSES[-1]))
    return {"payload": payload, "key_id": key, "signature": base64.b64encode(signature).decode()}


def key_id(public_key: bytes) -> str:
    return sha256(public_key).hexdigest()[:16]
