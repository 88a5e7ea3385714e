"""The one seam to the database: `await db.read(fn)` and `await db.write(fn)`, fn being a function of a connection.

SQLite: reads run inline (0.1 ms), writes in one writer thread under BEGIN IMMEDIATE, synchronous=FULL.
PostgreSQL: both in a small thread pool. See docs/decisions/0002-data-path.md.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, MetaData, create_engine, event

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


class Database:
    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        self._writers = ThreadPoolExecutor(1 if self.is_sqlite else 8, thread_name_prefix="db")
        self._write_engine = _engine(url, begin="BEGIN IMMEDIATE")
        self.on_write: Callable[[float], object] = _nobody  # told how many seconds a transaction took
        self._read_engine = _engine(url, begin="BEGIN") if self.is_sqlite else self._write_engine

    async def read(self, fn: Callable[[Connection], T]) -> T:
        if self.is_sqlite:
            return self.read_now(fn)
        return await asyncio.get_running_loop().run_in_executor(self._writers, self.read_now, fn)

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """One transaction: committed when fn returns, gone when it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, self.write_now, fn)

    def read_now(self, fn: Callable[[Connection], T]) -> T:
        with self._read_engine.connect() as connection:
            return fn(connection)

    def write_now(self, fn: Callable[[Connection], T]) -> T:
        started = time.perf_counter()
        try:
            with self._write_engine.begin() as connection:
                return fn(connection)
        finally:
            self.on_write(time.perf_counter() - started)

    @property
    def engine(self) -> Engine:
        return self._write_engine

    def close(self) -> None:
        self._writers.shutdown(wait=True)
        self._read_engine.dispose()
        self._write_engine.dispose()


def _nobody(_seconds: float) -> None:
    pass


def _engine(url: str, *, begin: str) -> Engine:
    if not url.startswith("sqlite"):
        return create_engine(url, pool_size=8, max_overflow=4, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 15})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not send BEGIN by itself
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=15000"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
