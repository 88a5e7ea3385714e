"""Housekeeping: each duty is a transaction of its own, deletes in small steps, and goes on after a failure."""

import asyncio

import pytest
from gpuaas_core.background import housekeeping
from gpuaas_core.background.housekeeping import delete_old, tidy
from gpuaas_core.idempotency.tables import seen_requests
from gpuaas_core.kit import db
from gpuaas_core.kit.loop import every
from sqlalchemy import func, insert, select

from core.tests.support.fixtures import World

WEEK_MS = 7 * 24 * 3600 * 1000


def _old_requests(world: World, count: int) -> None:
    row = {
        "principal_id": "usr_1",
        "route": "r",
        "scope_id": "s",
        "fingerprint": "f",
        "status": 200,
        "body": "{}",
        "at": 0,
    }
    rows = [row | {"key": f"key-{number}"} for number in range(count)]
    world.platform.db.write_now(lambda tx: tx.execute(insert(seen_requests), rows))


def _count(world: World) -> int:
    query = select(func.count()).select_from(seen_requests).where(seen_requests.c.at == 0)
    return world.platform.db.read_now(lambda tx: tx.execute(query).scalar_one())


async def test_old_rows_are_deleted_in_small_transactions_until_none_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (db, housekeeping):
        monkeypatch.setattr(module, "AT_ONCE", 10)
    _old_requests(world, 35)
    deleted: list[int] = []
    whole = db.delete_some
    monkeypatch.setitem(
        housekeeping.DELETIONS,
        "idempotency keys",
        lambda tx, now: _noted(deleted, whole(tx, seen_requests, seen_requests.c.at == 0)),
    )
    delete_old(world.platform, world.platform.clock())
    assert deleted == [10, 10, 10, 5], "four transactions, none with more than its limit"
    assert _count(world) == 0


def _noted(counts: list[int], count: int) -> int:
    counts.append(count)
    return count


async def test_a_duty_that_fails_does_not_stop_or_undo_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise RuntimeError("this duty is broken")

    first = next(iter(housekeeping.DUTIES))
    monkeypatch.setitem(housekeeping.DUTIES, first, broken)
    monkeypatch.setitem(housekeeping.DELETIONS, "uploads", broken)
    _old_requests(world, 3)
    tidy(world.platform, world.platform.clock() + WEEK_MS)
    assert _count(world) == 0


async def test_a_loop_goes_on_after_a_failed_round_and_ends_with_its_context() -> None:
    rounds: list[int] = []
    enough = asyncio.Event()

    async def work() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 3:
            enough.set()
        raise RuntimeError("every round fails")

    async with every(0.001, work, name="test"):
        await asyncio.wait_for(enough.wait(), 30)
    ended_at = len(rounds)
    await asyncio.sleep(0.05)
    assert len(rounds) == ended_at, "no round starts after the end"
