"""Key rotation without downtime: the master key (wraps data keys), a tenant's data key (seals secrets), another holder.

Every step is one small transaction and idempotent: the same command completes an interrupted rotation.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, and_, select, update

from ..kit.db import Database
from ..kit.sealed_columns import SEALED, SealedColumn
from .key_providers.port import Holder
from .tables import data_keys
from .vault import ROOT, Vault, add_key, newest_key, unwrap, wrapped_for


def rewrap(db: Database, old: Holder, new: Holder) -> int:
    """Rewrap every data key with the newest master key of `new`; `old` is the same or the former holder."""
    now, done = new.current(), 0
    for row in db.read_now(lambda tx: tx.execute(select(data_keys)).all()):
        if (row.holder, row.holder_version) == (new.kind, now):
            continue
        key = unwrap(old if row.holder == old.kind else new, row)
        version, wrapped = new.wrap(key, wrapped_for(row.owner, row.version))
        change = {"holder": new.kind, "holder_version": version, "wrapped": wrapped}
        this = and_(*(column == row._mapping[column.name] for column in data_keys.primary_key))
        done += db.write_now(lambda tx, c=change, t=this: tx.execute(update(data_keys).where(t).values(**c)).rowcount)
    return done


def used_versions(tx: Connection, holder: Holder) -> set[str]:
    mine = select(data_keys.c.holder_version).where(data_keys.c.holder == holder.kind)
    return set(tx.execute(mine.distinct()).scalars())


def rotate_data_key(tx: Connection, vault: Vault, tenant_id: str) -> int:
    if tenant_id == ROOT:
        raise ValueError("the root key is rewrapped, never replaced: tokens and signatures depend on it")
    before = newest_key(tx, tenant_id)
    version = before.version + 1 if before else 1
    add_key(tx, vault.holder, tenant_id, version, os.urandom(32))
    return version


def reseal(db: Database, vault: Vault) -> int:
    """Reseal every value of every room under its tenant's newest data key; then the older data keys can be deleted."""
    return sum(_reseal_column(db, vault, place) for place in SEALED)


def forget_data_keys(db: Database) -> int:
    """Delete data keys that seal nothing."""

    def drop(tx: Connection) -> int:
        in_use = _sealing(tx)
        deleted = 0
        for row in tx.execute(select(data_keys).where(data_keys.c.owner != ROOT)).all():
            newest = newest_key(tx, row.owner)
            if newest and row.version < newest.version and not in_use[row.owner, row.version]:
                this = (data_keys.c.owner == row.owner) & (data_keys.c.version == row.version)
                deleted += tx.execute(data_keys.delete().where(this)).rowcount
        return deleted

    return db.write_now(drop)


def _reseal_column(db: Database, vault: Vault, place: SealedColumn) -> int:
    keys = list(place.table.primary_key)
    rows = db.read_now(lambda tx: tx.execute(select(*keys).where(place.column.is_not(None))).all())
    these = [and_(*(key == value for key, value in zip(keys, row, strict=True))) for row in rows]
    return sum(db.write_now(_reseal_row(vault, place, this)) for this in these)


def _reseal_row(vault: Vault, place: SealedColumn, this: Any) -> Callable[[Connection], int]:
    def change(tx: Connection) -> int:
        row = tx.execute(select(place.table).where(this).with_for_update()).first()
        if row is None or not row._mapping[place.column.name]:
            return 0
        sealed: bytes = row._mapping[place.column.name]
        tenant = row._mapping[place.tenant.name]
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
            counts[tenant, Vault.version_of(sealed)] += 1
    return counts
