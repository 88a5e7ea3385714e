"""Sixteen writers in four processes, one transaction in five given up, five readers who leave and come back.

Nothing lost, nothing reordered, nothing twice: on SQLite with one core, on PostgreSQL with two. The designs that would
lose something are kept in test_postgresql.py, each caught losing.
"""

import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from core.tests.support import event_load, postgres
from core.tests.support.fixtures import Store, World, database_url, remove_store
from core.tests.support.repeats import times
from core.tests.support.served import Served, free_port, serving

pytestmark = pytest.mark.slow

PROCESSES, WRITERS, READERS = 4, 16, 5
EVENTS = times(usual=6_000, soak=20_000)


class Reader:
    """Follows the stream, leaves at random moments, and comes back to any core with the last id it has seen."""

    def __init__(self, worlds: list[World], seed: int) -> None:
        self.worlds, self.dice, self.cursor, self.visits = worlds, random.Random(seed), "0", 0
        self.seen: list[int] = []

    async def read_until(self, last: Callable[[], int]) -> None:
        while len(self.seen) < last():
            world = self.dice.choice(self.worlds)
            headers = {"Authorization": f"Bearer {world.boss.token}", "Last-Event-ID": self.cursor}
            path, leave = f"/v1/tenants/{world.tenant}/events/stream", self.dice.randrange(1, 900)
            self.visits += 1
            async with world.boss.http.stream("GET", path, headers=headers) as answer:
                assert answer.status_code == 200
                await self._follow(answer, leave, last)

    async def _follow(self, answer: httpx2.Response, leave: int, last: Callable[[], int]) -> None:
        rest = ""
        async for piece in answer.aiter_text():
            *whole, rest = (rest + piece).split("\n\n")
            for message in whole:
                fields = dict(line.split(": ", 1) for line in message.split("\n") if not line.startswith(":"))
                if "data" in fields:
                    self.cursor = fields["id"]
                    self.seen.append(json.loads(fields["data"])["sequence"])
                    leave -= 1
                if leave <= 0 or len(self.seen) >= last():
                    return


@contextlib.contextmanager
def _cores(store: Store, folder: Path) -> Iterator[list[Served]]:
    with serving(store, folder) as first, contextlib.ExitStack() as more:
        cores = [first]
        if postgres.CHOSEN:
            cores.append(Served(folder, free_port()))
            more.callback(cores[1].stop)
            cores[1].start()
        yield cores
    remove_store(folder)


async def _write(folder: Path, world: World, number: int) -> int:
    words = [database_url(folder), world.tenant, world.red, str(number), str(EVENTS // WRITERS)]
    program = event_load.__file__
    process = await asyncio.create_subprocess_exec(sys.executable, program, *words, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0
    return int(said)


@pytest.mark.timeout(1800)
async def test_sixteen_writers_and_five_coming_and_going_readers_lose_and_reorder_nothing(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends: list[int] = []
    began = time.monotonic()
    with _cores(store, tmp_path) as cores:
        async with contextlib.AsyncExitStack() as clients:
            worlds = []
            for core in cores:
                limits = httpx2.Limits(max_connections=60)
                http = httpx2.AsyncClient(base_url=core.url, timeout=30, limits=limits)
                worlds.append(store.world.through(await clients.enter_async_context(http)))
            readers = [Reader(worlds, seed) for seed in range(READERS)]
            first = await _head(worlds[0])
            reading = [asyncio.create_task(one.read_until(lambda: ends[0] if ends else 10**9)) for one in readers]
            kept = await asyncio.gather(*(_write(tmp_path, worlds[0], number) for number in range(PROCESSES)))
            path, body = f"/v1/tenants/{worlds[0].tenant}/projects", {"slug": "the-last-one", "name": "Wakes everybody"}
            await worlds[0].boss.ok(path, body)
            ends.append(await _head(worlds[-1]))
            await asyncio.gather(*reading)
    assert sum(kept) >= EVENTS
    assert ends[0] >= first + sum(kept) + 1  # silent machines may have become unknown meanwhile
    for reader in readers:
        assert reader.seen == list(range(1, len(reader.seen) + 1)), "lost, reordered or told twice"
        assert len(reader.seen) >= ends[0]
        assert reader.visits > 5
    visits, took = sum(one.visits for one in readers), time.monotonic() - began
    with capsys.disabled():
        print(f"\nevents: {sum(kept)} by {WRITERS} writers, {visits} visits of {READERS} readers, {took:.0f} s")


async def _head(world: World) -> int:
    return (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1")).json()["head"]
