"""Lists are in the order of creation, whatever the clock does and however many processes write."""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.catalog.tables import apps
from gpuaas_core.kit.db import Database
from gpuaas_core.kit.ids import COUNT_BITS, Issuer, issued_by, new_id
from gpuaas_core.kit.paging import page_of
from gpuaas_core.migrations.migrate import migrate
from sqlalchemy import Connection, event, insert, select

from core.tests.support.fixtures import World, database_url, new_store, remove_store

ROOT = Path(__file__).parents[3]

MOMENT = 1_800_000_000_000  # milliseconds
ROWS = 1000


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    new_store(tmp_path)
    migrate(database_url(tmp_path))
    yield database_url(tmp_path)
    remove_store(tmp_path)


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.close()


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def set_to(milliseconds: int) -> None:
        monkeypatch.setattr(time, "time", lambda: milliseconds / 1000)
        monkeypatch.setattr(time, "time_ns", lambda: milliseconds * 1_000_000)

    return set_to


def add(tx: Connection, *names: str) -> None:
    for name in names:
        tx.execute(insert(apps).values(id=new_id("app"), slug=name, name=name, description="", created_at=MOMENT))


def names(db: Database) -> list[str]:
    return db.read_now(lambda tx: list(tx.execute(select(apps.c.slug).order_by(apps.c.id)).scalars()))


def paged(db: Database, dice: random.Random, *, newest_first: bool) -> list[str]:
    """Read page by page, each of another size."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        more: dict[str, Any] = {"limit": dice.randint(1, 60), "cursor": cursor, "newest_first": newest_first}
        rows, cursor = db.read_now(lambda tx, more=more: page_of(tx, select(apps), apps.c.id, **more))
        found += [row.slug for row in rows]
        if cursor is None:
            return found


def test_a_thousand_rows_of_one_millisecond_are_paged_in_the_order_of_creation(
    db: Database, set_clock: Callable[[int], None]
) -> None:
    set_clock(MOMENT)
    dice, made = random.Random(11), [f"app-{number}" for number in range(ROWS)]
    left = list(made)
    while left:
        size = dice.randint(1, 80)
        some, left = left[:size], left[size:]
        db.write_now(lambda tx, some=some: add(tx, *some))
    for seed in range(5):
        dice = random.Random(seed)
        assert paged(db, dice, newest_first=False) == made
        assert paged(db, dice, newest_first=True) == made[::-1]


def test_a_clock_that_steps_back_changes_no_order(db: Database, set_clock: Callable[[int], None]) -> None:
    dice, made = random.Random(3), [f"app-{number}" for number in range(60)]
    for name in made:
        set_clock(MOMENT - dice.randint(0, 10_000))
        db.write_now(lambda tx, name=name: add(tx, name))
    assert names(db) == made


def test_two_cores_of_one_store_share_its_order(db: Database, url: str) -> None:
    other = Database(url)
    made = [f"app-{number}" for number in range(60)]
    for number, name in enumerate(made):
        (db, other)[number % 2].write_now(lambda tx, name=name: add(tx, name))
    other.close()
    assert names(db) == made


WRITER = """
import sys, time
skew = int(sys.argv[2]) / 1000
right = time.time, time.time_ns
time.time, time.time_ns = lambda: right[0]() + skew, lambda: right[1]() + int(skew * 1e9)
from gpuaas_core.kit.db import Database
from core.tests.properties.test_order import add
db = Database(sys.argv[1])
for line in sys.stdin:
    db.write_now(lambda tx: add(tx, line.strip()))
    print("written", flush=True)
"""


@pytest.mark.timeout(1800)
def test_two_processes_with_clocks_apart_share_the_order_of_their_store(db: Database, url: str) -> None:
    def start(skew_ms: int) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", WRITER, url, str(skew_ms)]
        return subprocess.Popen(words, stdin=-1, stdout=-1, text=True, cwd=ROOT)

    made = [f"app-{number}" for number in range(60)]
    with start(-40) as slow, start(40) as fast:
        for number, name in enumerate(made):
            writer = (fast, slow)[number % 2]
            assert writer.stdin is not None
            assert writer.stdout is not None
            print(name, file=writer.stdin, flush=True)
            assert writer.stdout.readline() == "written\n"
        for writer in (slow, fast):
            assert writer.stdin is not None
            writer.stdin.close()
    assert names(db) == made


def test_a_rollback_inside_or_of_a_transaction_changes_no_order(db: Database) -> None:
    """SQLite gives a number back that was taken inside a savepoint."""

    def write(tx: Connection) -> None:
        with tx.begin_nested() as trial:
            add(tx, "undone")
            trial.rollback()
        add(tx, "first", "second")

    def fail(tx: Connection) -> None:
        add(tx, "lost")
        raise OSError("the disk is full")

    db.write_now(write)
    with pytest.raises(OSError, match="full"):
        db.write_now(fail)
    db.write_now(lambda tx: add(tx, "third"))
    assert names(db) == ["first", "second", "third"]


def test_a_transaction_asks_once_for_a_number_and_only_if_it_creates_something(db: Database) -> None:
    seen: list[str] = []
    event.listen(db.engine, "before_cursor_execute", lambda _c, _k, statement, *_: seen.append(statement))
    db.write_now(lambda tx: tx.execute(select(apps)).all())
    assert not [one for one in seen if "id_number" in one]
    db.write_now(lambda tx: add(tx, *(f"app-{number}" for number in range(10))))
    assert len([one for one in seen if "id_number" in one]) == 1


def test_a_transaction_with_more_ids_than_one_number_has_room_for_takes_another() -> None:
    numbers = iter(range(7, 100))
    with issued_by(Issuer(lambda: next(numbers))):
        made = [new_id("log") for _ in range((1 << COUNT_BITS) + 5)]
    assert made == sorted(set(made))
    assert next(numbers) == 9


def test_ids_made_outside_a_transaction_are_in_the_order_of_their_process(set_clock: Callable[[int], None]) -> None:
    set_clock(MOMENT)
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: [new_id("log") for _ in range(500)], range(4)))
    assert all(some == sorted(some) for some in made)
    assert len({one for some in made for one in some}) == 2000


async def test_work_is_claimed_in_the_order_in_which_it_was_asked_for(world: World) -> None:
    instance = await world.several(world.allocations[1])
    body = {"component_key": "worker", "allocation_ids": await world.more_machines(5)}
    batch = await world.boss.ok(world.of(instance, "members"), body)
    claimed = [(await world.claim(f"holder-{number}"))["operation"]["id"] for number in range(5)]
    assert claimed == [one["id"] for one in batch["operations"]]
    members = (await world.boss.get(world.of(instance, "members"))).json()["items"]
    assert [one["ordinal"] for one in members if one["component_key"] == "worker"] == list(range(6))
