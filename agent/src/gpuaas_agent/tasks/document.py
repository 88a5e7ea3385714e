"""Verifies and parses task documents that the platform has signed. A document that fails a check is rejected.

Order of the checks: signature over the exact bytes, schema of the document, host and validity period, arguments of the
task kind. `memory.py` rejects replays and tasks of former claims.
"""

import base64
import binascii
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gpuaas_agent.tasks import schema
from gpuaas_agent.tasks.errors import TaskRefused

CONTEXT = b"gpuaas-node-task/1\n"
LARGEST = 512 * 1024
ID = re.compile(r"[a-z]{2,6}_[0-9a-z]{1,33}")  # of a task
WIPE = "wipe"  # arrives after the allocation was released
_TABLE = json.loads(Path(__file__).with_name("kinds.json").read_text())
KINDS: dict[str, dict[str, Any]] = _TABLE["kinds"]
DOCUMENT: dict[str, Any] = _TABLE["document"]


@dataclass(frozen=True)
class Task:
    task_id: str
    node_id: str
    allocation_id: str | None
    operation_id: str | None
    epoch: int
    attempt: int
    kind: str
    arguments: dict[str, Any]
    not_before: int
    expires_at: int

    @property
    def idempotent(self) -> bool:
        return KINDS[self.kind]["idempotent"]

    @property
    def time_limit_s(self) -> int:
        return KINDS[self.kind]["time_limit_s"]

    @property
    def output_limit(self) -> int:
        return KINDS[self.kind]["output_limit"]

    @property
    def name(self) -> str:
        return f"{self.task_id}.{self.attempt}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Known:
    """The parts of the current trust that tasks need: the keys that may sign tasks, and the allocations of this
    host."""

    keys: dict[str, bytes]
    allocations: frozenset[str]

    @classmethod
    def of(cls, trust: dict[str, Any]) -> "Known":
        principals = (trust.get("principals") or {}).values()
        return cls(_keys(trust.get("task_keys") or []), frozenset(name for names in principals for name in names))


def read(envelope: Any, known: Known, node_id: str, now: float) -> Task:
    payload = _signed(envelope, known.keys)
    try:
        fields = schema.load(payload)
        schema.check(DOCUMENT, fields, "the task")
        schema.check(KINDS[fields["kind"]]["arguments"], fields["arguments"], "arguments")
    except (schema.Misfit, ValueError, RecursionError) as error:
        raise TaskRefused(f"The task is not one of the published kinds: {error}.") from error
    task = Task(**fields)
    if task.node_id != node_id:
        raise TaskRefused("The task is for another node.")
    if task.allocation_id not in (None, *known.allocations) and task.kind != WIPE:
        raise TaskRefused("The task is for an allocation that does not hold this node.")
    if not task.not_before <= now < task.expires_at:
        raise TaskRefused("The task has expired or is not valid yet.")
    return task


def _signed(envelope: Any, keys: dict[str, bytes]) -> str:
    if not isinstance(envelope, dict) or envelope.keys() != {"payload", "key_id", "signature"}:
        raise TaskRefused("The task has no signed document.")
    if not all(isinstance(part, str) for part in envelope.values()) or len(envelope["payload"]) > LARGEST:
        raise TaskRefused("The task's document is malformed or too large.")
    key = keys.get(envelope["key_id"])
    if key is None:
        raise TaskRefused("The task is signed by an unknown key.")
    try:
        signature = base64.b64decode(envelope["signature"], validate=True)
        if base64.b64encode(signature).decode() != envelope["signature"]:  # base64 has several encodings of one value
            raise ValueError("not canonical base64")
        Ed25519PublicKey.from_public_bytes(key).verify(signature, CONTEXT + envelope["payload"].encode())
    except (InvalidSignature, binascii.Error, ValueError) as error:
        raise TaskRefused("The task has no valid signature of the platform.") from error
    return envelope["payload"]


def _keys(listed: list[Any]) -> dict[str, bytes]:
    """Return the public keys by id. A key that cannot be parsed is skipped."""
    keys: dict[str, bytes] = {}
    for key in listed:
        try:
            raw = base64.b64decode(key["public_key"], validate=True)
            Ed25519PublicKey.from_public_bytes(raw)
            keys[str(key["id"])] = raw
        except (binascii.Error, KeyError, TypeError, ValueError):
            continue
    return keys
