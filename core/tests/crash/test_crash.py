"""Killed at any moment: what was acknowledged exists once, with its event and audit row; a retry is always safe."""

import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import Connection, text

from core.tests.support.fixtures import Api, Store, World, looking, new_store
from core.tests.support.promises import promised
from core.tests.support.served import Served, serving

CLIENTS, ROUNDS = 8, 3


class Client:
    """Keeps asking for one thing after another; a request without an answer is sent again with the same key."""

    def __init__(self, number: int, world: World) -> None:
        self.number, self.world, self.sent = number, world, 0
        self.pending: tuple[str, str, dict[str, Any]] | None = None
        self.acknowledged: dict[str, dict[str, Any]] = {}

    def next_request(self) -> tuple[str, str, dict[str, Any]]:
        """Clients 0 and 1 deploy and decommission; the others make projects."""
        if self.pending is None:
            self.sent += 1
            key = f"client-{self.number}-request-{self.sent}"
            body: dict[str, Any] = {"slug": f"made-{self.number}-{self.sent}", "name": key}
            path = f"/v1/tenants/{self.world.tenant}/projects"
            if self.number < 2:
                path, body = self._next_deploy()
            self.pending = (key, path, body)
        return self.pending

    def _next_deploy(self) -> tuple[str, dict[str, Any]]:
        path = f"/v1/projects/{self.world.red}/instances"
        if self.sent % 2:
            allocation = self.world.allocations[self.number]
            return path, self.world.deploy_body(allocation, f"made-{self.number}-{self.sent}")
        last = self.acknowledged[f"client-{self.number}-request-{self.sent - 1}"]
        if "operation" not in last or last["operation"]["kind"] == "decommission":
            return f"/v1/tenants/{self.world.tenant}/projects", {
                "slug": f"other-{self.number}-{self.sent}",
                "name": "x",
            }
        return f"{path}/{last['instance']['id']}/decommission", {}

    async def run(self, boss: Api, until: float) -> None:
        while time.monotonic() < until or self.pending:
            key, path, body = self.next_request()
            answer = await boss.post(path, body, key=key)
            if answer.status_code == 409:  # the machine is still held by the instance before: go on without waiting
                self.acknowledged[key] = answer.json()
            else:
                assert answer.status_code in (201, 202), answer.text
                self.acknowledged[key] = answer.json()
            self.pending = None


async def _storm(served: Served, clients: list[Client], seconds: float) -> None:
    """All clients at work; a client that loses the connection stops and keeps the requests without an answer."""
    until = time.monotonic() + seconds
    async with httpx2.AsyncClient(base_url=served.url, timeout=60) as http:
        boss = Api(http, clients[0].world.boss.token)
        await asyncio.gather(*(client.run(boss, until) for client in clients), return_exceptions=True)


async def _told_of(clients: list[Client], more: int) -> None:
    def count() -> int:
        return sum(len(client.acknowledged) for client in clients)

    enough = count() + more
    async with asyncio.timeout(200):
        while count() < enough:  # noqa: ASYNC110 - the clients know of no event
            await asyncio.sleep(0.01)


async def test_what_was_acknowledged_survives_kill_and_nothing_happens_twice(store: Store, tmp_path: Path) -> None:
    dice = random.Random(4711)
    clients = [Client(number, store.world) for number in range(CLIENTS)]
    with serving(store, tmp_path) as served:
        unanswered = 0
        for _ in range(ROUNDS):
            storm = asyncio.create_task(_storm(served, clients, 300))
            await _told_of(clients, 12)  # however busy this machine is
            await asyncio.sleep(dice.random() * 0.3)
            await asyncio.to_thread(served.kill)
            await asyncio.wait_for(storm, 120)
            unanswered += sum(client.pending is not None for client in clients)
            await asyncio.to_thread(served.start)
        await _storm(served, clients, 0.1)
        served.stop()
    assert all(client.pending is None for client in clients), "a retry with the same key did not succeed"
    assert unanswered >= ROUNDS, "no request was cut off: the test did not test"
    acknowledged = [answer for client in clients for answer in client.acknowledged.values()]
    assert len(acknowledged) > 10 * ROUNDS
    _check(tmp_path, acknowledged)


