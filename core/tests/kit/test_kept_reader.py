"""Reads of SQLite use one kept connection, each in a transaction of its own."""

import asyncio
import threading
from pathlib import Path
from unittest.mock import patch

import pytest
from gpuaas_core.kit import db as kit_db
from gpuaas_core.kit.db import Database
from sqlalchemy import Connection, text

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def db(tmp_path: Path):
    db = Database(f"sqlite:///{tmp_path}/kept.db")
    db.write_now(lambda tx: tx.execute(text("create table boxes (n integer)")))
    yield db
    db.close()


def count(tx: Connection) -> int:
    return tx.execute(text("select count(*) from boxes")).scalar_one()


def add(db: Database) -> None:
    db.write_now(lambda tx: tx.execute(text("insert into boxes values (1)")))


def test_one_read_sees_one_state_and_the_next_sees_what_was_written_since(db: Database) -> None:
    def twice(tx: Connection) -> tuple[int, int]:
        first = count(tx)
        add(db)
        return first, count(tx)

    assert db.read_now(twice) == (0, 0)
    assert db.read_now(count) == 1


def test_a_read_inside_a_read_has_its_own_connection(db: Database) -> None:
    def outer(tx: Connection) -> tuple[int, int]:
        before = count(tx)
        add(db)
        return before, db.read_now(count)

    assert db.read_now(outer) == (0, 1)


def test_after_an_error_in_a_read_the_next_one_works(db: Database) -> None:
    def fails(tx: Connection) -> None:
        count(tx)
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        db.read_now(fails)
    add(db)
    assert db.read_now(count) == 1


def test_other_threads_read_beside_it(db: Database) -> None:
    add(db)
    found: list[int] = []

    def read_elsewhere(tx: Connection) -> int:
        thread = threading.Thread(target=lambda: found.append(db.read_now(count)))
        thread.start()
        thread.join()
        return count(tx)

    assert db.read_now(read_elsewhere) == 1
    assert found == [1]


async def test_a_read_waits_until_the_writer_has_sent_its_statements(db: Database) -> None:
    """Otherwise both threads hand the interpreter lock to each other at every statement."""
    begun, sent = threading.Event(), threading.Event()

    def slowly(tx: Connection) -> None:
        begun.set()
        for _ in range(200):
            count(tx)
        sent.set()

    for _ in range(20):
        begun.clear()
        sent.clear()
        writing = asyncio.create_task(db.write(slowly))
        assert await asyncio.to_thread(begun.wait, 60)
        with patch.object(kit_db, "TURN_S", 60.0):
            await db.read(lambda _: sent.is_set() or pytest.fail("read in the middle of a write"))
        await writing


async def test_a_read_waits_for_a_slow_writer_only_once(db: Database) -> None:
    begun, end = threading.Event(), threading.Event()

    def slowly(tx: Connection) -> None:
        tx.execute(text("insert into boxes values (1)"))
        begun.set()
        assert end.wait(60)

    writing = asyncio.create_task(db.write(slowly))
    assert await asyncio.to_thread(begun.wait, 60)
    assert await db.read(count) == 0
    with patch.object(kit_db, "TURN_S", 60.0):  # a second wait would never end, for the writer waits for this thread
        assert await db.read(count) == 0
    end.set()
    await writing
    assert await db.read(count) == 1
