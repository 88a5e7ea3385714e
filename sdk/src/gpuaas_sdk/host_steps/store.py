"""The stores for the journal's rows: a file (SQLite), or a database that several controllers share (PostgreSQL).

Both use the same SQL, commit every statement separately, and raise the same error, `StateAway`. The PostgreSQL store
has a module of its own (postgres_store.py), since it needs a library that only its users install.
"""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

ADDRESSES = ("postgresql://", "postgres://")
DEFAULT_APP = "gpuaas-app"  # the name of connections to a shared database
Value = str | int | float | None
Rows = list[dict[str, Any]]  # as the database driver returns them


class StateAway(Exception):
    """The journal can be neither read nor written now."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The controller's own state ({name}) cannot be used: {' '.join(why.split()).rstrip('.')}.")


class Store(Protocol):
    name: str  # for people and logs: holds no password

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows: ...
    def others(self) -> str: ...  # who else has it open, as a sentence; "" if no other process has
    def close(self) -> None: ...


def place(given: str) -> Path | str:
    """Parse an app's `--state` option. Returns the path of the journal file for a folder, or the address of a database.
    Raises StateAway for any other address."""
    if given.startswith(ADDRESSES):
        return given
    if "://" in given:
        raise StateAway(
            f"{given.partition('://')[0]}://…", "give a folder or an address that begins with postgresql://"
        )
    return Path(given) / "journal.db"


def open_store(where: Path | str, tables: Sequence[str], app: str = DEFAULT_APP) -> Store:
    """Open the store and create missing tables. `app` names the connection to a shared database."""
    if isinstance(where, Path):
        return SqliteStore(where, tables)
    try:
        from .postgres_store import PostgresStore
    except ImportError as error:
        raise StateAway("PostgreSQL", f"{error}; install the extra `postgresql` of gpuaas-sdk") from error
    return PostgresStore(where, tables, app)


class SqliteStore:
    """The journal in a SQLite file. Writes are not synced to disk, because a sync takes 3 ms: a power cut can lose the
    last rows."""

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

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        try:
            return [dict(row) for row in self._db.execute(statement, values).fetchall()]
        except sqlite3.Error as error:
            raise StateAway(self.name, str(error)) from error

    def others(self) -> str:
        """Return why the file cannot be locked, if another process has it open; otherwise lock the file and return "".
        SQLite leaves write-ahead logging only if no other process uses the file."""
        try:
            self._db.execute("PRAGMA busy_timeout=0")
            self._db.execute("PRAGMA journal_mode=DELETE")
            self._db.execute("BEGIN EXCLUSIVE")  # until it is closed: any other process is refused
        except sqlite3.Error as error:
            return str(error)
        return ""

    def close(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self._db.close()


def _keep_private(path: Path) -> None:
    """Make the file readable only by this user, also in a shared folder. SQLite gives the write-ahead log the same
    mode."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if file.exists():
            file.chmod(0o600)
