"""Typed database rows. A query is built once, and returns its rows as frozen dataclasses. Rows that are only shown in
long lists are a `NamedTuple` instead, which is built in a fifth of the time.

    WINDOWS = Query(select(windows), WindowRow)
    WINDOWS.where(windows.c.id == bindparam("window")).first(tx, window=window_id)

The columns of the statement and the fields of the class must have the same names in the same order. That is checked
when the query is built, so a column that was added to a table without its field stops the process at import.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, fields
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Delete,
    Insert,
    Integer,
    Row,
    Select,
    Table,
    TextClause,
    Update,
    bindparam,
    update,
)
from sqlalchemy.exc import NoResultFound

from .prepared import Prepared

# The type parameter of a statement says nothing here: the dataclass of the query says what its rows are.
Statement: TypeAlias = Select[*tuple[Any, ...]]
RawRow: TypeAlias = Row[*tuple[Any, ...]]
Values: TypeAlias = Sequence[Any]  # of one row, in the order of its columns
AT_ONCE = 500


class Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


AnyRow: TypeAlias = Dataclass | tuple[object, ...]  # a tuple: a NamedTuple
R = TypeVar("R", bound=AnyRow)


class RowMismatch(TypeError):
    """A statement selects other columns than the fields of its row class."""


def builder_of(row: type[R]) -> Callable[[Values], R]:
    """Return a function that builds an object of the class `row` from the values of a database row.

    For a plain dataclass the function sets the fields directly: without the constructor, a row of thirty columns is
    built in a sixth of the time.
    """
    if issubclass(row, tuple):
        # `Query` has compared the names, so there is a value for each.
        return partial(tuple.__new__, row)  # pyright: ignore[reportUnknownMemberType] # a tuple of any types
    plain = not hasattr(row, "__post_init__") and not hasattr(row, "__slots__") and all(f.init for f in fields(row))
    if not plain:
        return lambda values: row(*values)
    # Written out for the fields of the class, as `dataclass` itself does: a loop over the names takes twice as long.
    targets = "".join(f"own[{field.name!r}], " for field in fields(row))
    code = f"def build(values):\n    made = new(row)\n    own = made.__dict__\n    {targets}= values\n    return made\n"
    made: dict[str, Callable[[Values], R]] = {}
    exec(code, {"new": object.__new__, "row": row}, made)  # noqa: S102 - only names of fields are put in
    return made["build"]


def names_of(row: type[AnyRow]) -> list[str]:
    if issubclass(row, tuple):
        return list(row.__annotations__)
    return [field.name for field in fields(row) if field.init]


class Query(Generic[R]):
    """A SELECT statement and the class of its rows. Methods that change the statement return a new query."""

    def __init__(self, statement: Statement, row: type[R]) -> None:
        self.statement, self.row, self._prepared = statement, row, Prepared(statement)
        self._build = builder_of(row)
        self._values: Mapping[str, object] = {}
        self._pages: dict[tuple[Column[str], bool, bool], Query[R]] = {}
        selected = [column.key for column in statement.selected_columns]
        wanted = names_of(row)
        if selected != wanted:
            raise RowMismatch(f"{row.__name__} has the fields {wanted}, but the statement selects {selected}.")

    def where(self, *conditions: ColumnElement[bool]) -> "Query[R]":
        return self._with(self.statement.where(*conditions))

    def order_by(self, *columns: ColumnElement[str] | ColumnElement[int] | ColumnElement[bool]) -> "Query[R]":
        return self._with(self.statement.order_by(*columns))

    def limit(self, most: int | BindParameter[int]) -> "Query[R]":
        return self._with(self.statement.limit(most))

    def locked(self, of: Table | None = None, *, skip_locked: bool = False) -> "Query[R]":
        """Return the query with row locks, which last until the transaction ends. Other transactions can still insert
        rows with foreign keys that refer to the locked rows."""
        return self._with(self.statement.with_for_update(key_share=True, of=of, skip_locked=skip_locked))

    def bound(self, **values: object) -> "Query[R]":
        """Return the query with these parameter values. The statement is not built again."""
        changed = self._with(self.statement, self._prepared)
        changed._values, changed._pages = {**self._values, **values}, self._pages
        return changed

    def page(self, id_column: Column[str], size: int, after: str | None, *, newest_first: bool) -> "Query[R]":
        """Return the query for one page of `size` rows in the order of ids, after the id `after` (None: the first
        page). The statement is cached per kind of page."""
        key = (id_column, after is not None, newest_first)
        if key not in self._pages:
            beyond, order = (
                bindparam("page_after", type_=id_column.type),
                id_column.desc() if newest_first else id_column,
            )
            narrowed = (
                self.where(id_column < beyond if newest_first else id_column > beyond) if after is not None else self
            )
            self._pages[key] = narrowed.order_by(order).limit(bindparam("page_size", type_=Integer))
        return self._pages[key].bound(**self._values, page_after=after, page_size=size)

    def first(self, tx: Connection, **values: object) -> R | None:
        values = {**self._values, **values} if self._values else values
        rows = self._prepared.rows(tx, values)
        if rows is not None:
            return self._build(rows[0]) if rows else None
        row = tx.execute(self.statement, values).first()
        return None if row is None else self._build(row)

    def one(self, tx: Connection, **values: object) -> R:
        values = {**self._values, **values} if self._values else values
        rows = self._prepared.rows(tx, values)
        if rows is None or len(rows) != 1:
            return self._build(tx.execute(self.statement, values).one())
        return self._build(rows[0])

    def all(self, tx: Connection, **values: object) -> list[R]:
        build, values = self._build, {**self._values, **values}
        rows = self._prepared.rows(tx, values)
        return [build(row) for row in (tx.execute(self.statement, values) if rows is None else rows)]

    def stream(self, tx: Connection, **values: object) -> Iterator[R]:
        """Iterate over the rows, `AT_ONCE` at a time, for tables that do not fit into memory."""
        build, values = self._build, {**self._values, **values}
        for row in tx.execute(self.statement, values, execution_options={"yield_per": AT_ONCE}):
            yield build(row)

    def _with(self, statement: Statement, prepared: Prepared | None = None) -> "Query[R]":
        changed = object.__new__(type(self))
        changed.statement, changed.row, changed._prepared = statement, self.row, prepared or Prepared(statement)
        changed._build = self._build
        changed._values, changed._pages = self._values, {}
        return changed


class Command:
    """An INSERT, UPDATE or DELETE that is built once.

    `columns` are the columns it sets: `Command(insert(windows), ("id", "size")).run(tx, id=…, size=…)`.
    """

    def __init__(self, statement: Insert | Update | Delete, columns: Sequence[str] | None = None) -> None:
        self.statement = statement
        self._prepared = Prepared(statement, columns)

    def run(self, tx: Connection, **values: object) -> int:
        """Run the statement and return how many rows changed."""
        changed = self._prepared.run(tx, values)
        return tx.execute(self.statement, values).rowcount if changed is None else changed

    def many(self, tx: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        """Run the statement for all these rows. How many rows changed is not known: some drivers do not count them."""
        if not self._prepared.run_many(tx, rows):
            tx.execute(self.statement, [dict(row) for row in rows])


class WriteQuery(Generic[R]):
    """A `Command` that returns the rows it wrote, through `RETURNING` with the columns of the dataclass."""

    def __init__(
        self, statement: Insert | Update, table: Table, row: type[R], columns: Sequence[str] | None = None
    ) -> None:
        self.statement, self.row = statement.returning(*(table.c[name] for name in names_of(row))), row
        self._prepared, self._build = Prepared(self.statement, columns), builder_of(row)

    def one(self, tx: Connection, **values: object) -> R:
        rows = self._rows(tx, values)
        if len(rows) != 1:
            raise NoResultFound(f"{len(rows)} rows were written where one was expected.")
        return self._build(rows[0])

    def first(self, tx: Connection, **values: object) -> R | None:
        """Return the row that was written, or None if there was a conflict (`on_conflict_do_nothing`)."""
        rows = self._rows(tx, values)
        return self._build(rows[0]) if rows else None

    def _rows(self, tx: Connection, values: Mapping[str, object]) -> Sequence[Values]:
        rows = self._prepared.rows(tx, values)
        return tx.execute(self.statement, values).all() if rows is None else rows


V = TypeVar("V")


class Scalar(Generic[V]):
    """A query of one column: `Scalar[int](select(windows.c.size).where(…))`."""

    def __init__(self, statement: Statement | TextClause) -> None:
        self.statement, self._prepared = statement, Prepared(statement)

    def first(self, tx: Connection, **values: object) -> V | None:
        found = self.all(tx, **values)
        return found[0] if found else None

    def all(self, tx: Connection, **values: object) -> list[V]:
        rows = self._prepared.rows(tx, values)
        return [row[0] for row in (tx.execute(self.statement, values) if rows is None else rows)]


class Changes:
    """UPDATEs of one row, found by its key. A statement is built once for each set of changed columns.

    `_CHANGES = Changes(windows)`; `_CHANGES.one(tx, window_id, {"size": 3}, WindowRow)` returns the changed row.
    """

    def __init__(self, table: Table, key: str = "id") -> None:
        self._table, self._key = table, key
        self._commands: dict[tuple[str, ...], Command] = {}
        self._returning: dict[tuple[str, ...], WriteQuery[Any]] = {}

    def run(self, tx: Connection, key: str, change: Mapping[str, object]) -> int:
        columns = tuple(change)
        if columns not in self._commands:
            self._commands[columns] = Command(self._update(columns))
        return self._commands[columns].run(tx, **_named(key, change))

    def one(self, tx: Connection, key: str, change: Mapping[str, object], row: type[R]) -> R:
        columns = tuple(change)
        if columns not in self._returning:
            self._returning[columns] = WriteQuery(self._update(columns), self._table, row)
        return self._returning[columns].one(tx, **_named(key, change))

    def _update(self, columns: Sequence[str]) -> Update:
        changed = {name: bindparam(f"new_{name}", type_=self._table.c[name].type) for name in columns}
        return update(self._table).where(self._table.c[self._key] == bindparam("changed_key")).values(changed)


def _named(key: str, change: Mapping[str, object]) -> dict[str, object]:
    return {"changed_key": key, **{f"new_{name}": value for name, value in change.items()}}
