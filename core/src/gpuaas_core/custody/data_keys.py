"""The stored data keys: wrapped by a master key, one row per owner and version."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from ..kit.rows import Query
from .key_providers.port import CustodyFailed
from .tables import data_keys


@dataclass(frozen=True)
class DataKeyRow:
    """The columns of `tables.data_keys`, in their order."""

    owner: str
    version: int
    holder: str
    holder_version: str
    wrapped: bytes
    created_at: int


_ALL = Query(select(data_keys), DataKeyRow)
_NEWEST = _ALL.where(data_keys.c.owner == bindparam("owner")).order_by(data_keys.c.version.desc()).limit(1)
_VERSION = _ALL.where(data_keys.c.owner == bindparam("owner"), data_keys.c.version == bindparam("version"))
_OWNERS = select(data_keys.c.owner).distinct().order_by(data_keys.c.owner)
_HOLDER_VERSIONS = select(data_keys.c.holder_version).where(data_keys.c.holder == bindparam("holder")).distinct()


def all_keys(tx: Connection) -> list[DataKeyRow]:
    return _ALL.all(tx)


def newest_key(tx: Connection, owner: str) -> DataKeyRow | None:
    return _NEWEST.first(tx, owner=owner)


def key_row(tx: Connection, owner: str, version: int) -> DataKeyRow:
    row = _VERSION.first(tx, owner=owner, version=version)
    if row is None:
        raise CustodyFailed("The data key of a sealed value is not in the database.")
    return row


def owners(tx: Connection) -> list[str]:
    return list(tx.execute(_OWNERS).scalars())


def holder_versions(tx: Connection, holder: str) -> set[str]:
    """Return the versions of the holder's master key that wrap a data key."""
    return set(tx.execute(_HOLDER_VERSIONS, {"holder": holder}).scalars())
