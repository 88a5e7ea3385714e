"""Statements that are compiled once and then sent through the driver directly.

SQLAlchemy needs 40 µs to send a statement that it has compiled before, SQLite needs 5 to answer it. On a path that
every request takes, the statement is therefore kept as text, with the order of its parameters and the conversions of
their types (JSON). Errors of the driver are raised as SQLAlchemy's, so callers handle one kind.

With list parameters (`IN`, expanding) there is one text for each combination of their lengths, up to `MOST_TEXTS`.

SQLAlchemy still sends the statement where this is not possible or does not pay: the first time (a query that is built
for one call is never compiled twice), with long lists, and where a test or a tool listens to the statements of the
engine.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NoReturn, Protocol, TypeAlias, TypeGuard

from pydantic_core import PydanticSerializationError, from_json, to_json
from sqlalchemy import JSON, Connection, Engine
from sqlalchemy.engine import Dialect
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

# What the driver takes and returns: any type that a column can have.
Value: TypeAlias = Any
Convert: TypeAlias = Callable[[Value], Value]
Parameters: TypeAlias = list[Value] | dict[str, Value]
RawRows: TypeAlias = Sequence[tuple[Value, ...]]
Lengths: TypeAlias = tuple[int, ...]
MOST_TEXTS, LONGEST_LIST = 20, 16
_DIRECT = "gpuaas_direct"  # where a connection keeps its `Direct`
_PARAMETER = re.compile(r"%\((\w+)\)s|%%")  # in a text for psycopg


class Source(Protocol):
    """A source of rows that were fetched ahead. It is asked before each query on its connection, and returns the rows
    of the query, or None if it does not have them."""

    def rows(self, statement: "Prepared", values: Mapping[str, object]) -> RawRows | None: ...


class Prepared:
    """One statement. It is compiled, once per dialect, when it is sent for the second time."""

    def __init__(self, statement: ClauseElement, columns: Sequence[str] | None = None) -> None:
        self._statement, self._columns = statement, columns
        self._plans: dict[tuple[str, Lengths], _Plan | None] = {}
        self._plain: dict[str, _Plan] = {}  # the plan of a statement without list parameters, by dialect
        self._lists: tuple[str, ...] | None = None  # names of list parameters; None: not known yet
        self._sent_before = False
        self._text: Text | None = None

    def rows(self, tx: Connection, values: Mapping[str, object]) -> RawRows | None:
        """Run the query through the driver and return its rows, or None if SQLAlchemy has to send the statement."""
        known: Direct | None = tx.__dict__.get(_DIRECT)
        if known:
            if known.source and (rows := known.source.rows(self, values)) is not None:
                return rows
            if known.allowed and (plain := self._plain.get(known.dialect)):
                return plain.rows(tx, known, values)
        plan = self._plan(tx, values)
        return plan.rows(tx, direct(tx), values) if plan else None

    def run(self, tx: Connection, values: Mapping[str, object]) -> int | None:
        """Run the statement through the driver and return how many rows changed; None if SQLAlchemy has to send it."""
        plan = self._plan(tx, values)
        return plan.run(tx, values) if plan else None

    def run_many(self, tx: Connection, rows: Sequence[Mapping[str, object]]) -> bool:
        """Run the statement for all rows through the driver; return False if SQLAlchemy has to send the statement."""
        plan = self._plan(tx, {})
        if plan:
            plan.run_many(tx, rows)
        return plan is not None

    def text(self, dialect: Dialect, values: Mapping[str, object]) -> "Text":
        """Return the SQL text of the query for PostgreSQL's own protocol. The query must have no list parameters."""
        if self._text is None:
            self._text = Text(_Plan(self._compiled(dialect), dialect, values, ()))
        return self._text

    def _plan(self, tx: Connection, values: Mapping[str, object]) -> "_Plan | None":
        known: Direct | None = tx.__dict__.get(_DIRECT)
        if known and known.allowed and (plain := self._plain.get(known.dialect)):
            return plain
        if not self._sent_before:
            self._sent_before = True
            return None
        if not direct(tx).allowed:
            return None
        if self._lists is None:
            self._lists = tuple(
                name for name, bind in self._compiled(tx.dialect).binds.items() if bind.expanding and bind.required
            )
        key = (tx.dialect.name, tuple([len(_list(values, name)) for name in self._lists]))
        try:
            return self._plans[key]
        except KeyError:
            plan = self._plans[key] = self._new_plan(tx, values, key[1])
            if plan and not self._lists:
                self._plain[tx.dialect.name] = plan
            return plan

    def _new_plan(self, tx: Connection, values: Mapping[str, object], lengths: Lengths) -> "_Plan | None":
        if len(self._plans) >= MOST_TEXTS or max(lengths, default=0) > LONGEST_LIST:
            return None
        compiled = self._compiled(tx.dialect)
        return None if compiled.escaped_bind_names else _Plan(compiled, tx.dialect, values, self._lists or ())

    def _compiled(self, dialect: Dialect) -> SQLCompiler:
        compiled = self._statement.compile(dialect=dialect, column_keys=self._columns)
        assert isinstance(compiled, SQLCompiler)
        return compiled


