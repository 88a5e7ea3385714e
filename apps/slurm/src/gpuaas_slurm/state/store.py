"""Where the journal's rows lie: a file on this machine (SQLite), or a database that controllers share (PostgreSQL).

Both speak the same SQL, commit every statement by itself, and end in one error, `StateAway`, whatever their trouble is
called. The one that is shared is in shared.py, with a library that only its users need.
"""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

ADDRESSES = ("postgresql://", "postgres://")
Rows = list[dict[str, Any]]


class StateAway(Exception):
    """What is remembered can neither be read nor written now."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The controller's own state ({name}) cannot be used: {' '.join(why.split()).rstrip('.')}.")


class Store(Protocol):
    name: str  # for people and logs: holds no password

    def execute(self, words: str, values: Sequence[Any] = ()) -> Rows: ...
    def others(self) -> str: ...  # who else has it open, in words; "" if nobody
    def close(self) -> None: ...


def place(said: str) -> Path | str:
    """What people give as `--state`: a folder, or the address of a database."""
    if said.startswith(ADDRESSES):
        return said
    if "://" in said:
        raise StateAway(f"{said.partition('://')[0]}://…", "give a folder or an address that begins with postgresql://")
    return Path(said) / "journal.db"


def opened(where: Path | str, tables: Sequence[str]) -> Store:
    """With its tables, made where they are not there yet."""
    if isinstance(where, Path):
        return OneFile(where, tables)
    try:
        from gpuaas_slurm.state.shared import Shared
    except ImportError as error:
        raise StateAway("PostgreSQL", f"{error}; install gpuaas-slurm[postgresql]") from error
    return Shared(where, tables)


class OneFile:
    """Not forced to the disk each time (3 ms, twice per step and host): a power cut can lose the last rows."""

    def __init__(self, path: Path, tables: Sequence[str]) -> None:
        self.name = str(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _keep_private(path)
            self._db = sqlite3.connect(path, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise StateAway(self.name, str(error)) from error
        self._db.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=5000"):
            self.execute(f"PRAGMA {pragma}")
        for table in tables:
            self.execute(f"{table} WITHOUT ROWID")

    def execute(self, words: str, values: Sequence[Any] = ()) -> Rows:
        try:
            return [dict(row) for row in self._db.execute(words, values).fetchall()]
        except sqlite3.Error as error:
            raise StateAway(self.name, str(error)) from error

    def others(self) -> str:
        """A file leaves its write-ahead log only while nobody else has it open; the next to open it has one again."""
        try:
            self._db.execute("PRAGMA busy_timeout=0")
            self._db.execute("PRAGMA journal_mode=DELETE")
            self._db.execute("BEGIN EXCLUSIVE")  # until it is closed: who comes now is refused
        except sqlite3.Error as error:
            return str(error)
        return ""

    def close(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self._db.close()


def _keep_private(path: Path) -> None:
    """For this user alone, also in a folder that others can read; SQLite gives the write-ahead log the same mode."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if file.exists():
            file.chmod(0o600)
