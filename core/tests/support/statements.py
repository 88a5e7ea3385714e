"""What SQL became of each statement, kept for all stores of this process.

Every test opens a store of its own, and compiling the same statements again was a third of its time.
"""

from typing import Any

from gpuaas_core.kit.db import Database


class Statements(dict[Any, Any]):
    """By statement and kind of database, whichever connection asks."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), value)


KNOWN = Statements()


def keep(db: Database) -> None:
    for engine in (db._read_engine, db._write_engine):  # pyright: ignore[reportPrivateUsage]
        engine.update_execution_options(compiled_cache=KNOWN)
