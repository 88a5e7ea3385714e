"""Access to the database: `await db.read(fn)` and `await db.write(fn)`, where fn takes a connection.

SQLite: reads run inline (0.1 ms), writes in one writer thread under BEGIN IMMEDIATE, synchronous=FULL. Both keep their
connection open.
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
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar

import psycopg
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
from .prepared import direct
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
Insert: TypeAlias = postgresql.Insert | sqlite.Insert  # both have ON CONFLICT
WRITERS, READERS = 8, 4  # threads and connections of one core on PostgreSQL
ATTEMPTS = 6
STATEMENTS = 1024  # that SQLite keeps prepared for each connection; the driver's default is 128
TURN_S = 0.005  # that a read on SQLite waits for the writer's statements
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
        self._write_engine = _sqlite(self.url, begin="BEGIN IMMEDIATE") if self.is_sqlite else _writing(self.url)
        self._read_engine = _sqlite(self.url, begin="BEGIN") if self.is_sqlite else _reading(self.url)
        self._turn = _Turn()
        self._kept = _KeptReader(self._read_engine, self._turn) if self.is_sqlite else None
        self._writing: Connection | None = None  # of SQLite's writer thread, kept open between its transactions
        self.on_write: Callable[[float], object] = _ignore  # called with the seconds a transaction took
        self.on_close: list[Callable[[], None]] = []

    async def read(self, fn: Callable[[Connection], T]) -> T:
        if self.is_sqlite:
            return self._read_once(fn, self._kept)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.read_now, fn)

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn` in one transaction and return its result. The transaction is committed when `fn` returns, and rolled
        back when `fn` raises."""
        once = self._write_kept if self.is_sqlite else self._write_once
        return await asyncio.get_running_loop().run_in_executor(self._writers, self._timed, once, fn)

    def read_now(self, fn: Callable[[Connection], T]) -> T:
        return self._with_retries(self._read_once, fn)

    def write_now(self, fn: Callable[[Connection], T]) -> T:
        return self._timed(self._write_once, fn)

    def _timed(self, once: Callable[[Callable[[Connection], T]], T], fn: Callable[[Connection], T]) -> T:
        started = time.perf_counter()
        try:
            return self._with_retries(once, fn)
        finally:
            self.on_write(time.perf_counter() - started)

    def _read_once(self, fn: Callable[[Connection], T], reader: "_KeptReader | None" = None) -> T:
        kept = reader.take() if reader else None
        if reader and kept:
            return reader.read(kept, fn)
        with self._read_engine.connect() as connection:
            try:
                return fn(connection)
            finally:
                _end_read(connection)

    def _write_once(self, fn: Callable[[Connection], T]) -> T:
        with self._write_engine.connect() as connection:
            return _in_transaction(connection, fn)

    def _write_kept(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn` in a transaction on the connection that SQLite's writer thread keeps open. After an error the
        connection is returned to the pool, and the pool rolls the transaction back."""
        connection, self._writing = self._writing or self._write_engine.connect(), None
        try:
            direct(connection).hear(connection)  # a tool may have begun to listen to statements
            result = _in_transaction(connection, lambda tx: self._turn.write(fn, tx))
        except BaseException:
            connection.close()
            raise
        self._writing = connection
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

    @property
    def read_engine(self) -> Engine:
        return self._read_engine

    def close(self) -> None:
        for end in self.on_close:
            end()
        self._writers.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        if self._kept:
            self._kept.close()
        if self._writing:
            self._writing.close()
        self._read_engine.dispose()
        self._write_engine.dispose()


def _in_transaction(connection: Connection, fn: Callable[[Connection], T]) -> T:
    transaction, known = connection.begin(), direct(connection)
    known.open = True
    try:
        with issued_by(Issuer(lambda: take_number(connection))):
            result = fn(connection)
    finally:
        known.open = False
    try:
        transaction.commit()
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        # The commit may have succeeded, so never repeat it here. A retry with the Idempotency-Key is safe.
        raise Unavailable("Lost the database connection during commit.", retry_after_s=1) from error
    return result


class _Turn:
    """Lets a read of the event loop wait until the writer has sent its statements.

    Both threads give up Python's interpreter lock at every statement. Without this, they hand it to each other at every
    statement too, and each time costs as much CPU as a small statement.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = self._given_up = 0  # of a transaction

    def write(self, fn: Callable[[Connection], T], tx: Connection) -> T:
        with self._lock:
            self._number += 1
            return fn(tx)

    def wait(self) -> None:
        """Wait for the writer, but only `TURN_S`, and only once for each of its transactions."""
        number = self._number
        if not self._lock.locked() or number == self._given_up:
            return
        if self._lock.acquire(timeout=TURN_S):
            self._lock.release()
        else:
            self._given_up = number


class _KeptReader:
    """Keeps one SQLite connection open for the reads of the event loop's thread.

    Taking a connection from the pool and starting a transaction with SQLAlchemy cost several times as much as the
    statements of a small read. Reads in other threads, and a read inside a read, use the pool.
    """

    def __init__(self, engine: Engine, turn: _Turn) -> None:
        self._engine, self._turn = engine, turn
        self._connection: Connection | None = None
        self._thread: int | None = None
        self._busy = False

    def take(self) -> Connection | None:
        if self._busy or (self._thread is not None and self._thread != threading.get_ident()):
            return None
        if self._connection is None:
            self._thread, self._connection = threading.get_ident(), self._engine.connect()
        self._busy = True
        return self._connection

    def read(self, connection: Connection, fn: Callable[[Connection], T]) -> T:
        driver, known = _sqlite_driver(connection), direct(connection)
        known.hear(connection)  # a tool may have begun to listen to statements
        self._turn.wait()
        driver.execute("BEGIN")
        known.open = True
        try:
            return fn(connection)
        finally:
            known.open = self._busy = False
            if connection.in_transaction():  # a statement was sent through SQLAlchemy, which joined the transaction
                connection.rollback()
            elif driver.in_transaction:
                driver.rollback()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _sqlite_driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def full_url(url: str) -> str:
    """Add the driver that the core ships to a `postgresql://…` or `postgres://…` URL; return other URLs unchanged."""
    scheme, separator, rest = url.partition("://")
    return f"postgresql+psycopg://{rest}" if separator and scheme in ("postgresql", "postgres") else url


def keep_private(url: str) -> None:
    """Make the files of a SQLite database accessible to this user only, even in a folder that others can read.

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
    """Take PostgreSQL's advisory lock with this name until the transaction ends. Do nothing on SQLite, which has one
    writer."""
    if tx.dialect.name == "postgresql":
        tx.execute(select(func.pg_advisory_xact_lock(_number(name))))


def try_name(tx: Connection, name: str) -> bool:
    """Take the advisory lock with this name and return True; return False without waiting if another transaction holds
    it. Always True on SQLite."""
    if tx.dialect.name != "postgresql":
        return True
    return bool(tx.execute(select(func.pg_try_advisory_xact_lock(_number(name)))).scalar())


def insert_into(tx: Connection, table: Table) -> Insert:
    """Return an INSERT statement in the dialect of this database, which supports ON CONFLICT."""
    return insert_of(tx.dialect.name, table)


def insert_new(tx: Connection, table: Table, **values: object) -> bool:
    """Insert a row and return True; if its key exists already, write nothing and return False."""
    new = insert_into(tx, table).values(**values).on_conflict_do_nothing().returning(*table.primary_key)
    return tx.execute(new).first() is not None


def delete_some(tx: Connection, table: Table, old: ColumnElement[bool]) -> int:
    """Delete at most `AT_ONCE` of the rows that match `old`, so that a cleanup does not hold locks for long; return how
    many were deleted."""
    key = tuple_(*table.primary_key)
    some = select(*table.primary_key).where(old).limit(AT_ONCE)
    return tx.execute(delete(table).where(key.in_(some))).rowcount


def insert_of(dialect: str, table: Table) -> Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def sqlstate(error: BaseException) -> str:
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def _worth_repeating(error: DBAPIError | PoolTimeout) -> bool:
    """Whether the transaction was certainly rolled back and can be repeated: it lost a conflict or a deadlock, or its
    connection was lost before the commit was sent."""
    if isinstance(error, PoolTimeout):
        return False
    return error.connection_invalidated or sqlstate(error) in (SERIALIZATION, DEADLOCK)


def _problem(error: DBAPIError | PoolTimeout) -> Exception:
    if isinstance(error, DataError):  # too long for its column, or a NUL character
        return Invalid("A value is too long or has a character that cannot be stored.")
    if isinstance(error, PoolTimeout | OperationalError | InterfaceError):
        return Unavailable("The database does not respond.", retry_after_s=1)
    return error


def _postgresql(url: str, connections: int, isolation_level: str) -> Engine:
    arguments = {"options": SESSION, "application_name": "gpuaas-core", "connect_timeout": 5}
    return create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=10,
        isolation_level=isolation_level,
        connect_args=arguments,
    )


def _writing(url: str) -> Engine:
    return _postgresql(url, WRITERS, "READ COMMITTED")


def _reading(url: str) -> Engine:
    """Return the engine for reads: every transaction sees one snapshot and can neither lock nor change rows."""
    engine = _postgresql(url, READERS, "REPEATABLE READ")

    @event.listens_for(engine, "connect")
    def configure(connection: psycopg.Connection[object], _record: object) -> None:
        connection.read_only = True

    return engine


def _end_read(connection: Connection) -> None:
    """End a read with a commit, although nothing was written. After a rollback the driver drops its prepared
    statements, and PostgreSQL would parse and plan every statement of every read again."""
    if not connection.invalidated:
        connection.commit()


def _ignore(_seconds: float) -> None:
    pass


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch SQLite to WAL mode. Retry, because the switch needs an exclusive lock and two core processes may start at
    the same time."""
    for _ in range(300):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            time.sleep(0.05)
    connection.execute("PRAGMA journal_mode=WAL")


def _sqlite(url: str, *, begin: str) -> Engine:
    engine = create_engine(
        url, connect_args={"check_same_thread": False, "timeout": 15, "cached_statements": STATEMENTS}
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver must not send BEGIN implicitly
        for pragma in ("busy_timeout=15000", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        _use_wal(connection)

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        driver = _sqlite_driver(connection)
        if not driver.in_transaction:  # `_KeptReader` begins before SQLAlchemy does
            driver.execute(begin)  # through SQLAlchemy it would cost 80 µs

    @event.listens_for(engine, "rollback_savepoint")
    def renumber(_connection: Connection, _name: str, _context: None) -> None:
        drop_number()  # a number taken inside the savepoint was rolled back with it, so take a new one

    return engine
