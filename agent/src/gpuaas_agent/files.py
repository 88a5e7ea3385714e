"""Atomic file writes: temporary name, fsync, rename, fsync of the folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write(path: Path, data: bytes | str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync_folder(path.parent)


def read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def write_if_changed(path: Path, data: bytes, mode: int = 0o644) -> bool:
    """Write the file only if its content or mode differs, to avoid needless reloads of sshd. Returns True if the file
    was written, otherwise False."""
    if read(path) == data and path.stat().st_mode & 0o777 == mode:
        return False
    write(path, data, mode)
    return True


def move(path: Path, to: Path) -> None:
    """Rename a file durably within the same folder."""
    path.replace(to)
    _sync_folder(to.parent)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file while the block runs. If the process dies, the lock is released."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
