"""Content by its digest, in a folder beside the database: what was pushed (`kept`) and what was read from sources
(`cache`, apart per source). A file appears under its digest whole and proven, or not at all.

Several cores may share the folder. The cache has a bound: what was not used for longest goes first; what was pushed
goes when no row of the store names it any more (`sweep`).
"""

import contextlib
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path

from .errors import ContentDamaged, ContentWrong

KEPT, CACHE = "kept", "cache"
YOUNG_S = 3600  # what arrived just now may be named by a row in a moment
GIB = 1024**3


@dataclass(frozen=True)
class Bounds:
    """In bytes, as the settings say."""

    largest: int = GIB  # one artifact
    quota: int = GIB  # what one tenant keeps in the store
    cache: int = GIB


class Incoming:
    """A file that is being written; its digest is computed on the way."""

    def __init__(self, file: BufferedWriter, path: Path, largest: int) -> None:
        self._file, self.path, self._largest = file, path, largest
        self._hash, self.size = hashlib.sha256(), 0

    def write(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._largest:
            raise ContentWrong(f"It has more than {self._largest} bytes.")
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
        self._proven: dict[Path, tuple[int, int]] = {}  # looked through by this process: size and time of the file
        self._evicting = threading.Lock()

    @contextlib.contextmanager
    def receiving(self, largest: int) -> Iterator[Incoming]:
        """Gone at the end unless it was given its place."""
        folder = self.folder / "incoming"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / secrets.token_hex(16)
        try:
            with path.open("xb") as file:
                yield Incoming(file, path, largest)
        finally:
            path.unlink(missing_ok=True)

    def keep(self, incoming: Incoming, shelf: str) -> str:
        """Durable before anybody can see it. One that is there already is replaced by the same."""
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
        """The content, proven since this process began; None: it is not here. An open file outlives its eviction."""
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
            raise ContentDamaged(f"The file of sha256:{sha256} in the store was changed.")
        place.unlink(missing_ok=True)  # it can be read again
        return None

    def sweep(self, named: Callable[[str], bool]) -> int:
        """What was pushed and is named by no row; and what was never finished."""
        old = time.time() - YOUNG_S
        gone = 0
        unfinished = self._files("incoming/*")
        for path in [*self._files(f"{KEPT}/??/*"), *unfinished]:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < old and (path in unfinished or not named(path.name)):
                    path.unlink()
                    gone += 1
        return gone

    def _place(self, shelf: str, sha256: str) -> Path:
        return self.folder / shelf / sha256[:2] / sha256

    def _files(self, pattern: str) -> list[Path]:
        return list(self.folder.glob(pattern))

    def _whole(self, file: BufferedReader, place: Path, sha256: str, size: int) -> bool:
        found = os.fstat(file.fileno())
        if found.st_size != size:
            return False
        if self._proven.get(place) != (found.st_size, found.st_mtime_ns):
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                return False
            file.seek(0)
            self._proven[place] = (found.st_size, found.st_mtime_ns)
        return True

    def _note(self, place: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            found = place.stat()
            self._proven[place] = (found.st_size, found.st_mtime_ns)

    def _evict(self, coming: int) -> None:
        with self._evicting:
            files = []
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
    """The time of use is ours: many file systems do not keep it. The time of change stays what it was."""
    with contextlib.suppress(OSError):
        os.utime(place, ns=(time.time_ns(), place.stat().st_mtime_ns))


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
