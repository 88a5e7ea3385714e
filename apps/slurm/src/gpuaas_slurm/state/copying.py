"""What a controller remembers, taken to another place: from a folder to a database, or back. `gpuaas-slurm state copy`.

Nobody may use either place meanwhile, and what the new one has already is never written over. A copy that broke off is
simply made again.
"""

from pathlib import Path

from gpuaas_slurm.state.journal import TABLES
from gpuaas_slurm.state.store import Rows, Store, opened, place

NAMES = {"steps": "steps", "waits": "waits for hosts", "setbacks": "setbacks", "worked": "versions that worked"}


class NotCopied(Exception):
    """A sentence for the person, with what they can do."""


def copy(said_from: str, said_to: str) -> str:
    """What was copied, in words."""
    old, new = place(said_from), place(said_to)
    if old == new:
        raise NotCopied("That is one and the same place.")
    if isinstance(old, Path) and not old.is_file():
        raise NotCopied(f"There is no journal in {old.parent}: give the folder that the controller had as --state.")
    source, target = opened(old, TABLES), None
    try:
        target = opened(new, TABLES)
        for one in (source, target):
            _claim(one)
        found = {table: _all(source, table) for table in NAMES}
        for table, rows in found.items():
            _refuse_others(target, table, rows)
        for table, rows in found.items():
            _bring(target, table, rows)
        return _told(found, target.name)
    finally:
        source.close()
        if target:
            target.close()


def _claim(one: Store) -> None:
    if users := one.others():
        raise NotCopied(
            f"{one.name} is in use ({users}). Stop every controller that has it as --state, then try again."
        )


def _all(one: Store, table: str) -> Rows:
    return one.execute(f"SELECT * FROM {table}")  # noqa: S608 (a name of ours)


def _lacks(some: Rows, other: Rows) -> int:
    """How many rows of `other` are not among `some`."""
    return len({tuple(row.items()) for row in other} - {tuple(row.items()) for row in some})


def _refuse_others(target: Store, table: str, rows: Rows) -> None:
    if _lacks(rows, _all(target, table)):
        raise NotCopied(
            f"{target.name} has {NAMES[table]} of its own. Give an empty place: two memories are not mixed."
        )


def _bring(target: Store, table: str, rows: Rows) -> None:
    for row in rows:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        words = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 (names of ours)
        target.execute(words, tuple(row.values()))
    if missing := _lacks(_all(target, table), rows):
        raise NotCopied(f"{missing} of {len(rows)} {NAMES[table]} did not arrive in {target.name}. Try again.")


def _told(found: dict[str, Rows], name: str) -> str:
    counts = ", ".join(f"{len(rows)} {NAMES[table]}" for table, rows in found.items())
    return f"{name} has it all: {counts}. The old place is as it was."
