"""Nodes are judged by time in which they could be heard, and a few at a time."""

import pytest
from gpuaas_core.background.housekeeping import Served, do_duties
from gpuaas_core.capacity import silence
from gpuaas_core.kit.db import Database

from core.tests.support.fixtures import MovableClock, World, add_node
from core.tests.support.store_rows import rows


def _states(world: World) -> set[str]:
    return {row["state"] for row in rows(world.platform, "select state from nodes")}


async def test_no_node_is_silent_in_the_first_minute_of_a_core(world: World, clock: MovableClock) -> None:
    clock.forward(3600)  # no core served
    started = world.platform.clock()
    for seconds in (5, 30, 59):
        do_duties(world.platform, started + seconds * 1000, started)
        assert _states(world) == {"ready"}, f"after {seconds} s"
    do_duties(world.platform, started + 61_000, started)
    assert _states(world) == {"unknown"}, "an hour without a core is no hour of silence"
    do_duties(world.platform, started + 590_000, started)
    assert _states(world) == {"unknown"}
    do_duties(world.platform, started + 601_000, started)
    assert _states(world) == {"lost"}


def test_a_break_of_the_process_or_its_database_begins_a_new_minute() -> None:
    served = Served()
    assert [served.round(at) for at in (1_000, 6_000, 12_000)] == [1_000] * 3
    assert served.round(60_000) == 60_000, "no round for 48 s"
    assert served.round(65_000) == 60_000


async def test_one_transaction_judges_few_nodes_and_one_round_all(
    world: World, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "AT_ONCE", 2)
    monkeypatch.setattr(silence, "_OVERDUE", silence._OVERDUE.limit(2))  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr("gpuaas_core.background.housekeeping.FULL", {"silent nodes": 2})
    for number in range(4):
        await add_node(world, f"more-{number}")
    clock.forward(100)
    fallen: list[int] = []
    write = Database.write_now

    def counting(db: Database, fn: object) -> object:
        before = len(rows(world.platform, "select id from nodes where state = 'unknown'"))
        result = write(db, fn)  # type: ignore[arg-type]
        fallen.append(len(rows(world.platform, "select id from nodes where state = 'unknown'")) - before)
        return result

    monkeypatch.setattr(Database, "write_now", counting)
    do_duties(world.platform, world.platform.clock())
    assert _states(world) == {"unknown"}
    assert max(fallen) == 2
