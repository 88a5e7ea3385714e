"""Events handed on to a real NATS server: through its death and the core's, all arrive, in order, doubles only by id."""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import nats
import pytest
from gpuaas_core.counters.tables import event_heads
from gpuaas_core.events import event_log, fanout
from gpuaas_core.http.call import Platform
from sqlalchemy import select

from core.tests.support.fixtures import Store, World, copy_store, looking, remove_store
from core.tests.support.served import Served, calling, free_port

EVENTS = 2_000


class Broker:
    """A nats-server of our own, with its store on disk; it can be killed without warning."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        program = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or "nats-server"
        self._argv = [program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(folder)]
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self._spawn()
        for _ in range(600):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.1)
        raise AssertionError("nats-server does not answer")

    def _spawn(self) -> None:
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(self._argv, stdout=quiet, stderr=quiet)

    def kill(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    mine = Broker(tmp_path / "nats")
    yield mine
    mine.kill()


@pytest.fixture
def core(store: Store, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("GPUAAS_CORE_NATS", broker.url)
    monkeypatch.setenv("GPUAAS_CORE_METRICS", f"127.0.0.1:{free_port()}")
    folder = tmp_path / "core"
    folder.mkdir()
    copy_store(store, folder)
    served = Served(folder, free_port())
    served.start()
    yield served
    served.stop()
    remove_store(folder)


async def make(world: World, count: int) -> None:
    """A deny rule made and lifted: two events and little else."""
    rule = {"permissions": ["scheduler.queue.submit"], "reason": "a test"}
    for _ in range(count // 2):
        made = await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules", rule)
        await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules/{made['id']}/remove")


def heads(folder: Path) -> dict[str, int]:
    with looking(folder) as tx:
        return {row.tenant_id: row.sequence for row in tx.execute(select(event_heads)) if row.sequence}


async def consumed(broker: Broker, wanted: int) -> list[dict[str, Any]]:
    """Everything in the stream, in the broker's order."""
    connection = await nats.connect(broker.url)
    try:
        reader = await connection.jetstream().pull_subscribe("gpuaas.events.>", durable=f"r{secrets.token_hex(3)}")
        got: list[dict[str, Any]] = []
        quiet = 0  # on a busy machine a fetch may bring nothing although more is there
        while len(got) <= wanted and quiet < (1 if len(got) == wanted else 15):
            try:
                messages = await reader.fetch(500, timeout=2)
            except TimeoutError:
                quiet += 1
                continue
            quiet = 0
            for message in messages:
                event = json.loads(message.data)
                tenant = event["source"].rsplit("/", 1)[1]
                assert message.subject == f"gpuaas.events.{tenant}.{event['type']}"
                assert (message.headers or {})["Nats-Msg-Id"] == event["id"]
                got.append(event)
                await message.ack()
        return got
    finally:
        await connection.close()


async def handed_on(folder: Path) -> None:
    for _ in range(900):
        with looking(folder) as tx:
            if not fanout.waiting(tx):
                return
        await asyncio.sleep(0.2)
    raise AssertionError("events still wait")


def check_whole(got: list[dict[str, Any]], wanted: dict[str, int]) -> None:
    """Per tenant 1, 2, 3 … to its head; a number seen again is the same event again."""
    last: dict[str, int] = dict.fromkeys(wanted, 0)
    ids: dict[tuple[str, int], str] = {}
    for event in got:
        tenant = event["source"].rsplit("/", 1)[1]
        first = ids.setdefault((tenant, event["sequence"]), event["id"])
        assert first == event["id"], "one place, two events"
        if event["sequence"] > last[tenant]:
            assert event["sequence"] == last[tenant] + 1, f"a hole or a jump after {last[tenant]}"
            last[tenant] = event["sequence"]
    assert last == wanted


@pytest.mark.timeout(1800)
async def test_all_events_arrive_in_order_though_broker_and_core_are_killed(
    core: Served, broker: Broker, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    await broker.start()
    async with calling(core, world) as there:
        await make(there, 600)
        broker.kill()
        await make(there, 500)
        assert httpx2.get(f"{core.url}/readyz").status_code == 200
        await broker.start()
        writing = asyncio.create_task(make(there, 400))
        await asyncio.sleep(0.7)
        await writing
        core.kill()
        core.start()
        await make(there, EVENTS - 1500)
    await handed_on(core.folder)
    wanted = heads(core.folder)
    got = await consumed(broker, sum(wanted.values()))
    check_whole(got, wanted)
    assert sum(wanted.values()) >= EVENTS
    with capsys.disabled():
        print(f"\nfan-out: {sum(wanted.values())} events, {len(got) - sum(wanted.values())} doubles, 0 lost")


async def test_while_the_broker_is_away_the_platform_is_ready_and_the_metrics_tell(core: Served, world: World) -> None:
    async with calling(core, world) as there:
        assert (await there.boss.get(f"/v1/projects/{there.red}")).status_code == 200
    assert httpx2.get(f"{core.url}/readyz").status_code == 200
    line = ""
    for _ in range(600):
        text = httpx2.get(f"http://{os.environ['GPUAAS_CORE_METRICS']}/metrics").text
        (line,) = [line for line in text.splitlines() if line.startswith("gpuaas_fanout_waiting_events ")]
        if float(line.split()[1]) == sum(heads(core.folder).values()):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(line)


async def test_one_hands_on_at_a_time_and_a_silent_one_is_replaced(platform: Platform, world: World) -> None:
    db, now = platform.db, platform.clock()
    assert db.write_now(lambda tx: fanout.take_lease(tx, "first", now))
    assert not db.write_now(lambda tx: fanout.take_lease(tx, "second", now + 1000))
    assert db.write_now(lambda tx: fanout.take_lease(tx, "first", now + 10_000))
    assert not db.write_now(lambda tx: fanout.take_lease(tx, "second", now + 20_000))
    assert db.write_now(lambda tx: fanout.take_lease(tx, "second", now + 25_001))
    assert not db.write_now(lambda tx: fanout.moved(tx, "first", "platform", 1, now + 25_002)), "its time is over"


async def test_the_position_only_moves_forward(platform: Platform, world: World) -> None:
    db, now = platform.db, platform.clock()
    head = db.read_now(lambda tx: event_log.head(tx, "platform"))
    for sequence in (head, 1):
        assert db.write_now(lambda tx, to=sequence: fanout.moved(tx, "me", "platform", to, now))
    assert "platform" not in [one.tenant_id for one in db.read_now(fanout.waiting)]


async def test_no_peer_is_asked_to_hand_on_so_nothing_waits(platform: Platform, world: World) -> None:
    assert platform.db.read_now(lambda tx: fanout.lag(tx, platform.clock())) == 0
