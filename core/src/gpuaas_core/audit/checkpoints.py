"""Signed checkpoints of the audit chains, outside the database: one append-only file per tenant, a line per checkpoint.

A line contains a sequence and the chain's hash at it, the fingerprint of the previous line, and an Ed25519 signature
of the vault. So an attacker who can write the database but lacks the master key can neither rewrite nor shorten what a
checkpoint covers. Written by `background/audit_checkpoints.py`, read by `verify.py`.
"""

import base64
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ..kit.wire import canonical
from .chain import GENESIS

PURPOSE = "audit-checkpoint"
_NAME = re.compile(r"[A-Za-z0-9_]{1,60}")


@dataclass(frozen=True)
class Checkpoint:
    tenant_id: str
    sequence: int
    hash: str
    at: int
    previous: str  # fingerprint of the previous line


class BadCheckpoint(Exception):
    """A line that this platform did not write, or not at this place."""


class Checkpoints:
    """A folder of checkpoint files, and the key that signs them."""

    def __init__(self, folder: Path, public_key: bytes) -> None:
        self.folder = folder
        self._key = Ed25519PublicKey.from_public_bytes(public_key)

    def tenants(self) -> set[str]:
        return {path.stem for path in self.folder.glob("*.jsonl")} if self.folder.is_dir() else set()

    def read(self, tenant_id: str) -> list[Checkpoint]:
        """All checkpoints, each verified. An incomplete last line is ignored: its writer died."""
        path = self._path(tenant_id)
        return self._checked(tenant_id, path.read_bytes() if path.exists() else b"")

    def append(self, vault: Any, tenant_id: str, sequence: int, digest: str, at: int) -> bool:
        """Durable when it returns. False if another process has written this or a later checkpoint."""
        with self._locked(self._path(tenant_id)) as file:
            whole = file.read()
            known = self._checked(tenant_id, whole)
            if known and known[-1].sequence >= sequence:
                return False
            end = whole.rfind(b"\n") + 1
            file.truncate(end)  # at most an incomplete line of a writer that died
            file.seek(end)
            before = _fingerprint(whole[:end].splitlines()[-1]) if known else GENESIS
            file.write(_line(vault, Checkpoint(tenant_id, sequence, digest, at, before)))
            file.flush()
            os.fsync(file.fileno())
        return True

    def set_aside(self, tenant_id: str, now: int) -> Path | None:
        """Rename the old file; the next checkpoint starts a new one."""
        path = self._path(tenant_id)
        if not path.exists():
            return None
        kept = path.with_name(f"{tenant_id}.{now}.aside")
        path.rename(kept)
        _sync_folder(self.folder)
        return kept

    def _checked(self, tenant_id: str, whole: bytes) -> list[Checkpoint]:
        checkpoints: list[Checkpoint] = []
        before = GENESIS
        for number, line in enumerate(whole[: whole.rfind(b"\n") + 1].splitlines(), 1):
            checkpoint = self._signed(line, f"Line {number} of {self._path(tenant_id).name}")
            if (
                checkpoint.tenant_id != tenant_id
                or checkpoint.previous != before
                or (checkpoints and checkpoint.sequence <= checkpoints[-1].sequence)
            ):
                raise BadCheckpoint(f"Line {number} of {tenant_id}.jsonl is out of order: lines were moved or removed.")
            checkpoints.append(checkpoint)
            before = _fingerprint(line)
        return checkpoints

    def _signed(self, line: bytes, where: str) -> Checkpoint:
        try:
            fields = json.loads(line)
            signature = base64.b64decode(fields.pop("signature"))
            self._key.verify(signature, _message(fields))
            return Checkpoint(**fields)
        except (ValueError, KeyError, TypeError, AttributeError, InvalidSignature) as error:
            raise BadCheckpoint(f"{where} does not carry this platform's signature.") from error

    def _path(self, tenant_id: str) -> Path:
        if not _NAME.fullmatch(tenant_id):
            raise BadCheckpoint(f"{tenant_id[:60]!r} is not a tenant id.")
        return self.folder / f"{tenant_id}.jsonl"

    @contextmanager
    def _locked(self, path: Path) -> Iterator[BinaryIO]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = not path.exists()
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # several cores may share the folder
            yield file
        if fresh:
            _sync_folder(self.folder)


def _message(fields: dict[str, Any]) -> bytes:
    return canonical({"kind": PURPOSE, **fields}).encode()


def _line(vault: Any, checkpoint: Checkpoint) -> bytes:
    fields = asdict(checkpoint)
    signature = base64.b64encode(vault.sign(PURPOSE, _message(fields))).decode()
    return canonical(fields | {"signature": signature}).encode() + b"\n"


def _fingerprint(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
