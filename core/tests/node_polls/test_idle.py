"""What waiting costs: polls of machines and streams of events send nothing to the database until something happens."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from gpuaas_core.background.node_contacts import write_contacts
from gpuaas_core.events import feed, stream
from gpuaas_core.kit import wakeups
from gpuaas_core.kit.wakeups import Wakeups
from sqlalchemy import event

from core.tests.support.fixtures import Api, World, add_node, add_user, apply_trust, asleep, join, poll
from core.tests.support.store_rows import one, rows

MACHINES, STREAMS = 25, 20
LONG_S = 600.0


@contextlib.contextmanager
def counted(world: World) -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    sent: list[str] = []

    def sending(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    engines = [world.platform.db._read_engine, world.platform.db._write_engine]  # pyright: ignore[reportPrivateUsage]
    for engine in engines:
        event.listen(engine, "before_cursor_execute", sending)
    try:
        yield sent
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", sending)


def waiting_poll(node: str, machine: Api, name: str, generation: int = 1) -> "asyncio.Task[Any]":
    known = {"applied_generation": generation, "acknowledged_generation": generation, "machine_id": name}
    body = known | {"takes_task": True, "wait_s": 30}
    return asyncio.create_task(machine.post(f"/v1/nodes/{node}/poll", body, timeout=LONG_S))


async def opened_streams(world: World, by: Api, number: int) -> "list[asyncio.Task[Any]]":
    head = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1")).json()["head"]
    path = f"/v1/tenants/{world.tenant}/events/stream?after={head}"
    streams = [asyncio.create_task(by.get(path, timeout=LONG_S)) for _ in range(number)]
    await asleep(world.platform, f"events:{world.tenant}", number)
    return streams


@pytest.mark.timeout(1800)
async def test_machines_and_streams_that_wait_send_nothing_and_share_what_they_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PING_S", 0.3)
    reader, reader_id = await add_user(world, "ann@acme.example", "tenant_admin")
    machines = [(f"idle-{number:02d}", *(await join(world, f"idle-{number:02d}"))[:2]) for number in range(MACHINES)]
    for name, node, machine in machines:
        await apply_trust(node, machine)
        await poll(node, machine, 1, 1, machine_id=name, takes_task=True)
    write_contacts(world.platform)
    with counted(world) as polling:
        polls = [waiting_poll(node, machine, name) for name, node, machine in machines]
        for _, node, _ in machines:
            await asleep(world.platform, f"node:{node}")
    assert not [text for text in polling if not text.startswith("SELECT")], "an idle poll writes nothing by itself"
    assert len(polling) <= 10 * MACHINES
    with counted(world) as written:
        write_contacts(world.platform)
    assert len(written) == 1, "one statement for all machines"
    streams = await opened_streams(world, reader, STREAMS)
    with counted(world) as idle:
        await asyncio.sleep(1.5)  # several pings of each stream
    assert idle == []
    with counted(world) as sent:
        await world.boss.ok(f"/v1/tenants/{world.tenant}/projects", {"slug": "one-event", "name": "One event"})
        await asyncio.sleep(0.2)
        await asleep(world.platform, f"events:{world.tenant}", STREAMS)
    assert sum("FROM events" in text for text in sent) == 1, "one stream read it for all"
    await world.boss.ok(f"/v1/tenants/{world.tenant}/users/{reader_id}/disable")
    for answer in await asyncio.gather(*streams):
        assert "one-event" in answer.text
    for task in polls:
        task.cancel()


async def test_an_idle_poll_is_one_transaction_which_also_verifies_the_machine(world: World) -> None:
    node, machine, _ = await add_node(world, "spare")
    await poll(node, machine, 1, 1, machine_id="spare", takes_task=True)
    begun: list[object] = []
    engine, note = world.platform.db._read_engine, begun.append  # pyright: ignore[reportPrivateUsage]
    event.listen(engine, "begin", note)
    try:
        assert (await poll(node, machine, 1, 1, machine_id="spare", takes_task=True)).status_code == 204
    finally:
        event.remove(engine, "begin", note)
    assert len(begun) == 1


@pytest.mark.parametrize("wrong", ["nothing", "the body", "the key"])
async def test_a_poll_by_another_caller_is_refused_before_anything_else_and_is_no_contact(
    world: World, wrong: str
) -> None:
    node, machine, _ = await add_node(world, "spare")
    _, other, _ = await add_node(world, "other")
    path = f"/v1/nodes/{node}/poll"
    known = {"applied_generation": 1, "acknowledged_generation": 1, "machine_id": "spare"}
    body = {"applied_generation": "many"} if wrong == "the body" else known
    headers = {"Idempotency-Key": ""} if wrong == "the key" else {}
    world.platform.contacts.take()
    for caller, status in ((world.api, 401), (world.api.as_("gpt_unknown"), 401), (other, 404)):
        answer = await caller.call("POST", path, json=body, headers=dict(headers))
        assert answer.status_code == status, answer.text
    assert node not in world.platform.contacts.take()
    answer = await machine.call("POST", path, json=body, headers=dict(headers))
    assert answer.status_code == {"nothing": 204, "the body": 422, "the key": 400}[wrong], answer.text


@pytest.fixture
def dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No wake-up arrives; the reads that find it anyway come soon."""
    monkeypatch.setattr(Wakeups, "notify_local", lambda *_: None)
    monkeypatch.setattr(wakeups, "SAFETY_S", 0.3)
    monkeypatch.setattr(feed, "SAFETY_MS", 0)
    monkeypatch.setattr(stream, "RECHECK_MS", 10**15)


async def test_a_lost_wake_up_delays_a_machine_until_the_next_safe_read(world: World, dropped: None) -> None:
    node, machine, _ = await add_node(world, "spare")
    polled = waiting_poll(node, machine, "spare")
    await asleep(world.platform, f"node:{node}")
    await world.boss.ok(f"/v1/projects/{world.red}/allocations", {"node_id": node})
    async with asyncio.timeout(10):
        assert (await polled).json()["trust"]["generation"] == 2


async def test_a_lost_wake_up_delays_an_operator_until_the_next_safe_read(world: World, dropped: None) -> None:
    body = {"app_slug": "echo", "holder": "controller-a", "wait_s": 30}
    claimed = asyncio.create_task(world.controller.post("/v1/operations/claim", body, timeout=LONG_S))
    await asyncio.sleep(0.2)
    accepted = await world.deploy()
    async with asyncio.timeout(10):
        assert (await claimed).json()["operation"]["id"] == accepted["operation"]["id"]


async def test_without_wake_ups_no_event_is_shown_after_the_right_to_it_ended(world: World, dropped: None) -> None:
    ann, ann_id = await add_user(world, "ann@acme.example", "project_viewer", project=world.red)
    path = f"/v1/projects/{world.red}/events/stream?after=0"
    streamed = asyncio.create_task(ann.get(path, timeout=LONG_S))
    await asleep(world.platform, f"events:{world.tenant}")
    (found,) = rows(world.platform, "select id from role_bindings where principal_id = :who", who=ann_id)
    before = one(world.platform, "select value from store_facts where name = 'rights'")
    await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings/{found['id']}/remove")
    assert int(one(world.platform, "select value from store_facts where name = 'rights'")) > int(before)
    await world.deploy()
    async with asyncio.timeout(10):
        text = (await streamed).text
    assert "capacity.allocation" in text, "what was there before"
    assert "apps.instance" not in text
