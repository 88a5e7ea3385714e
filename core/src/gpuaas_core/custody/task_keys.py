"""The keys that sign what machines are told to do. Machines hold the public halves and refuse everything else.

Derived from the vault's root key, so no row of the store can be exchanged to forge a task. The last purpose signs and
all are told to machines: to rotate, add the next one, wait until every machine applied newer trust, drop the old one.
"""

import base64
from hashlib import sha256
from typing import Any

PURPOSES = ("node-task/1",)
CONTEXT = b"gpuaas-node-task/1\n"  # goes before what is signed: a signature for anything else is no task


def public_keys(vault: Any) -> list[dict[str, str]]:
    raw = [vault.public_key(purpose) for purpose in PURPOSES]
    return [{"id": key_id(one), "public_key": base64.b64encode(one).decode()} for one in raw]


def sign(vault: Any, payload: str) -> dict[str, str]:
    """The payload beside its signature: who checks it needs no canonical form, only these very bytes."""
    signature = vault.sign(PURPOSES[-1], CONTEXT + payload.encode())
    key = key_id(vault.public_key(PURPOSES[-1]))
    return {"payload": payload, "key_id": key, "signature": base64.b64encode(signature).decode()}


def key_id(public_key: bytes) -> str:
    return sha256(public_key).hexdigest()[:16]
