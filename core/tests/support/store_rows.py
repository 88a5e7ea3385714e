"""What the store holds, read past the API: whole dumps to compare, single statements, and its files."""

from pathlib import Path
from typing import Any

from gpuaas_core.http.call import Platform
from gpuaas_core.kit.db import metadata
from sqlalchemy import Connection, select, text

from core.tests.support import postgres

PASSING = {"sessions", "used_assertions", "seen_requests"}  # rows that say who asked, not what is
REFUSED = PASSING | {
    "audit",
    "event_heads",
}  # a change refused across a boundary leaves an audit row in the trail of the tenant it was aimed at


def dump(platform: Platform, *, without: set[str] = PASSING) -> dict[str, list[str]]:
    """Every row of every table as text: two equal dumps mean that nothing changed at all."""

    def rows(tx: Connection) -> dict[str, list[str]]:
        kept = [table for table in metadata.sorted_tables if table.name not in without]
        found = {table.name: sorted(repr(tuple(row)) for row in tx.execute(select(table))) for table in kept}
        found["store_facts"] = [row for row in found.get("store_facts", []) if "id_number" not in row]  # ids have gaps
        return found

    return platform.db.read_now(rows)


def store_files(folder: Path) -> list[Path]:
    """The database as it lies on the disk, on SQLite with its write-ahead log."""
    if postgres.CHOSEN:
        return postgres.files(postgres.database_of(folder))
    return [file for file in folder.iterdir() if file.name.startswith("core.db")]


def rows(platform: Platform, statement: str, **values: Any) -> list[dict[str, Any]]:
    """What the store says, past the API: for what the API does not show."""
    return platform.db.read_now(lambda tx: [dict(r._mapping) for r in tx.execute(text(statement), values)])


def one(platform: Platform, statement: str, **values: Any) -> Any:
    (row,) = rows(platform, statement, **values)
    (value,) = row.values()
    return value
