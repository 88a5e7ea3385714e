"""Access to the database: `await db.read(fn)` and `await db.write(fn)`, where fn takes a connection.

SQLite: reads run inline (0.1 ms), writes in one writer thread under BEGIN IMMEDIATE, synchronous=FULL.
PostgreSQL: separate threads for reads (one snapshot, read only) and writes (read committed, with row locks). A
transaction that lost a race for locks is repeated from its first statement, so fn must not have other effects.
The ids that fn creates are numbered by its transaction (ids.py, numbers.py).
See docs/decisions/0002-synchronous-database-access.md and 0008-postgresql.md.
"""

import asyncio
import contextlib
import hashlib
import os
import random
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    MetaData,
    Table,
    create_engine,
    delete,
    event,
    func,
    make_url,
    select,
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from .ids import Issuer, drop_number, issued_by
from .numbers import take_number
from .problems import Invalid, Unavailable

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

T = TypeVar("T")
WRITERS, READERS = 8, 4  # threads and connections of one core on PostgreSQL
ATTEMPTS = 6
AT_ONCE = 500  # rows that one transaction of a background duty changes or deletes
SERIALIZATION, DEADLOCK, LOCK_TIMEOUT = "40001", "40P01", "55P03"
SESSION = "-c lock_timeout=10s -c statement_timeout=30s -c idle_in_transaction_session_timeout=60s"


class Database:
    def __init__(self, url: str) -> None:
        self.url = full_url(url)
        self.is_sqlite = self.url.startswith("sqlite")
        keep_private(self.url)
        self._writers = ThreadPoolExecutor(1 if self.is_sqlite else WRITERS, thread_name_prefix="db-write")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="db-read")  # starts none on SQLite
        self._write_engine = _sqlite(self.url, begin="BEGIN IMMEDIATE") if self.is_sqlite else _postgresql(self.url)
        self._read_engine = _sqlite(self.url, begin="BEGIN") if self.is_sqlite else _reading(self._write_engine)
        self.on_write: Callable[[float], object] = _ignore  # called with the seconds a transaction took

    async def read(self, fn: Callable[[Connection], T]) -> T:
        if self.is_sqlite:
            return self.read_now(fn)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.read_now, fn)

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """One transaction: committed when fn returns, rolled back when it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, self.write_now, fn)

    def read_now(self, fn: Callable[[Connection], T]) -> T:
        return self._with_retries(self._read_once, fn)

    def write_now(self, fn: Callable[[Connection], T]) -> T:
        started = time.perf_counter()
        try:
            return self._with_retries(self._write_once, fn)
        finally:
            self.on_write(time.perf_counter() - started)

    def _read_once(self, fn: Callable[[Connection], T]) -> T:
        with self._read_engine.connect() as connection:
            return fn(connection)

    def _write_once(self, fn: Callable[[Connection], T]) -> T:
        with self._write_engine.connect() as connection:
            transaction = connection.begin()
            with issued_by(Issuer(lambda: take_number(connection))):
                result = fn(connection)
            try:
                transaction.commit()
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                # The commit may have succeeded, so never repeat it here. A retry with the Idempotency-Key is safe.
                raise Unavailable("Lost the database connection during commit.", retry_after_s=1) from error
            return result

    def _with_retries(self, once: Callable[[Callable[[Connection], T]], T], fn: Callable[[Connection], T]) -> T:
        if self.is_sqlite:
            return once(fn)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return once(fn)
            except (DBAPIError, PoolTimeout) as error:
                if attempt == ATTEMPTS or not _worth_repeating(error):
                    raise _problem(error) from error
                time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - jitter, not a secret
        raise AssertionError("unreachable")

    @property
    def engine(self) -> Engine:
        return self._write_engine

    def close(self) -> None:
        self._writers.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self._read_engine.dispose()
        self._write_engine.dispose()


def full_url(url: str) -> str:
    """Map `postgresql://…` and `postgres://…` to the driver that we ship."""
    scheme, separator, rest = url.partition("://")
    return f"postgresql+psycopg://{rest}" if separator and scheme in ("postgresql", "postgres") else url


def keep_private(url: str) -> None:
    """Make the files of a SQLite database readable by this user only, also in a folder that others can read.

    SQLite copies the file mode to the write-ahead log, so the file is created with the right mode before it is opened.
    """
    path = make_url(url).database if url.startswith("sqlite") else None
    if not path or path == ":memory:":
        return
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    for file in (path, f"{path}-wal", f"{path}-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.chmod(file, 0o600)


def hold_name(tx: Connection, name: str) -> None:
    """An advisory lock until the transaction ends. SQLite has only one writer anyway."""
    if tx.dialect.name == "postgresql":
        tx.execute(select(func.pg_advisory_xact_lock(_number(name))))


def try_name(tx: Connection, name: str) -> bool:
    """As `hold_name`, but returns False instead of waiting."""
    if tx.dialect.name != "postgresql":
        return True
    return bool(tx.execute(select(func.pg_try_advisory_xact_lock(_number(name)))).scalar())


def insert_into(tx: Connection, table: Any) -> Any:
    """An insert with ON CONFLICT in this database's dialect."""
    return insert_of(tx.dialect.name, table)


