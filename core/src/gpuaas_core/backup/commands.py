"""The commands `gpuaas-core backup`, `restore` and `restored`,
for the platform's operator on the platform's own host."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from pydantic import TypeAdapter

from ..custody.data_keys import DataKeyRow
from ..custody.key_providers import open_holder
from ..custody.key_providers.embedded import FILE, INLINE
from ..custody.vault import ROOT, unwrap
from ..kit.clock import rfc3339, system_clock
from ..kit.db import Database, full_url
from ..kit.problems import Problem
from ..migrations.migrate import alembic_config, migrate
from ..settings import Settings
from . import copies, restore_fencing
from .copies import NotPossible

ITS_OWN = {"alembic_version", "store_facts", "data_keys"}  # tables with rows in an unused database
_DATA_KEY = TypeAdapter(DataKeyRow)


def backup(folder: Path) -> None:
    """Copy the database of a running core to a new folder. The copy has everything except the master key.

    Example: `gpuaas-core backup /backups/gpuaas-monday`

    Parameters
    ----------
    folder
        Created by this command; must not exist yet.
    """
    settings = Settings.read()
    db = Database(settings.database_url)
    try:
        made = copies.write(db, settings.checkpoints, folder.absolute(), system_clock())
    except NotPossible as error:
        _stop(error)
    finally:
        db.close()
    rows = sum(table["rows"] for table in made["tables"].values())
    print(f"Copied {rows} rows of {len(made['tables'])} tables to {folder}. Back up the master key separately.")


def restore(folder: Path) -> None:
    """Restore a backup into an empty database, and fence all newer state. The master key must be in place.

    Example: `GPUAAS_CORE_DATA=/srv/new gpuaas-core restore /backups/gpuaas-monday`

    Parameters
    ----------
    folder
        The folder written by `gpuaas-core backup`.
    """
    settings = Settings.read()
    try:
        manifest = copies.read_manifest(folder)
        _check_key(settings, folder, manifest)
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check_empty(settings, manifest)
        migrate(settings.database_url, manifest["schema"])
        _load(settings, folder, manifest)
    except NotPossible as error:
        _stop(error)
    migrate(settings.database_url)
    kept = _bring_checkpoints(settings, folder)
    _fence(settings, f"restored the backup of {rfc3339(manifest['at'])}")
    print(kept)


def restored() -> None:
    """Fence all newer state after the database was restored with other tools (pg_restore, a snapshot).

    Example: `gpuaas-core restored`
    """
    settings = Settings.read()
    migrate(settings.database_url)
    _fence(settings, "restored with other tools")


def _fence(settings: Settings, reason: str) -> None:
    db = Database(settings.database_url)
    done = db.write_now(lambda tx: restore_fencing.fence(tx, reason, system_clock()))
    db.close()
    counted = ", ".join(f"{number} {what}" for what, number in done.items())
    print(f"Fenced: {counted}. Next run `gpuaas-core audit verify` and `gpuaas-core doctor`, then serve.")


def _load(settings: Settings, folder: Path, manifest: copies.Manifest) -> None:
    db = Database(settings.database_url)
    try:
        with db.engine.begin() as tx:
            copies.load(tx, folder, manifest)
    finally:
        db.close()


def _check_key(settings: Settings, folder: Path, manifest: copies.Manifest) -> None:
    """Raise NotPossible unless the master key can decrypt the backup.
    Runs before anything is written; never creates a key."""
    path = settings.data_dir / "master.key"
    if settings.custody == "embedded" and not (path.exists() or INLINE in os.environ or FILE in os.environ):
        raise NotPossible(f"No master key at {path}. Put the master key of the backed-up platform there.")
    roots = [row for row in copies.rows_of(folder, manifest, "data_keys") if row["owner"] == ROOT]
    holder = open_holder(settings.custody, os.environ, settings.data_dir)
    try:
        for row in roots:
            unwrap(holder, _DATA_KEY.validate_python(row))
    except Problem as error:
        raise NotPossible(
            f"The master key does not open this backup: {error.detail} Use the key from the time of the backup."
        ) from error


def _check_empty(settings: Settings, manifest: copies.Manifest) -> None:
    engine = sa.create_engine(full_url(settings.database_url))
    try:
        with engine.connect() as tx:
            _check_schema(tx, manifest["schema"])
            for name in set(sa.inspect(tx).get_table_names()) - ITS_OWN:
                if tx.execute(sa.select(sa.literal(1)).select_from(sa.table(name)).limit(1)).first():
                    raise NotPossible(f"The database is not empty ({name} has rows). Restore into an empty database.")
    finally:
        engine.dispose()


def _check_schema(tx: sa.Connection, wanted: str) -> None:
    try:
        ScriptDirectory.from_config(alembic_config(tx)).get_revision(wanted)
    except CommandError as error:
        raise NotPossible(f"The backup has the newer schema {wanted!r}. Restore it with that release.") from error
    there = MigrationContext.configure(tx).get_current_revision()
    if there not in (None, wanted):
        raise NotPossible(f"The database has schema {there!r}, the backup {wanted!r}. Restore into an empty database.")


def _bring_checkpoints(settings: Settings, folder: Path) -> str:
    """Copy the audit checkpoints of the backup, unless the platform's folder already has some, which are newer or of
    another platform. Return a message for the operator."""
    if settings.checkpoints.is_dir() and any(settings.checkpoints.iterdir()):
        return (
            f"The audit checkpoints in {settings.checkpoints} are kept: rows they cover that the backup lacks are lost."
        )
    if (folder / copies.CHECKPOINTS).is_dir():
        shutil.copytree(folder / copies.CHECKPOINTS, settings.checkpoints, dirs_exist_ok=True)
    return f"Restored the audit checkpoints to {settings.checkpoints}."


def _stop(error: NotPossible) -> NoReturn:
    print(error, file=sys.stderr)
    raise SystemExit(2)
