"""Reads sent ahead on PostgreSQL: the same answers as in the ordinary way, whatever was guessed wrong. Collected only
when the suite runs on PostgreSQL."""

import asyncio
from dataclasses import dataclass

import psycopg
import pytest
from gpuaas_core.http.call import Platform
from gpuaas_core.kit.db import Database
from gpuaas_core.kit.rows import Query
from gpuaas_core.read_ahead.plans import FEW_MISSES, MOST_UNUSED, Plan
from gpuaas_core.read_ahead.reads import ReadAhead
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, bindparam, select, text

from core.tests.support.fixtures import Store, World, database_url

ROUTE = "/boxes/{box}"
boxes = Table("ahead_boxes", MetaData(), Column("id", String, primary_key=True), Column("size", Integer))


@dataclass(frozen=True)
class Box:
    id: str
    size: int


BY_ID = Query(select(boxes), Box).where(boxes.c.id == bindparam("box"))
BY_SIZE = Query(select(boxes), Box).where(boxes.c.size == bindparam("size")).order_by(boxes.c.id)


@pytest.fixture
def db(store: Store):
    db = Database(database_url(store.folder))
    db.write_now(lambda tx: tx.execute(text("drop table if exists ahead_boxes")))
    db.write_now(lambda tx: boxes.create(tx))
    names = [{"id": f"box-{number}-of-a-long-row", "size": number} for number in range(30)]
    db.write_now(lambda tx: tx.execute(boxes.insert(), names))
    yield db
    db.write_now(lambda tx: boxes.drop(tx))
    db.close()


def name(number: int) -> str:
    return f"box-{number}-of-a-long-row"


def size_of(box: str):
    def read(tx: Connection) -> int:
        found = BY_ID.first(tx, box=box)
        return found.size if found else -1

    return read


def plan_of(ahead: ReadAhead) -> Plan:
    return ahead._plans.get(ROUTE, Plan())


async def ask(ahead: ReadAhead, number: int) -> int:
    return await ahead.read(ROUTE, {"box": name(number)}, size_of(name(number)))


async def test_the_second_request_of_a_route_needs_no_thread(db: Database) -> None:
    ahead = ReadAhead(db)
    assert [await ask(ahead, number) for number in (3, 4, 5, 99)] == [3, 4, 5, -1]
    assert plan_of(ahead).hits == 3


async def test_a_wrong_guess_never_gives_the_rows_of_another_request(db: Database) -> None:
    """The inputs name one box and the read asks for another one."""
    ahead = ReadAhead(db)
    await ask(ahead, 1)
    for number in range(2, 8):
        assert await ahead.read(ROUTE, {"box": name(1)}, size_of(name(number))) == number


async def test_what_was_written_before_a_read_is_in_it(db: Database) -> None:
    ahead = ReadAhead(db)
    for size in range(100, 110):
        db.write_now(lambda tx, size=size: tx.execute(boxes.update().where(boxes.c.id == name(1)).values(size=size)))
        assert await ask(ahead, 1) == size


async def test_all_statements_of_a_read_see_one_snapshot(db: Database) -> None:
    """Each write moves a box from the size 1,000 to 2,000 or back: every read finds it once."""
    ahead = ReadAhead(db)
    for size in (1000, 2000):
        await ahead.read(ROUTE, {"small": size}, lambda tx: BY_SIZE.all(tx, size=1000) + BY_SIZE.all(tx, size=2000))
    db.write_now(lambda tx: tx.execute(boxes.update().where(boxes.c.id == name(1)).values(size=1000)))

    def move(to: int) -> None:
        db.write_now(lambda tx: tx.execute(boxes.update().where(boxes.c.id == name(1)).values(size=to)))

    async def look() -> None:
        for _ in range(100):
            found = await ahead.read(ROUTE, {}, lambda tx: BY_SIZE.all(tx, size=1000) + BY_SIZE.all(tx, size=2000))
            assert len(found) == 1

    async def write() -> None:
        for number in range(50):
            await asyncio.to_thread(move, 2000 if number % 2 == 0 else 1000)

    await asyncio.gather(look(), look(), write())
    assert plan_of(ahead).misses < 3


async def test_many_reads_at_once_share_few_connections(db: Database) -> None:
    ahead = ReadAhead(db)
    assert await asyncio.gather(*(ask(ahead, number % 30) for number in range(200))) == [n % 30 for n in range(200)]
    assert await asyncio.gather(*(ask(ahead, number % 30) for number in range(200))) == [n % 30 for n in range(200)]


