"""`gpuaas-core backup`, `restore` and `restored`: for the platform's operator, on the platform's own machine."""

import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from ..custody.holders import open_holder
from ..custody.holders.embedded import FILE, INLINE
from ..custody.vault import ROOT, unwrap
from ..kit.clock import rfc3339, system_clock
from ..kit.db import Database, full_url
from ..kit.problems import Problem
from ..migrations.migrate import alembic_config, migrate
from ..settings import Settings
from . import afterwards, copies
from .copies import NotPossible

ITS_OWN = {"alembic_version", "store_facts", "data_keys"}  # what a store has before anything happened


def backup(folder: Path) -> None:
    """Copy the store, while it serves, into a new folder: everything but the master key.

    Example: `gpuaas-core backup /backups/gpuaas-monday`

    Parameters
    ----------
    folder
        Made by this; must not be there yet.
    """
    settings = Settings.read()
    db = Database(settings.database_url)
    try:
        made = copies.write(db, settings.checkpoints, folder.absolute(), system_clock())
    except NotPossible as error:
        _stop(error)
    finally:
        db.close()
    rows = sum(one["rows"] for one in made["tables"].values())
    print(f"{rows} rows of {len(made['tables'])} tables are in {folder}. The master key is not: keep it elsewhere.")


def restore(folder: Path) -> None:
    """Bring a backup back, into an empty store, and fence what happened since. Needs the master key in its place.

    Example: `GPUAAS_CORE_DATA=/srv/new gpuaas-core restore /backups/gpuaas-monday`

    Parameters
    ----------
    folder
        What `gpuaas-core backup` made.
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
    """After the store was brought back with other tools (pg_restore, a snapshot): fence what happened since.

    Example: `gpuaas-core restored`
    """
    settings = Settings.read()
    migrate(settings.database_url)
    _fence(settings, "brought back with other tools")


def _fence(settings: Settings, reason: str) -> None:
    db = Database(settings.database_url)
    done = db.write_now(lambda tx: afterwards.fence(tx, reason, system_clock()))
    db.close()
    counted = ", ".join(f"{number} {what}" for what, number in done.items())
    print(f"Fenced: {counted}. Now `gpuaas-core audit verify` and `gpuaas-core doctor`, then serve.")


def _load(settings: Settings, folder: Path, manifest: dict[str, Any]) -> None:
    db = Database(settings.database_url)
    try:
        with db.engine.begin() as tx:
            copies.load(tx, folder, manifest)
    finally:
        db.close()


def _check_key(settings: Settings, folder: Path, manifest: dict[str, Any]) -> None:
    """Before anything is written. Never makes a key: a new one opens nothing."""
    path = settings.data_dir / "master.key"
    if settings.custody == "embedded" and not (path.exists() or INLINE in os.environ or FILE in os.environ):
        raise NotPossible(
            f"There is no master key at {path}. Put the one there that the backup's store was served with."
        )
    roots = [row for row in copies.rows_of(folder, manifest, "data_keys") if row["owner"] == ROOT]
    holder = open_holder(settings.custody, os.environ, settings.data_dir)
    try:
        for row in roots:
            unwrap(holder, SimpleNamespace(**row))  # type: ignore[arg-type]
    except Problem as error:
        raise NotPossible(
            f"This master key does not open this backup: {error.detail} Use the one of its time."
        ) from error


def _check_empty(settings: Settings, manifest: dict[str, Any]) -> None:
    engine = sa.create_engine(full_url(settings.database_url))
    try:
        with engine.connect() as tx:
            _check_schema(tx, manifest["schema"])
            for name in set(sa.inspect(tx).get_table_names()) - ITS_OWN:
                if tx.execute(sa.select(sa.literal(1)).select_from(sa.table(name)).limit(1)).first():
                    raise NotPossible(f"The store is not empty ({name} has rows). Name an empty database.")
    finally:
        engine.dispose()


def _check_schema(tx: sa.Connection, wanted: str) -> None:
    try:
        ScriptDirectory.from_config(alembic_config(tx)).get_revision(wanted)
    except CommandError as error:
        raise NotPossible(f"The backup has the newer schema {wanted!r}. Restore it with that release.") from error
    there = MigrationContext.configure(tx).get_current_revision()
    if there not in (None, wanted):
        raise NotPossible(f"The store has the schema {there!r} and the backup {wanted!r}. Name an empty database.")


def _bring_checkpoints(settings: Settings, folder: Path) -> str:
    """Those that lie here are newer than the backup's, or of another machine: they stay, and tell the truth."""
    if settings.checkpoints.is_dir() and any(settings.checkpoints.iterdir()):
        return f"The audit checkpoints in {settings.checkpoints} stay: what they know and the store does not, is lost."
    if (folder / copies.CHECKPOINTS).is_dir():
        shutil.copytree(folder / copies.CHECKPOINTS, settings.checkpoints, dirs_exist_ok=True)
    return f"The audit checkpoints of the backup are in {settings.checkpoints}."


def _stop(error: NotPossible) -> NoReturn:
    print(error, file=sys.stderr)
    raise SystemExit(2)
