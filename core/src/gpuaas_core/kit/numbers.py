"""Numbers of write transactions, by which ids sort: one sequence per database, shared by all core processes.

PostgreSQL uses a sequence, which no writer waits for. SQLite has one writer at a time anyway: there the number is a row
of `store_facts`. The number of a rolled back transaction is lost on PostgreSQL and reused on SQLite.
"""

from sqlalchemy import Connection, text

from .rows import Scalar

SEQUENCE = FACT = "id_number"
_TAKE = {
    "postgresql": Scalar[int](text(f"SELECT nextval('{SEQUENCE}')")),
    "sqlite": Scalar[str](
        text(f"UPDATE store_facts SET value = CAST(value AS INTEGER) + 1 WHERE name = '{FACT}' RETURNING value")  # noqa: S608
    ),
}
_READ = {
    "postgresql": f"SELECT last_value FROM {SEQUENCE}",  # noqa: S608
    "sqlite": f"SELECT value FROM store_facts WHERE name = '{FACT}'",  # noqa: S608
}
_RAISE = {
    "postgresql": text(f"SELECT setval('{SEQUENCE}', greatest(nextval('{SEQUENCE}'), :least))"),
    "sqlite": text(
        f"INSERT INTO store_facts (name, value) VALUES ('{FACT}', :least) ON CONFLICT (name)"  # noqa: S608
        " DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))"
    ),
}


def take_number(tx: Connection) -> int:
    return int(_TAKE[tx.dialect.name].all(tx)[0])


def read_number(tx: Connection) -> int:
    """Return a number that is at least as large as every transaction number used so far."""
    return int(tx.exec_driver_sql(_READ[tx.dialect.name]).scalar_one())


def raise_number(tx: Connection, least: int) -> None:
    """Raise the sequence so that all later numbers are larger than `least`. Call this only while no core process uses
    the database."""
    tx.execute(_RAISE[tx.dialect.name], {"least": least})