def _check(folder: Path, acknowledged: list[dict[str, Any]]) -> None:
    with looking(folder) as db:
        _check_in(db, acknowledged)


def _check_in(db: Connection, acknowledged: list[dict[str, Any]]) -> None:
    if db.dialect.name == "sqlite":
        assert db.execute(text("pragma integrity_check")).scalar() == "ok"
        assert db.execute(text("pragma foreign_key_check")).all() == []
    for answer in acknowledged:
        if "operation" in answer:
            wanted = ("operations", answer["operation"]["id"], "apps.operation.queued", answer["instance"]["id"])
        elif "slug" in answer:
            wanted = ("projects", answer["id"], "tenancy.project.created", answer["id"])
        else:
            continue
        table, row, event, resource = wanted
        assert _count(db, f"select count(*) from {table} where id = :row", row=row) == 1
        assert (
            _count(db, "select count(*) from events where subject = :row and type = :event", row=row, event=event) == 1
        )
        assert _count(db, "select count(*) from audit where resource_id = :resource", resource=resource) >= 1
    _check_nothing_is_alone(db)


def _check_nothing_is_alone(db: Connection) -> None:
    """The other way round: no row without its event, no event without its row, no gap in any sequence."""
    made = "select count(*) from projects where slug like 'made-%' or slug like 'other-%'"
    told = db.execute(text("select data from events where type = 'tenancy.project.created'")).scalars()
    slugs = [(data if isinstance(data, dict) else json.loads(data))["slug"] for data in told]
    assert _count(db, made) == len([slug for slug in slugs if slug.count("-") == 2])
    assert _count(db, "select count(*) from operations") == _count(
        db, "select count(*) from events where type = 'apps.operation.queued'"
    )
    assert _count(db, "select count(*) from operations") == _count(
        db, "select count(*) from audit where permission in ('apps.instance.create', 'apps.instance.decommission')"
    )
    for table, head in (("events", "sequence"), ("audit", "audit_sequence")):
        for tenant, last in db.execute(text(f"select tenant_id, {head} from event_heads")).all():
            query = text(f"select sequence from {table} where tenant_id = :tenant order by sequence")
            found = db.execute(query, {"tenant": tenant}).scalars().all()
            assert found == list(range(1, last + 1)), (table, tenant)


def _count(db: Connection, query: str, **values: Any) -> int:
    return db.execute(text(query), values).scalar_one()


async def test_a_core_told_to_stop_answers_what_it_has_begun_and_stops(store: Store, tmp_path: Path) -> None:
    with serving(store, tmp_path) as served:
        async with httpx2.AsyncClient(base_url=served.url, timeout=60) as http:
            world = store.world.through(http)
            path = f"/v1/tenants/{world.tenant}/events/stream"
            headers = {"Authorization": f"Bearer {world.boss.token}"}
            async with http.stream("GET", path, headers=headers) as answer:
                await anext(answer.aiter_text())
                began = time.monotonic()
                await asyncio.to_thread(served.stop)
                assert time.monotonic() - began < promised(7), "an open stream keeps the core from stopping"


async def test_two_cores_starting_on_one_new_store_do_not_fight(tmp_path: Path) -> None:
    from core.tests.support.served import free_port

    new_store(tmp_path)
    cores = [Served(tmp_path, free_port()) for _ in range(2)]
    try:
        await asyncio.gather(*(asyncio.to_thread(core.start) for core in cores))
        async with httpx2.AsyncClient() as http:
            for core in cores:
                assert (await http.get(f"{core.url}/readyz")).json() == {"status": "ready"}
    finally:
        for core in cores:
            core.stop()
