"""Signed checkpoints of the audit chains, outside the database: one append-only file per tenant, a line per checkpoint.

A line contains a row's sequence number, the chain's hash at that row, the fingerprint of the previous line, and the
vault's Ed25519 signature. An attacker who can write to the database but does not have the master key can therefore
neither rewrite nor remove rows that a checkpoint covers. Written by `anchoring.py`, read by `verify.py`.

Because each line names the fingerprint of the previous one, the signature of the last line covers all lines before it.
The writer relies on that (`newest`): it verifies the last signature only, and the lines that it verified before are not
read again until the file changes. The auditor verifies every signature (`read`).
"""

import base64
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol

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
    """A checkpoint has a wrong signature, is missing or out of order, or does not match the audit rows."""


class Signer(Protocol):
    def sign(self, purpose: str, message: bytes) -> bytes: ...


class Hasher(Protocol):
    def copy(self) -> "Hasher": ...

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True)
class _Verified:
    """The part of a checkpoint file that this process has verified: the complete lines at its start."""

    size: int = 0  # bytes
    lines: int = 0
    newest: Checkpoint | None = None
    fingerprint: str = GENESIS  # of the last line
    contents: Hasher = field(default_factory=hashlib.sha256)  # of these bytes
    file: tuple[int, int, int] | None = None  # inode, size and time of the last change of the file

    def followed_by(self, line: bytes, checkpoint: Checkpoint) -> "_Verified":
        contents = self.contents.copy()
        contents.update(line)
        return _Verified(self.size + len(line), self.lines + 1, checkpoint, _fingerprint(line), contents)


class Checkpoints:
    """The folder of the checkpoint files, and the public key that verifies their signatures."""

    def __init__(self, folder: Path, public_key: bytes) -> None:
        self.folder = folder
        self._key = Ed25519PublicKey.from_public_bytes(public_key)
        self._verified: dict[str, _Verified] = {}  # by tenant

    def tenants(self) -> set[str]:
        return {path.stem for path in self.folder.glob("*.jsonl")} if self.folder.is_dir() else set()

    def read(self, tenant_id: str) -> list[Checkpoint]:
        """Return all checkpoints of the tenant; raise BadCheckpoint if a line is not signed or out of order. An
        incomplete last line, left by a crashed writer, is ignored."""
        path = self._path(tenant_id)
        lines = _complete_lines(path.read_bytes() if path.exists() else b"")
        for number, line in enumerate(lines, 1):
            self._check_signature(line, f"Line {number} of {path.name}")
        checkpoints: list[Checkpoint] = []
        verified = _Verified()
        for line in lines:
            checkpoint = _linked(line, tenant_id, verified)
            verified = verified.followed_by(line, checkpoint)
            checkpoints.append(checkpoint)
        return checkpoints

    def newest(self, tenant_id: str) -> Checkpoint | None:
        """Return the tenant's last checkpoint, or None if there is none.
        Its signature, which covers all lines before it, is verified."""
        path = self._path(tenant_id)
        if not path.exists():
            return None
        with path.open("rb") as file:
            return self._verify(tenant_id, file).newest

    def append(self, vault: Signer, tenant_id: str, sequence: int, digest: str, at: int) -> bool:
        """Append a checkpoint, sync it to disk and return True;
        return False if the file already has this or a later checkpoint."""
        with self._locked(self._path(tenant_id)) as file:
            known = self._verify(tenant_id, file)
            if known.newest and known.newest.sequence >= sequence:
                return False
            file.truncate(known.size)  # at most an incomplete line of a writer that died
            file.seek(known.size)
            checkpoint = Checkpoint(tenant_id, sequence, digest, at, known.fingerprint)
            line = _line(vault, checkpoint)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            self._verified[tenant_id] = replace(known.followed_by(line, checkpoint), file=_identity(file))
        return True

    def set_aside(self, tenant_id: str, now: int) -> Path | None:
        """Rename the tenant's checkpoint file and return the new path, or None if there is no file. The next checkpoint
        is written to a new file."""
        path = self._path(tenant_id)
        if not path.exists():
            return None
        kept = path.with_name(f"{tenant_id}.{now}.aside")
        path.rename(kept)
        _sync_folder(self.folder)
        return kept

    def _verify(self, tenant_id: str, file: BinaryIO) -> _Verified:
        known, identity = self._verified.get(tenant_id, _Verified()), _identity(file)
        if known.file == identity:
            return known
        whole = file.read()
        if hashlib.sha256(whole[: known.size]).digest() != known.contents.digest():
            known = _Verified()  # these are not the lines that were verified before
        verified, last = known, b""
        for last in _complete_lines(whole[known.size :]):
            verified = verified.followed_by(last, _linked(last, tenant_id, verified))
        if last:
            self._check_signature(last, f"Line {verified.lines} of {tenant_id}.jsonl")
        verified = replace(verified, file=identity)
        self._verified[tenant_id] = verified
        return verified

    def _check_signature(self, line: bytes, where: str) -> None:
        try:
            fields = json.loads(line)
            signature = base64.b64decode(fields.pop("signature"))
            self._key.verify(signature, _message(fields))
        except (ValueError, KeyError, TypeError, AttributeError, InvalidSignature) as error:
            raise BadCheckpoint(f"{where} does not carry this platform's signature.") from error

    def _path(self, tenant_id: str) -> Path:
        if not _NAME.fullmatch(tenant_id):
            raise BadCheckpoint(f"{tenant_id[:60]!r} is not a tenant id.")
        return self.folder / f"{tenant_id}.jsonl"

    @contextmanager
    def _locked(self, path: Path) -> Generator[BinaryIO]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = not path.exists()
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # several cores may share the folder
            yield file
        if fresh:
            _sync_folder(self.folder)


def _linked(line: bytes, tenant_id: str, before: _Verified) -> Checkpoint:
    number = before.lines + 1
    try:
        fields = json.loads(line)
        del fields["signature"]
        checkpoint = Checkpoint(**fields)
        behind = before.newest is not None and checkpoint.sequence <= before.newest.sequence
    except (ValueError, KeyError, TypeError) as error:
        raise BadCheckpoint(f"Line {number} of {tenant_id}.jsonl does not carry this platform's signature.") from error
    if checkpoint.tenant_id != tenant_id or checkpoint.previous != before.fingerprint or behind:
        raise BadCheckpoint(f"Line {number} of {tenant_id}.jsonl is out of order: lines were moved or removed.")
    return checkpoint


def _complete_lines(data: bytes) -> list[bytes]:
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)


def _identity(file: BinaryIO) -> tuple[int, int, int]:
    status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_ctime_ns


def _message(fields: dict[str, object]) -> bytes:
    return canonical({"kind": PURPOSE, **fields}).encode()


def _line(vault: Signer, checkpoint: Checkpoint) -> bytes:
    fields = asdict(checkpoint)
    signature = base64.b64encode(vault.sign(PURPOSE, _message(fields))).decode()
    return canonical(fields | {"signature": signature}).encode() + b"\n"


def _fingerprint(line: bytes) -> str:
    return hashlib.sha256(line.rstrip(b"\n")).hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
