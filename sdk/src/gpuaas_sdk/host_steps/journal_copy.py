"""Copies a journal to another store: from a folder to a database, or back.

No controller may use either store meanwhile, and rows of the new store are never overwritten. An interrupted copy can
be repeated.
"""

from pathlib import Path

from .journal import TABLES
from .store import DEFAULT_APP, Rows, Store, open_store, place

NAMES = {"steps": "steps", "waits": "waits for hosts", "setbacks": "setbacks", "worked": "versions that worked"}


class NotCopied(Exception):
    """The journal was not copied. The message is a sentence for people, with what they can do."""


def copy(old_place: str, new_place: str, app: str = DEFAULT_APP) -> str:
    """Copy a journal to another store. Returns a sentence that states what was copied. Raises NotCopied if a store is
    in use or the new store has other rows."""
    old, new = place(old_place), place(new_place)
    if old == new:
        raise NotCopied("Both are the same place. Give another one to copy to.")
    if isinstance(old, Path) and not old.is_file():
        raise NotCopied(f"There is no journal in {old.parent}: give the folder that the controller had as --state.")
    source, target = open_store(old, TABLES, app), None
    try:
        target = open_store(new, TABLES, app)
        for store in (source, target):
            _check_unused(store)
        tables = {table: _all(source, table) for table in NAMES}
        for table, rows in tables.items():
            _check_no_other_rows(target, table, rows)
        for table, rows in tables.items():
            _insert(target, table, rows)
        return _summary(tables, target.name)
    finally:
        source.close()
        if target:
            target.close()


def _check_unused(store: Store) -> None:
    if users := store.others():
        raise NotCopied(
            f"{store.name} is in use ({users}). Stop every controller that has it as --state, then try again."
        )


def _all(store: Store, table: str) -> Rows:
    return store.execute(f"SELECT * FROM {table}")  # noqa: S608 (a name of ours)


def _lacks(some: Rows, other: Rows) -> int:
    """Return how many rows of `other` are missing from `some`."""
    return len({tuple(row.items()) for row in other} - {tuple(row.items()) for row in some})


def _check_no_other_rows(target: Store, table: str, rows: Rows) -> None:
    if _lacks(rows, _all(target, table)):
        raise NotCopied(
            f"{target.name} has {NAMES[table]} of its own. Give an empty place: two journals are not merged."
        )


def _insert(target: Store, table: str, rows: Rows) -> None:
    for row in rows:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 (names of ours)
        target.execute(statement, tuple(row.values()))
    if missing := _lacks(_all(target, table), rows):
        raise NotCopied(f"{missing} of {len(rows)} {NAMES[table]} did not arrive in {target.name}. Try again.")


def _summary(tables: dict[str, Rows], name: str) -> str:
    counts = ", ".join(f"{len(rows)} {NAMES[table]}" for table, rows in tables.items())
    return f"Copied to {name}: {counts}. The old place is unchanged."
