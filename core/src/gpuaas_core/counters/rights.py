"""A counter of permission changes. An event stream reads the counter and its events in one snapshot: a changed counter
means that a permission may have ended before an event was created.

The counter is stored in the database, so that a lost wake-up cannot hide a change. Only permission changes lock it.
"""

from sqlalchemy import Connection, select, text

from ..kit.store_facts import store_facts

_NAME = "rights"
_CHANGE = text(
    f"INSERT INTO store_facts (name, value) VALUES ('{_NAME}', '1') ON CONFLICT (name)"  # noqa: S608 - a constant
    " DO UPDATE SET value = CAST(CAST(store_facts.value AS BIGINT) + 1 AS TEXT)"
)
_READ = select(store_facts.c.value).where(store_facts.c.name == _NAME)


def count_change(tx: Connection) -> None:
    """Increment the counter. Must be called before the counters of tenants are locked, to keep the lock order."""
    tx.execute(_CHANGE)


def changes(tx: Connection) -> int:
    return int(tx.execute(_READ).scalar() or 0)