def _list(values: Mapping[str, object], name: str) -> Sequence[object]:
    value = values[name]
    assert _is_sequence(value)
    return value


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence)


def _parts(items: Sequence[object]) -> list[object]:
    """Flatten the items: each tuple is replaced by its parts."""
    return [part for item in items for part in (item if _is_tuple(item) else (item,))]


def _is_tuple(item: object) -> TypeGuard[tuple[object, ...]]:
    return isinstance(item, tuple)


class Direct:
    """Access to the driver below a SQLAlchemy connection, and whether statements may be sent through it. Created once
    per connection."""

    __slots__ = ("allowed", "cursor", "dialect", "open", "source")

    def __init__(self, tx: Connection) -> None:
        self.hear(tx)
        self.dialect = tx.dialect.name
        driver = tx.connection.dbapi_connection
        assert driver is not None
        self.cursor: Callable[[], DBAPICursor] = driver.cursor
        self.open = False  # a transaction is known to be open, so that SQLAlchemy need not begin one
        self.source: Source | None = None

    def hear(self, tx: Connection) -> None:
        """Set `allowed` to False if a test or a tool listens to the statements of the engine, so that SQLAlchemy sends
        them; otherwise to True."""
        self.allowed = not is_heard(tx)


def is_heard(where: Connection | Engine) -> bool:
    """Return whether a test or a tool listens to the statements of this connection or engine."""
    heard = where.dispatch
    return bool(heard.before_cursor_execute or heard.after_cursor_execute)


def direct(tx: Connection) -> Direct:
    known: Direct | None = tx.__dict__.get(_DIRECT)
    if known is None:
        known = tx.__dict__[_DIRECT] = Direct(tx)
    return known


class Fetched(Connection):
    """A connection without a driver. A source answers its prepared queries; every other statement raises
    `otherwise`."""

    def __init__(self, engine: Engine, source: Source, otherwise: Exception) -> None:
        self.engine, self.dialect, self._otherwise = engine, engine.dialect, otherwise
        known = self.__dict__[_DIRECT] = object.__new__(Direct)
        known.allowed, known.open, known.source = False, True, source

    @property
    def connection(self) -> NoReturn:
        raise self._otherwise

    def begin(self) -> NoReturn:
        raise self._otherwise

    def execute(self, *_: object, **__: object) -> NoReturn:
        raise self._otherwise

    def exec_driver_sql(self, *_: object, **__: object) -> NoReturn:
        raise self._otherwise


class Text:
    """A query with numbered parameters ($1, $2, …) that are sent as text; PostgreSQL infers their types."""

    def __init__(self, plan: "_Plan") -> None:
        self._plan = plan
        self.names: list[str] = []  # of the parameters, in order
        self.sql = _PARAMETER.sub(self._numbered, plan.text).encode()

    def _numbered(self, found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return "%"
        if name not in self.names:
            self.names.append(name)
        return f"${self.names.index(name) + 1}"

    def parameters(self, values: Mapping[str, object]) -> list[bytes | None]:
        given = self._plan.named_parameters(values)
        return [encoded(given[name]) for name in self.names]

    def is_sent_as_given(self, name: str) -> bool:
        """Whether the parameter is sent without a conversion of its type."""
        return not self._plan.has_conversion(name)

    def converted(self, rows: RawRows) -> RawRows:
        return self._plan.converted(rows) if rows else rows


def encoded(value: object) -> bytes | None:
    """Encode a parameter as text for PostgreSQL. Raises TypeError for a type that has no such text here."""
    if isinstance(value, str):
        return value.encode()
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int):
        return b"%d" % value
    raise TypeError(f"A value of the type {type(value).__name__} cannot be sent as text.")