async def test_a_statement_that_depends_on_a_row_is_read_in_the_ordinary_way(db: Database) -> None:
    ahead = ReadAhead(db)

    def follow(number: int, other: int):
        def read(tx: Connection) -> int:
            BY_ID.one(tx, box=name(number))
            return BY_ID.one(tx, box=name(other)).size

        return read

    for number in range(FEW_MISSES + 5):
        other = (number * 7 + 1) % 30
        assert await ahead.read(ROUTE, {"box": name(number)}, follow(number, other)) == other
    assert plan_of(ahead).given_up is True


async def test_a_statement_that_reads_no_longer_need_is_not_sent_ahead_until_one_needs_it_again(db: Database) -> None:
    """As the manifest of an instance, which the core caches after the first read."""
    ahead = ReadAhead(db)

    def read(*, twice: bool):
        def run(tx: Connection) -> int:
            found = BY_ID.one(tx, box=name(3)).size
            return found + (len(BY_SIZE.all(tx, size=3)) if twice else 0)

        return lambda: ahead.read(ROUTE, {"box": name(3)}, run)

    assert await read(twice=True)() == 4
    assert len(plan_of(ahead).guesses) == 2
    assert [await read(twice=False)() for _ in range(MOST_UNUSED)] == [3] * MOST_UNUSED
    assert len(plan_of(ahead).guesses) == 1
    assert [await read(twice=True)() for _ in range(3)] == [4, 4, 4]
    assert len(plan_of(ahead).guesses) == 2
    assert (plan_of(ahead).misses, plan_of(ahead).given_up) == (1, False)


async def test_an_error_of_the_read_itself_is_raised(db: Database) -> None:
    ahead = ReadAhead(db)

    def fail(tx: Connection) -> None:
        BY_ID.first(tx, box=name(1))
        raise LookupError("not here")

    for _ in range(3):
        with pytest.raises(LookupError, match="not here"):
            await ahead.read(ROUTE, {"box": name(1)}, fail)


async def test_a_read_that_is_canceled_leaves_the_others_alone(db: Database) -> None:
    ahead = ReadAhead(db)
    await ask(ahead, 1)
    await ask(ahead, 2)
    for _ in range(10):
        given_up = asyncio.create_task(ask(ahead, 3))
        await asyncio.sleep(0)
        given_up.cancel()
        assert await ask(ahead, 4) == 4


async def test_closing_ends_the_connections_in_use_and_the_next_read_opens_new_ones(db: Database) -> None:
    ahead = ReadAhead(db)
    await ask(ahead, 1)
    await ask(ahead, 2)
    under_way = [asyncio.create_task(ask(ahead, number)) for number in range(8)]
    await asyncio.sleep(0)
    assert ahead._pipelines
    ahead._pipelines.close()
    assert await asyncio.gather(*under_way) == list(range(8))
    assert [await ask(ahead, number) for number in range(8)] == list(range(8))


async def test_after_the_server_closed_the_connections_reads_go_on(db: Database) -> None:
    ahead = ReadAhead(db)
    for number in (1, 2, 3):
        await ask(ahead, number)
    with psycopg.connect(db.url.replace("+psycopg", ""), autocommit=True) as other:
        other.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'gpuaas-core'")
    assert [await ask(ahead, number) for number in range(6)] == list(range(6))
    assert not plan_of(ahead).given_up


def test_rows_are_fetched_for_inputs_that_the_request_has(db: Database) -> None:
    plan = Plan()
    plan.learn([(BY_ID._prepared, {"box": name(1)})], {"box": name(1), "token": "x"})
    plan.learn([(BY_ID._prepared, {"box": name(2)})], {"token": "x"})  # it was found by an earlier statement
    plan.learn([(BY_SIZE._prepared, {"size": [1, 2]})], {})
    assert [guess.inputs for guess in plan.guesses] == [(("box", "box"),)]
    assert plan.needs == {"box"}


async def test_a_session_that_ended_and_a_right_that_was_removed_count_in_the_next_read(
    world: World, platform: Platform
) -> None:
    instance = await world.running(world.allocations[0], "ahead")
    path = f"/v1/projects/{world.red}/instances/{instance['id']}"
    plain = (await world.viewer.get(path)).content
    for _ in range(4):
        assert (await world.viewer.get(path)).content == plain
    used = platform.read_ahead._plans["/v1/projects/{project_id}/instances/{instance_id}"]
    assert used.hits >= 4
    assert used.misses == 0
    bindings = f"/v1/tenants/{world.tenant}/role-bindings"
    mine = [
        one["id"] for one in (await world.boss.get(bindings)).json()["items"] if one["principal_id"] == world.viewer_id
    ]
    for binding in mine:
        await world.boss.ok(f"{bindings}/{binding}/remove", {})
    assert (await world.viewer.get(path)).status_code == 404
    assert (await world.boss.get(path)).status_code == 200
    await world.boss.post("/v1/sign-out", {})
    assert (await world.boss.get(path)).status_code == 401
