"""A PostgreSQL of our own for the tests: Debian's programs, a cluster in a temporary folder, a socket and no network.

`GPUAAS_TEST_DATABASE=postgresql` runs the whole suite on it. One cluster per pytest session, shared by its workers; it
ends with the process that started it (gpuaas_lab/postgres.py).
"""

import atexit
import functools
import hashlib
import os
from pathlib import Path
from typing import Any

import psycopg
from gpuaas_lab import postgres as own
from gpuaas_lab.postgres import PORT, remove_leftovers
from psycopg import sql

__all__ = ["PORT", "remove_leftovers"]

CHOSEN = os.environ.get("GPUAAS_TEST_DATABASE", "sqlite") == "postgresql"
PLACE = "GPUAAS_TEST_POSTGRES_FOLDER"
PASSING = {"pg_internal.init"}  # a cache of the catalogue, which comes and goes with its changes


class Cluster(own.Cluster):
    """Whose place the workers of a session know."""

    def start(self) -> None:
        super().start()
        os.environ[PLACE] = str(self.folder)

    def stop(self) -> None:
        super().stop()
        os.environ.pop(PLACE, None)


def folder() -> Path:
    return Path(os.environ[PLACE])


def url(database: str) -> str:
    return f"postgresql+psycopg://gpuaas@/{database}?host={folder()}&port={PORT}"


def connect(database: str, **more: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(dbname=database, host=str(folder()), port=PORT, user="gpuaas", autocommit=True, **more)


def database_of(place: Path) -> str:
    """Each test folder has one database, found again by the folder's name."""
    return "t_" + hashlib.sha256(str(place).encode()).hexdigest()[:20]


def create(database: str, template: str = "template0") -> None:
    words = sql.SQL("create database {} template {}").format(sql.Identifier(database), sql.Identifier(template))
    with connect("postgres") as connection:
        connection.execute(words)


def drop(database: str) -> None:
    with connect("postgres") as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(database)))


def copy_out(database: str, tables: list[str]) -> dict[str, bytes]:
    with connect(database) as connection:
        return {table: _copied(connection, table) for table in tables}


def _copied(connection: psycopg.Connection[Any], table: str) -> bytes:
    with connection.cursor().copy(sql.SQL("copy {} to stdout").format(sql.Identifier(table))) as copy:
        return b"".join(bytes(piece) for piece in copy)


@functools.cache
def _refilling(database: str) -> psycopg.Connection[Any]:
    """Kept from test to test."""
    connection = connect(database)
    atexit.register(connection.close)
    return connection


def refill(database: str, content: dict[str, bytes]) -> None:
    """Everything as it was when copied out, in one transaction: faster than a new database. All rows come together, so
    foreign keys are not checked row by row."""
    emptied = sql.SQL("; ").join(sql.SQL("delete from {}").format(sql.Identifier(table)) for table in content)
    connection = _refilling(database)
    with connection.transaction():
        connection.execute("set local session_replication_role = replica")
        connection.execute(emptied)
        for table, rows in content.items():
            if rows:
                with connection.cursor().copy(sql.SQL("copy {} from stdin").format(sql.Identifier(table))) as copy:
                    copy.write(rows)


def files(database: str) -> list[Path]:
    """The database as it lies on the disk."""
    with connect(database) as connection:
        connection.execute("checkpoint")
        (oid,) = connection.execute("select oid from pg_database where datname = current_database()").fetchone() or (0,)
    known = (folder() / "data" / "base" / str(oid)).iterdir()
    return [file for file in known if file.is_file() and file.name not in PASSING]
