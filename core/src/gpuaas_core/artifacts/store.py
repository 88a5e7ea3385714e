"""Files of artifact content, named by their digest: pushed content (`kept`) and content read from sources (`cache`,
separate per source). A file appears under its digest only when it is complete and verified.

Several cores may share the folder. The cache is bounded and evicts the least recently used files; pushed content is
deleted when no row of the database refers to it (`sweep`).
"""

import contextlib
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path

from .errors import ContentDamaged, ContentWrong

KEPT, CACHE = "kept", "cache"
YOUNG_S = 3600  # a younger file may not have its database row yet
GIB = 1024**3


@dataclass(frozen=True)
class Bounds:
    """Size limits of the store in bytes, from the settings."""

    largest: int = GIB  # one artifact
    quota: int = GIB  # storage of one tenant
    cache: int = GIB


class Incoming:
    """A file that is being received. Its digest and size are computed while it is written."""

    def __init__(self, file: BufferedWriter, path: Path, largest: int) -> None:
        self._file, self.path, self._largest = file, path, largest
        self._hash, self.size = hashlib.sha256(), 0

    def write(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._largest:
            raise ContentWrong(f"The content has more than {self._largest} bytes.")
        self._hash.update(piece)
        self._file.write(piece)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def settle(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


class Store:
    def __init__(self, folder: Path, bounds: Bounds = Bounds()) -> None:
        self.folder, self.bounds = folder, bounds
        self._proven: dict[Path, tuple[int, int]] = {}  # verified by this process: size and mtime of the file
        self._evicting = threading.Lock()

    @contextlib.contextmanager
    def receiving(self, largest: int) -> Generator[Incoming, None, None]:
        """Open a temporary file for received content. It is deleted at the end, unless `keep` has moved it."""
        folder = self.folder / "incoming"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / secrets.token_hex(16)
        try:
            with path.open("xb") as file:
                yield Incoming(file, path, largest)
        finally:
            path.unlink(missing_ok=True)

    def keep(self, incoming: Incoming, shelf: str) -> str:
        """Sync the received file to disk, move it into the store under its digest, and return the digest. A file that
        exists there already has the same content and is replaced."""
        incoming.settle()
        if shelf != KEPT:
            self._evict(incoming.size)
        place = self._place(shelf, incoming.sha256)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.replace(incoming.path, place)
        for folder in (place.parent, place.parent.parent):
            _sync_folder(folder)
        self._note(place)
        return incoming.sha256

    def opened(self, shelf: str, sha256: str, size: int) -> BufferedReader | None:
        """Open the content, or return None if it is not stored. Each file is verified once per process: a corrupted
        file of pushed content raises ContentDamaged; a corrupted cache file is deleted."""
        place = self._place(shelf, sha256)
        try:
            file = place.open("rb")
        except FileNotFoundError:
            return None
        if self._whole(file, place, sha256, size):
            _used_now(place)
            return file
        file.close()
        if shelf == KEPT:
            raise ContentDamaged(f"The stored file of sha256:{sha256} was modified.")
        place.unlink(missing_ok=True)  # the content can be read from its source again
        return None

    def sweep(self, named: Callable[[str], bool]) -> int:
        """Delete pushed content for whose digest `named` returns False, and unfinished uploads; return how many files.
        Files younger than an hour are not deleted."""
        old = time.time() - YOUNG_S
        deleted = 0
        unfinished = self._files("incoming/*")
        for path in [*self._files(f"{KEPT}/??/*"), *unfinished]:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < old and (path in unfinished or not named(path.name)):
                    path.unlink()
                    deleted += 1
        return deleted

    def _place(self, shelf: str, sha256: str) -> Path:
        return self.folder / shelf / sha256[:2] / sha256

    def _files(self, pattern: str) -> list[Path]:
        return list(self.folder.glob(pattern))

    def _whole(self, file: BufferedReader, place: Path, sha256: str, size: int) -> bool:
        stat = os.fstat(file.fileno())
        if stat.st_size != size:
            return False
        if self._proven.get(place) != (stat.st_size, stat.st_mtime_ns):
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                return False
            file.seek(0)
            self._proven[place] = (stat.st_size, stat.st_mtime_ns)
        return True

    def _note(self, place: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            stat = place.stat()
            self._proven[place] = (stat.st_size, stat.st_mtime_ns)

    def _evict(self, coming: int) -> None:
        with self._evicting:
            files: list[tuple[int, int, Path]] = []
            for path in self._files(f"{CACHE}/*/??/*"):
                with contextlib.suppress(FileNotFoundError):
                    files.append((path.stat().st_atime_ns, path.stat().st_size, path))
            total = sum(size for _, size, _ in files) + coming
            for _, size, path in sorted(files):
                if total <= self.bounds.cache:
                    return
                path.unlink(missing_ok=True)
                self._proven.pop(path, None)
                total -= size


def _used_now(place: Path) -> None:
    """Set the file's access time to now, because many file systems do not record it.
    The modification time does not change."""
    with contextlib.suppress(OSError):
        os.utime(place, ns=(time.time_ns(), place.stat().st_mtime_ns))


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
