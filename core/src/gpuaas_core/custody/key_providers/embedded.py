"""Holds the master key in a file that only the platform can read, or in the core's environment.

The file has one line per version, `VERSION BASE64`; the highest version wraps. The first release wrote one bare base64
line, which is version 1.
"""

import base64
import binascii
import contextlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .port import CustodyFailed

FILE, INLINE = "GPUAAS_CORE_MASTER_KEY_FILE", "GPUAAS_CORE_MASTER_KEY"


class Embedded:
    kind = "embedded"

    def __init__(self, keys: dict[int, bytes], path: Path | None = None) -> None:
        self._keys, self._path = keys, path

    @classmethod
    def configured(cls, environment: Mapping[str, str], data_dir: Path) -> "Embedded":
        inline = environment.get(INLINE, "")
        if inline:
            return cls(_parse(inline.replace(",", "\n").replace(":", " "), INLINE))
        named = environment.get(FILE, "")
        return cls.in_file(Path(named)) if named else cls.in_file(data_dir / "master.key")

    @classmethod
    def in_file(cls, path: Path) -> "Embedded":
        """Open the key file, or create it at the first start."""
        if not path.exists():
            _write(path, {1: os.urandom(32)}, replace=False)
        return cls(_read(path), path)

    @property
    def first_key(self) -> bytes:
        """The oldest version of the master key. The first release used it directly, to seal values and to sign."""
        return self._keys[min(self._keys)]

    def current(self) -> str:
        return str(max(self._keys))

    def wrap(self, key: bytes, bound_to: str) -> tuple[str, bytes]:
        version, nonce = max(self._keys), os.urandom(12)
        return str(version), nonce + AESGCM(self._keys[version]).encrypt(nonce, key, bound_to.encode())

    def unwrap(self, version: str, wrapped: bytes, bound_to: str) -> bytes:
        try:
            return AESGCM(self._key(version)).decrypt(wrapped[:12], wrapped[12:], bound_to.encode())
        except (InvalidTag, ValueError) as error:
            raise CustodyFailed("A data key cannot be unwrapped with the current master key.") from error

    def rotate(self) -> str:
        path = self._own_file("rotated")
        self._keys = _read(path)
        self._keys[max(self._keys) + 1] = os.urandom(32)
        _write(path, self._keys, replace=True)
        return self.current()

    def retire(self, used: set[str]) -> list[str]:
        path = self._own_file("shortened")
        self._keys = _read(path)
        retired = [v for v in sorted(self._keys) if str(v) not in used and v != max(self._keys)]
        self._keys = {v: key for v, key in self._keys.items() if v not in retired}
        if retired:
            _write(path, self._keys, replace=True)
        return [str(v) for v in retired]

    def _key(self, version: str) -> bytes:
        if version not in map(str, self._keys) and self._path:
            self._keys = _read(self._path)  # another core may have rotated the key
        for known, key in self._keys.items():
            if str(known) == version:
                return key
        raise CustodyFailed(f"Version {version} of the master key is not in this core's key file.")

    def _own_file(self, done: str) -> Path:
        if self._path is None:
            raise RuntimeError(f"a master key from {INLINE} must be {done} where it is stored; then restart the core")
        return self._path


def _read(path: Path) -> dict[int, bytes]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise RuntimeError(f"{path} is readable by other users (mode {mode:o}). Run `chmod 600` on it and start again")
    return _parse(path.read_text(), str(path))


def _parse(text: str, where: str) -> dict[int, bytes]:
    keys: dict[int, bytes] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        version, _, encoded = line.rpartition(" ")
        try:
            keys[int(version or 1)] = base64.b64decode(encoded, validate=True)
        except (ValueError, binascii.Error):
            raise RuntimeError(f"{where} has a line that is not `VERSION BASE64`") from None
    if not keys or any(len(key) != 32 for key in keys.values()):
        raise RuntimeError(f"{where} must hold keys of 32 bytes, in base64")
    return keys


def _write(path: Path, keys: dict[int, bytes], *, replace: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=path.name, suffix=".new", dir=path.parent)  # mode 600
    with os.fdopen(handle, "w") as file:
        file.writelines(f"{version} {base64.b64encode(key).decode()}\n" for version, key in sorted(keys.items()))
        file.flush()
        os.fsync(file.fileno())
    if replace:
        os.replace(draft, path)
    else:
        with contextlib.suppress(FileExistsError):  # two cores starting at once: the first one's key is kept
            os.link(draft, path)
        os.unlink(draft)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
