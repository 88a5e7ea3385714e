"""The command `gpuaas-core custody`: shows the holder of the master key,
and rotates or moves keys of a running platform."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

from ..kit.db import Database
from ..kit.problems import Problem
from ..settings import Settings
from . import rotation
from .data_keys import DataKeyRow, all_keys, owners
from .key_providers import OPENERS, open_holder
from .key_providers.port import CustodyFailed, Holder
from .vault import ROOT, open_vault

custody = App(name="custody", help="Show, rotate and move the master key without downtime.")


@custody.command
def status() -> None:
    """Show the master key's holder, the versions in use, and whether every data key can be unwrapped."""
    _, db, holder = _here()
    rows = db.read_now(all_keys)
    current = holder.current()
    closed = [row.owner for row in rows if not _opens(holder, row)]
    print(f"holder    {holder.kind}, current version {current}")
    for (kind, version), count in sorted(Counter((row.holder, row.holder_version) for row in rows).items()):
        print(f"wraps     {count} data keys with version {version} of {kind}")
    if closed:
        _stop(f"{len(closed)} data keys do not unwrap ({', '.join(sorted(set(closed))[:5])}). {CustodyFailed.way_out}")
    print(f"unwrapped {len(rows)} of {len(rows)} data keys")


@custody.command
def rotate(*, add_only: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Create a new master key and rewrap every data key with it. Running cores need no restart.

    Parameters
    ----------
    add_only
        Only create the key. For several cores with a key file each: copy the file to all of them, then run `rewrap`.
    """
    _, db, holder = _here()
    version = holder.rotate()
    print(f"Version {version} of the master key is the current one.")
    if not add_only:
        _say_rewrapped(rotation.rewrap(db, holder, holder))


@custody.command
def rewrap() -> None:
    """Wrap every data key with the current master key. Completes an interrupted rotation."""
    _, db, holder = _here()
    _say_rewrapped(rotation.rewrap(db, holder, holder))


@custody.command
def retire() -> None:
    """Delete master keys that wrap no data key. Backups older than the last `rewrap` cannot be opened afterwards."""
    _, db, holder = _here()
    retired = holder.retire(db.read_now(lambda tx: rotation.used_versions(tx, holder)))
    print(f"Retired: version {', '.join(retired)}." if retired else "Nothing to retire.")


@custody.command(name="renew-data-keys")
def renew_data_keys(tenant: str | None = None) -> None:
    """Create a new data key for one tenant or for all, reseal every value with it, and delete the old keys.

    Parameters
    ----------
    tenant
        Id of the tenant, or `platform`; all if omitted.
    """
    _, db, holder = _here()
    vault = open_vault(db.write_now, holder)
    renewed = [tenant] if tenant else [owner for owner in db.read_now(owners) if owner != ROOT]
    for owner in renewed:
        db.write_now(lambda tx, owner=owner: rotation.rotate_data_key(tx, vault, owner))
    resealed, dropped = rotation.reseal(db, vault), rotation.forget_data_keys(db)
    print(f"{len(renewed)} new data keys, {resealed} values resealed, {dropped} old keys deleted.")


@custody.command
def move(to: str) -> None:
    """Move the data keys to another holder. Then set GPUAAS_CORE_CUSTODY to that holder and restart the cores.

    Parameters
    ----------
    to
        embedded, openbao or pkcs11; its settings must be in the environment already
    """
    settings, db, holder = _here()
    if to not in OPENERS or to == holder.kind:
        _stop(f"Choose another holder: {', '.join(kind for kind in OPENERS if kind != holder.kind)}.")
    open_vault(db.write_now, holder)
    _say_rewrapped(rotation.rewrap(db, holder, _try(lambda: open_holder(to, os.environ, settings.data_dir))))
    print(f"Set GPUAAS_CORE_CUSTODY={to} and restart the cores.")


def _here() -> tuple[Settings, Database, Holder]:
    settings = Settings.read()
    holder = _try(lambda: open_holder(settings.custody, os.environ, settings.data_dir))
    return settings, Database(settings.database_url), holder


def _try(fn: Callable[[], Holder]) -> Holder:
    try:
        return fn()
    except RuntimeError as error:
        _stop(str(error))


def _opens(holder: Holder, row: DataKeyRow) -> bool:
    try:
        return bool(rotation.unwrap(holder, row))
    except Problem:
        return False


def _say_rewrapped(count: int) -> None:
    print(f"{count} data keys rewrapped." if count else "Every data key is already wrapped with it.")


def _stop(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    raise SystemExit(1)