def insert_new(tx: Connection, table: Any, **values: Any) -> bool:
    """False: a key of the table conflicted, and nothing was written. (PostgreSQL's driver counts no inserted rows.)"""
    new = insert_into(tx, table).values(**values).on_conflict_do_nothing().returning(*table.primary_key)
    return tx.execute(new).first() is not None


def delete_some(tx: Connection, table: Table, old: ColumnElement[bool]) -> int:
    """Delete at most `AT_ONCE` of the rows, so that no cleanup holds locks for long; returns how many were deleted."""
    key = tuple_(*table.primary_key)
    some = select(*table.primary_key).where(old).limit(AT_ONCE)
    return tx.execute(delete(table).where(key.in_(some))).rowcount


def insert_of(dialect: str, table: Any) -> Any:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def sqlstate(error: BaseException) -> str:
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def _worth_repeating(error: DBAPIError | PoolTimeout) -> bool:
    """Rolled back for certain: a deadlock victim, or a connection lost before the commit was sent."""
    if isinstance(error, PoolTimeout):
        return False
    return error.connection_invalidated or sqlstate(error) in (SERIALIZATION, DEADLOCK)


def _problem(error: DBAPIError | PoolTimeout) -> Exception:
    if isinstance(error, DataError):  # too long for its column, or a NUL character
        return Invalid("A value is too long or has a character that cannot be stored.")
    if isinstance(error, PoolTimeout | OperationalError | InterfaceError):
        return Unavailable("The database does not respond.", retry_after_s=1)
    return error


def _postgresql(url: str) -> Engine:
    arguments = {"options": SESSION, "application_name": "gpuaas-core", "connect_timeout": 5}
    return create_engine(
        url,
        pool_size=READERS + WRITERS,
        max_overflow=0,
        pool_timeout=10,
        isolation_level="READ COMMITTED",
        connect_args=arguments,
    )


def _reading(engine: Engine) -> Engine:
    """The same connections; every read sees one snapshot, and cannot lock or change anything."""
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _ignore(_seconds: float) -> None:
    pass


def _use_wal(connection: Any) -> None:
    """Switching to WAL needs an exclusive lock without busy timeout, so retry: two cores may start at once."""
    for _ in range(300):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            time.sleep(0.05)
    connection.execute("PRAGMA journal_mode=WAL")


def _sqlite(url: str, *, begin: str) -> Engine:
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 15})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not send BEGIN implicitly
        for pragma in ("busy_timeout=15000", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        _use_wal(connection)

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    @event.listens_for(engine, "rollback_savepoint")
    def renumber(_connection: Connection, _name: str, _context: None) -> None:
        drop_number()  # a number taken inside the savepoint was rolled back with it, so take a new one

    return engine
