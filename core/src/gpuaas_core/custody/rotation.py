"""Key rotation without downtime: a new master key (wraps data keys), new data keys (seal secrets), or another holder.

Every step is one small transaction and idempotent: the same command completes an interrupted rotation.
"""

import os
from collections import Counter
from collections.abc import Callable

from sqlalchemy import ColumnElement, Connection, and_, select, update

from ..kit.db import Database
from ..kit.vault import SEALED, SealedColumn
from .data_keys import all_keys, holder_versions, newest_key
from .key_providers.port import Holder
from .tables import data_keys
from .vault import ROOT, DataKeyVault, add_key, unwrap, wrapped_for


def rewrap(db: Database, old: Holder, new: Holder) -> int:
    """Rewrap every data key with the newest master key of `new`, and return how many were rewrapped. `old` is the
    holder that wrapped them, which may be the same holder."""
    now, done = new.current(), 0
    for row in db.read_now(all_keys):
        if (row.holder, row.holder_version) == (new.kind, now):
            continue
        key = unwrap(old if row.holder == old.kind else new, row)
        version, wrapped = new.wrap(key, wrapped_for(row.owner, row.version))
        change = {"holder": new.kind, "holder_version": version, "wrapped": wrapped}
        this = (data_keys.c.owner == row.owner) & (data_keys.c.version == row.version)
        done += db.write_now(lambda tx, c=change, t=this: tx.execute(update(data_keys).where(t).values(**c)).rowcount)
    return done


def used_versions(tx: Connection, holder: Holder) -> set[str]:
    return holder_versions(tx, holder.kind)


def rotate_data_key(tx: Connection, vault: DataKeyVault, tenant_id: str) -> int:
    if tenant_id == ROOT:
        raise ValueError("the root key is rewrapped, never replaced: tokens and signatures depend on it")
    before = newest_key(tx, tenant_id)
    version = before.version + 1 if before else 1
    add_key(tx, vault.holder, tenant_id, version, os.urandom(32))
    return version


def reseal(db: Database, vault: DataKeyVault) -> int:
    """Reseal every sealed value of every room under its tenant's newest data key, and return how many values.
    Afterwards the older data keys can be deleted."""
    return sum(_reseal_column(db, vault, place) for place in SEALED)


def forget_data_keys(db: Database) -> int:
    """Delete the old data keys that no longer seal a value; return how many."""

    def drop(tx: Connection) -> int:
        in_use = _sealing(tx)
        deleted = 0
        for row in (row for row in all_keys(tx) if row.owner != ROOT):
            newest = newest_key(tx, row.owner)
            if newest and row.version < newest.version and not in_use[row.owner, row.version]:
                this = (data_keys.c.owner == row.owner) & (data_keys.c.version == row.version)
                deleted += tx.execute(data_keys.delete().where(this)).rowcount
        return deleted

    return db.write_now(drop)


def _reseal_column(db: Database, vault: DataKeyVault, place: SealedColumn) -> int:
    keys = list(place.table.primary_key)
    rows = db.read_now(lambda tx: tx.execute(select(*keys).where(place.column.is_not(None))).all())
    these = [and_(*(key == value for key, value in zip(keys, row, strict=True))) for row in rows]
    return sum(db.write_now(_reseal_row(vault, place, this)) for this in these)


def _reseal_row(vault: DataKeyVault, place: SealedColumn, this: ColumnElement[bool]) -> Callable[[Connection], int]:
    def change(tx: Connection) -> int:
        row = tx.execute(select(place.table).where(this).with_for_update()).first()
        sealed: bytes | None = getattr(row, place.column.name, None)
        if row is None or not sealed:
            return 0
        tenant: str = getattr(row, place.tenant.name)
        newest = newest_key(tx, tenant)
        if newest and vault.version_of(sealed) == newest.version:
            return 0
        bound_to = place.bound_to(row)
        again = vault.seal(tx, tenant, vault.unseal(tx, tenant, sealed, bound_to), bound_to)
        return tx.execute(update(place.table).where(this).values({place.column.name: again})).rowcount

    return change


def _sealing(tx: Connection) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for place in SEALED:
        for tenant, sealed in tx.execute(select(place.tenant, place.column).where(place.column.is_not(None))):
            counts[tenant, DataKeyVault.version_of(sealed)] += 1
    return counts