class _Plan:
    def __init__(
        self, compiled: SQLCompiler, dialect: Dialect, values: Mapping[str, object], lists: Sequence[str]
    ) -> None:
        written_out = compiled.construct_expanded_state(dict(values)) if compiled.post_compile_params else None
        self.text = written_out.statement if written_out else str(compiled)
        self._positional = compiled.positional
        self._into = {name: convert for name, bind in compiled.binds.items() if (convert := _into(bind.type, dialect))}
        fixed = {name: bind.effective_value for name, bind in compiled.binds.items() if not bind.required}
        names = list(dict.fromkeys(compiled.bind_names.values()))
        order = compiled.positiontup if compiled.positional else names
        # By list parameter, the names of its items in the text; an item that is a tuple has a name for each part.
        self._items = {name: written_out.parameter_expansion[name] for name in lists} if written_out else {}
        if written_out:
            given = {*values, *(item for items in self._items.values() for item in items)}
            fixed |= {name: value for name, value in written_out.parameters.items() if name not in given}
            order = written_out.positiontup if compiled.positional else list(written_out.parameters)
            self._into |= {name: convert for name, convert in written_out.processors.items() if callable(convert)}
        self._fixed = {name: self._into[name](v) if name in self._into else v for name, v in fixed.items()}
        self._order = list(order or ())
        # Parameters whose values the caller gives, each with its place in the text and its conversion. The template has
        # the others.
        self._given = [(at, name, self._into.get(name)) for at, name in enumerate(self._order) if name not in fixed]
        self._names_given = len({name for _, name, _ in self._given})
        self._template: list[Value] = [self._fixed.get(name) for name in self._order]
        self._in_template = self._positional and not self._items
        # Takes all parameters from the caller's values at once; None if some are fixed or there is only one.
        self._pick = itemgetter(*self._order) if len(self._given) == len(self._order) > 1 else None
        self._converted = [(at, convert) for at, _, convert in self._given if convert]
        selected = getattr(compiled.statement, "selected_columns", None)
        if selected is None:
            selected = getattr(compiled.statement, "exported_columns", ())
        types = [column.type for column in selected]
        self._out = [(at, convert) for at, one in enumerate(types) if (convert := _out(one, dialect))]

    def rows(self, tx: Connection, known: Direct, values: Mapping[str, object]) -> RawRows:
        parameters = self._parameters(values)
        if not (known.open or tx.in_transaction()):
            tx.begin()
        cursor = known.cursor()
        try:
            cursor.execute(self.text, parameters)
            rows = cursor.fetchall()
        except Exception as error:
            _raise(tx, error, cursor, self.text)
            raise
        cursor.close()
        return self.converted(rows) if self._out and rows else rows

    def converted(self, rows: RawRows) -> RawRows:
        converted: list[tuple[Value, ...]] = []
        for row in rows:
            columns = [*row]
            for at, convert in self._out:
                if columns[at] is not None:
                    columns[at] = convert(columns[at])
            converted.append((*columns,))
        return converted

    def has_conversion(self, name: str) -> bool:
        return name in self._into

    def named_parameters(self, values: Mapping[str, object]) -> Mapping[str, Value]:
        found = self._parameters(values)
        assert isinstance(found, dict)
        return found

    def run(self, tx: Connection, values: Mapping[str, object]) -> int:
        cursor = self._execute(tx, direct(tx), self._parameters(values))
        changed = cursor.rowcount
        cursor.close()
        return changed

    def run_many(self, tx: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        self._execute(tx, direct(tx), [self._parameters(row) for row in rows], many=True).close()

    def _parameters(self, values: Mapping[str, object]) -> Parameters:
        if self._in_template and len(values) == self._names_given:  # so no value replaces a fixed one
            if self._pick:
                found = [*self._pick(values)]
                for at, convert in self._converted:
                    found[at] = convert(found[at])
                return found
            found = self._template.copy()
            for at, name, convert in self._given:
                found[at] = convert(values[name]) if convert else values[name]
            return found
        for name, items in self._items.items():
            values = {**values, **dict(zip(items, _parts(_list(values, name)), strict=True))}
        into, fixed = self._into, self._fixed
        found = [
            (into[name](values[name]) if name in into else values[name]) if name in values else fixed[name]
            for name in self._order
        ]
        return found if self._positional else dict(zip(self._order, found, strict=True))

    def _execute(self, tx: Connection, known: Direct, parameters: Value, *, many: bool = False) -> DBAPICursor:
        if not (known.open or tx.in_transaction()):
            tx.begin()
        cursor = known.cursor()
        try:
            if many:
                cursor.executemany(self.text, parameters)
            else:
                cursor.execute(self.text, parameters)
        except Exception as error:
            _raise(tx, error, cursor, self.text)
            raise
        return cursor


def _into(kind: TypeEngine[Value], dialect: Dialect) -> Convert | None:
    convert = kind.dialect_impl(dialect).bind_processor(dialect)
    if not isinstance(kind, JSON) or convert is None or dialect.name != "sqlite":
        return convert

    def into_json(value: Value) -> Value:
        if _is_container(value):
            try:
                return to_json(value).decode()
            except PydanticSerializationError:  # half of a surrogate pair, which only an escape can express
                pass
        return convert(value)

    return into_json


def _is_container(value: object) -> bool:
    return isinstance(value, dict | list)


def _out(kind: TypeEngine[Value], dialect: Dialect) -> Convert | None:
    if isinstance(kind, JSON) and dialect.name == "sqlite":
        return from_json
    return kind.dialect_impl(dialect).result_processor(dialect, None)


def _raise(tx: Connection, error: Exception, cursor: DBAPICursor, text: str) -> None:
    """Raise an error of the driver as SQLAlchemy's exception, and discard the connection if it was lost. Return without
    effect if the error is not from the driver."""
    driver = tx.dialect.loaded_dbapi
    if not isinstance(error, driver.Error):
        return
    lost = tx.dialect.is_disconnect(error, tx.connection.driver_connection, cursor)  # type: ignore[arg-type] # any driver's
    if lost:
        tx.invalidate(error)
    raise DBAPIError.instance(
        text, None, error, driver.Error, hide_parameters=True, connection_invalidated=lost, dialect=tx.dialect
    ) from error
