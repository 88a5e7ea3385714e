"""Bring a store to the newest schema. On SQLite under BEGIN IMMEDIATE, so two starting processes do not race."""

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event

from ..ledger.events import ensure_store_epoch


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config


def migrate(url: str, revision: str = "head") -> None:
    engine = create_engine(url)
    if url.startswith("sqlite"):
        _transactional_ddl(engine)
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), revision)
        ensure_store_epoch(connection)
    engine.dispose()


def _transactional_ddl(engine: Any) -> None:
    """SQLite can roll a schema change back when the driver does not commit behind our back."""

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout=30000")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
