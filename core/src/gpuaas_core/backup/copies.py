"""Backups: a folder with a manifest and a file per table, from one snapshot of a database in use.

Rows are JSON lines, so a backup of SQLite can be restored into PostgreSQL and the other way round. Secrets stay sealed,
as in the database; the master key is not included. A backup is written atomically, and verified completely before any
of its rows is loaded.
"""

import base64
import gzip
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NotRequired, TypedDict

import sqlalchemy as sa
from alembic.migration import MigrationContext

from .. import __version__
from ..kit.db import Database, metadata
from ..kit.numbers import raise_number, read_number

FORMAT = 1
AT_ONCE = 500
MANIFEST, TABLES, CHECKPOINTS = "manifest.json", "tables", "checkpoints"


class TableCopy(TypedDict):
    columns: list[tuple[str, str]]  # the name, and the kind: bytes, json or plain
    rows: int


class Contents(TypedDict):
    schema: str
    id_number: NotRequired[int]  # missing in backups of an older schema
    tables: dict[str, TableCopy]


class Manifest(Contents):
    format: int
    at: int
    core_version: str
    files: dict[str, str]  # the digest of each


class NotPossible(Exception):
    """The backup or restore is not possible. The message states the reason and what to do."""


def write(db: Database, checkpoints: Path, folder: Path, now: int) -> Manifest:
    """Write a backup to `folder`, or raise NotPossible if the folder exists. The audit checkpoints are copied before
    the rows, so that they cover no row that the backup lacks."""
    partial = folder.with_name(f"{folder.name}.partial")
    if folder.exists():
        raise NotPossible(f"{folder} exists already. Choose a new folder.")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / TABLES).mkdir(parents=True, mode=0o700)
    partial.chmod(0o700)
    if checkpoints.is_dir():
        shutil.copytree(checkpoints, partial / CHECKPOINTS)
    about = db.read_now(lambda tx: _write_tables(tx, partial / TABLES))
    files = {str(path.relative_to(partial)): _digest(path) for path in sorted(partial.rglob("*")) if path.is_file()}
    manifest: Manifest = {"format": FORMAT, "at": now, "core_version": __version__, "files": files, **about}
    (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    for path in (path for path in partial.rglob("*") if path.is_file()):
        path.chmod(0o600)
        _sync(path)
    partial.rename(folder)
    _sync(folder.parent)
    return manifest


def _write_tables(tx: sa.Connection, folder: Path) -> Contents:
    schema = MigrationContext.configure(tx).get_current_revision()
    if schema is None:
        raise NotPossible("The database has no schema, so there is nothing to back up. Check GPUAAS_CORE_DATA.")
    tables = {table.name: _write_table(tx, table, folder) for table in metadata.sorted_tables}
    return {"schema": schema, "id_number": read_number(tx), "tables": tables}


def _write_table(tx: sa.Connection, table: sa.Table, folder: Path) -> TableCopy:
    kinds = [(column.name, _kind(column.type)) for column in table.columns]
    # A JSON column as text, byte for byte.
    asked = [sa.cast(c, sa.Text).label(c.name) if _kind(c.type) == "json" else c for c in table.columns]
    count = 0
    with gzip.open(folder / f"{table.name}.jsonl.gz", "wt", compresslevel=3) as file:
        for row in tx.execute(sa.select(*asked), execution_options={"yield_per": AT_ONCE}):
            file.write(json.dumps([_out(value) for value in row], ensure_ascii=False) + "\n")
            count += 1
    return {"columns": kinds, "rows": count}


def read_manifest(folder: Path) -> Manifest:
    try:
        manifest: Manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise NotPossible(f"{folder} is not a backup: cannot read its {MANIFEST}. Choose a complete backup.") from error
    if manifest.get("format") != FORMAT:
        raise NotPossible("Unknown backup format. Restore it with the release that created it.")
    for name, digest in manifest["files"].items():
        path = folder / name
        if not path.is_file() or _digest(path) != digest:
            raise NotPossible(f"The file {name} of the backup is missing or modified. Use another backup.")
    return manifest


def rows_of(folder: Path, manifest: Manifest, table: str) -> Iterator[dict[str, object]]:
    columns = manifest["tables"][table]["columns"]
    with gzip.open(folder / TABLES / f"{table}.jsonl.gz", "rt") as file:
        for line in file:
            values: list[object] = json.loads(line)
            yield {name: _back(value, kind) for (name, kind), value in zip(columns, values, strict=True)}


def load(tx: sa.Connection, folder: Path, manifest: Manifest) -> None:
    """Replace the rows of all tables by those of the backup. The database has the backup's schema, which may be older
    than the current one, so the columns are those of the backup."""
    for table in reversed(manifest["tables"]):
        tx.execute(sa.delete(sa.table(table)))
    for table, about in manifest["tables"].items():
        named = sa.table(table, *(_column(name) for name, _ in about["columns"]))
        add = sa.insert(named).values({name: _bound(tx, name, kind) for name, kind in about["columns"]})
        waiting, count = rows_of(folder, manifest, table), 0
        while some := list(itertools.islice(waiting, AT_ONCE)):
            tx.execute(add, some)
            count += len(some)
        if count != about["rows"]:
            raise NotPossible(f"The table {table} has {count} rows instead of {about['rows']}. Use another backup.")
    if "id_number" in manifest:
        raise_number(tx, manifest["id_number"])


def _kind(type_: object) -> str:
    kinds = {sa.LargeBinary: "bytes", sa.JSON: "json"}
    return next((kind for known, kind in kinds.items() if isinstance(type_, known)), "plain")


def _column(name: str) -> sa.ColumnClause[object]:
    return sa.column(name)


def _bound(
    tx: sa.Connection, name: str, kind: str
) -> sa.ColumnElement[str] | sa.ColumnElement[bytes] | sa.ColumnElement[object]:
    if kind == "json":
        text = sa.bindparam(name, type_=sa.Text)
        return sa.cast(text, sa.JSON) if tx.dialect.name == "postgresql" else text
    if kind == "bytes":
        return sa.bindparam(name, type_=sa.LargeBinary)
    plain: sa.BindParameter[object] = sa.bindparam(name)
    return plain


def _out(value: object) -> object:
    plain = value.tobytes() if isinstance(value, memoryview) else value
    return base64.b64encode(plain).decode() if isinstance(plain, bytes) else plain


def _back(value: object, kind: str) -> object:
    return base64.b64decode(value) if kind == "bytes" and isinstance(value, str) else value


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
