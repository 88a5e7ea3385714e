"""Queries whose rows are dataclasses: mismatches are found when the query is built, not when a row is read."""

from dataclasses import dataclass

import pytest
from gpuaas_core.kit.db import insert_of
from gpuaas_core.kit.paging import page_of
from gpuaas_core.kit.rows import Changes, Command, Query, RowMismatch, Scalar, WriteQuery
from sqlalchemy import (
    JSON,
    Column,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    create_engine,
    event,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError, NoResultFound, OperationalError

pytestmark = pytest.mark.any_store

windows = Table("windows", MetaData(), Column("id", String, primary_key=True), Column("size", Integer))


@dataclass(frozen=True)
class WindowRow:
    id: str
    size: int | None


WINDOWS = Query(select(windows), WindowRow)


@pytest.fixture
def tx():
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        windows.create(connection)
        connection.execute(insert(windows), [{"id": f"w{number}", "size": number} for number in range(5)])
        yield connection


def test_rows_come_out_as_their_dataclass(tx):
    by_id = WINDOWS.where(windows.c.id == bindparam("window"))
    assert by_id.first(tx, window="w3") == WindowRow("w3", 3)
    assert by_id.first(tx, window="none") is None
    assert [row.size for row in WINDOWS.order_by(windows.c.size.desc()).limit(2).all(tx)] == [4, 3]


def test_a_query_with_other_columns_than_its_dataclass_is_rejected_when_it_is_built():
    with pytest.raises(RowMismatch, match="WindowRow"):
        Query(select(windows.c.size, windows.c.id), WindowRow)


def test_an_insert_that_conflicts_writes_nothing(tx):
    new = insert_of("sqlite", windows).on_conflict_do_nothing()
    query, command = WriteQuery(new, windows, WindowRow, ("id", "size")), Command(new, ("id", "size"))
    for number in range(3):
        assert query.first(tx, id=f"new{number}", size=7) == WindowRow(f"new{number}", 7)
        assert query.first(tx, id="w3", size=7) is None
        assert [command.run(tx, id=one, size=1) for one in ("w1", f"many{number}", "w2")] == [0, 1, 0]
    assert WINDOWS.where(windows.c.id == "w3").one(tx) == WindowRow("w3", 3)


def test_pages_of_a_typed_query_return_every_row_once(tx):
    seen, cursor = [], None
    while True:
        rows, cursor = page_of(tx, WINDOWS, windows.c.id, limit=2, cursor=cursor)
        seen += [row.id for row in rows]
        if cursor is None:
            break
    assert seen == ["w0", "w1", "w2", "w3", "w4"]


boxes = Table("boxes", MetaData(), Column("id", String, primary_key=True), Column("content", JSON))


@dataclass(frozen=True)
class BoxRow:
    id: str
    content: object


BOXES = Query(select(boxes), BoxRow)


@pytest.fixture
def boxed():
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        boxes.create(connection)
        connection.execute(insert(boxes), [{"id": "full", "content": {"of": ["air"]}}, {"id": "none", "content": None}])
        connection.commit()
        yield connection


def test_a_query_that_is_sent_again_returns_the_same_rows(boxed):
    """From its second use on, the driver gets the compiled text directly: types are converted as before."""
    every, by_id = BOXES.order_by(boxes.c.id), BOXES.where(boxes.c.id == bindparam("box"))
    for _ in range(3):
        assert every.all(boxed) == [BoxRow("full", {"of": ["air"]}), BoxRow("none", None)]
        assert by_id.one(boxed, box="full") == BoxRow("full", {"of": ["air"]})
        assert by_id.first(boxed, box="else") is None
        boxed.rollback()  # and it begins a transaction by itself


def test_who_listens_to_statements_hears_those_that_are_sent_again(boxed):
    heard = []
    for _ in range(3):
        BOXES.all(boxed)
    event.listen(boxed.engine, "before_cursor_execute", lambda _c, _k, text, *_: heard.append(text))
    with boxed.engine.connect() as later:  # from the next connection, or the next read of the kept one, on
        BOXES.all(later)
    assert len(heard) == 1


def test_the_driver_s_errors_are_those_of_sqlalchemy(boxed):
    every = BOXES.where(boxes.c.id != "")
    for _ in range(3):
        every.all(boxed)
    boxes.drop(boxed)
    with pytest.raises(OperationalError, match="no such table"):
        every.all(boxed)


def test_a_command_changes_rows_and_counts_them(boxed):
    add = Command(insert(boxes), ("id", "content"))
    rename = Command(update(boxes).where(boxes.c.id == bindparam("old")), ("id",))
    for number in range(3):
        add.many(boxed, [{"id": f"many-{number}-{one}", "content": [one]} for one in range(2)])
        assert add.run(boxed, id=f"one-{number}", content={"n": number}) == 1
        assert rename.run(boxed, old=f"one-{number}", id=f"first-{number}") == 1
        assert rename.run(boxed, old="nothing", id="else") == 0
    assert BOXES.where(boxes.c.id == "first-2").all(boxed) == [BoxRow("first-2", {"n": 2})]
    assert BOXES.where(boxes.c.id == "many-2-1").all(boxed) == [BoxRow("many-2-1", [1])]
    with pytest.raises(IntegrityError):
        add.run(boxed, id="full", content=None)


def test_a_query_with_lists_returns_the_same_rows_whatever_their_length(boxed):
    named = BOXES.where(boxes.c.id.in_(bindparam("ids", expanding=True)), boxes.c.id.in_(("full", "none", "gone")))
    by_id = named.order_by(boxes.c.id)
    for ids in (["full"], ["none", "full"], [], ["full"], ["none", "full"], [], ["gone"]):
        assert [row.id for row in by_id.all(boxed, ids=ids)] == sorted(set(ids) & {"full", "none"})
    many = [f"box-{number}" for number in range(100)]
    assert [row.id for row in by_id.all(boxed, ids=[*many, "full"])] == ["full"]


def test_changes_return_the_row_they_made_whichever_columns_change(boxed):
    changes, sizes = Changes(boxes), Scalar[str](select(boxes.c.id).where(boxes.c.content.is_not(None)))
    for number in range(3):
        assert changes.one(boxed, "full", {"content": [number]}, BoxRow) == BoxRow("full", [number])
    assert changes.one(boxed, "full", {"id": "new", "content": {}}, BoxRow) == BoxRow("new", {})
    with pytest.raises(NoResultFound):
        changes.one(boxed, "full", {"content": [1]}, BoxRow)
    assert [changes.run(boxed, "new", {"content": number}) for number in range(3)] == [1, 1, 1]
    assert changes.run(boxed, "full", {"content": 1}) == 0
    for _ in range(3):
        assert "new" in sizes.all(boxed)
        assert sizes.first(boxed) is not None


def test_a_list_of_pairs_is_sent_with_the_pairs_of_this_call(tx):
    """The text is kept, the values are not: policies of one project must never be asked for another."""
    pair = tuple_(windows.c.id, windows.c.size)
    wanted = WINDOWS.where(pair.in_(bindparam("pairs", expanding=True))).order_by(windows.c.id)
    for number in (0, 1, 2, 3):
        pairs = [(f"w{number}", number), (f"w{number + 1}", number + 1)]
        assert [(row.id, row.size) for row in wanted.all(tx, pairs=pairs)] == pairs
