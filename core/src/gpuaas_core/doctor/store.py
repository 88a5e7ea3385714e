"""Opens the database read-only: without migration, without creating a file, and with one snapshot per transaction."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, make_url

from ..audit.verify import Read
from ..kit.db import Database
from ..migrations.migrate import alembic_config

T = TypeVar("T")


class NotReadable(Exception):
    """The database cannot be read. The message states what to do."""


@contextmanager
def reading(url: str) -> Generator[Read]:
    path = make_url(url).database
    if url.startswith("sqlite") and not (path and Path(path).exists()):
        raise NotReadable(f"No database at {path}. Set GPUAAS_CORE_DATA or GPUAAS_CORE_DATABASE.")
    db = Database(url)

    def read(fn: Callable[[Connection], T]) -> T:
        return db.read_now(lambda tx: fn(_still(tx, sqlite=db.is_sqlite)))

    try:
        read(_check_schema)
        yield read
    finally:
        db.close()


def _still(tx: Connection, *, sqlite: bool) -> Connection:
    if sqlite:
        tx.exec_driver_sql("PRAGMA query_only=ON")
    else:
        tx.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    return tx


def _check_schema(tx: Connection) -> None:
    current = MigrationContext.configure(tx).get_current_revision()
    newest = ScriptDirectory.from_config(alembic_config(tx)).get_current_head()
    if current != newest:
        raise NotReadable(f"The database has schema {current}, this program needs {newest}. Run `gpuaas-core migrate`.")
