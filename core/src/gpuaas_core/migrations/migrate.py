"""Migrate a database to a schema, by default the newest. One process at a time, atomically, on both databases.

SQLite: under BEGIN IMMEDIATE. PostgreSQL: under an advisory lock; a second process finds nothing left to do.
"""

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, text

from ..events.event_log import ensure_store_epoch
from ..kit.db import full_url, hold_name, keep_private, metadata


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"], config.attributes["metadata"] = connection, metadata
    return config


def migrate(url: str, revision: str = "head") -> None:
    with _alone(url) as connection:
        command.upgrade(alembic_config(connection), revision)
        ensure_store_epoch(connection)


def downgrade(url: str, revision: str) -> None:
    with _alone(url) as connection:
        command.downgrade(alembic_config(connection), revision)


@contextlib.contextmanager
def _alone(url: str) -> Generator[Connection]:
    keep_private(full_url(url))
    engine = create_engine(full_url(url))
    try:
        if engine.dialect.name == "sqlite":
            _transactional_ddl(engine)
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                _check_encoding(connection)
            hold_name(connection, "migrate")
            yield connection
    finally:
        engine.dispose()


def _check_encoding(connection: Connection) -> None:
    encoding = connection.execute(text("show server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise RuntimeError(
            f"the database has the encoding {encoding}: create it with ENCODING 'UTF8' (operator's guide)"
        )


def _transactional_ddl(engine: Engine) -> None:
    """SQLite can roll back a schema change if the driver does not commit implicitly."""

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout=30000")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
