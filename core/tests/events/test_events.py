"""Events: dense per tenant, in order, in the same transaction as the change, resumable at any point without a hole."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gpuaas_core.audit import audit_log as audit_rows
from gpuaas_core.authz.context import Context
from gpuaas_core.events import event_log as event_rows
from jsonschema import Draft202012Validator

from core.tests.support.fixtures import Store, World
from core.tests.support.promises import promised
from core.tests.support.served import Served, calling
from core.tests.support.store_rows import dump, rows

CONTRACT = json.loads((Path(__file__).parents[3] / "contracts" / "asyncapi.json").read_text())
SEVEN = (
    "org_id",
    "project_id",
    "app_slug",
    "app_instance_id",
    "operating_mode",
    "control_plane_scope",
    "runtime_backend",
)


async def _everything_once(world: World) -> None:
    """One of nearly each event there is: deploy, progress, grant, failure, retry, cancel, teardown."""
    accepted = await world.deploy()
    claim = await world.claim()
    await world.progress(
        claim, 1, members=[{"member_id": m["id"], "state": "provisioning"} for m in claim["instance"]["members"]]
    )
    await world.controller.ok(world.operation(claim["operation"]["id"], "return-claim"), {"claim_epoch": 1})
    await world.fail(await world.claim())
    await world.boss.ok(world.operation(accepted["operation"]["id"], "retry"))
    claim = await world.claim()
    await world.boss.ok(world.operation(claim["operation"]["id"], "cancel"))
    await world.complete(claim)
    await world.decommission(accepted["instance"]["id"])
    await world.torn_down(await world.claim())
    second = await world.deploy(world.allocations[1], "second")
    await world.boss.ok(world.operation(second["operation"]["id"], "cancel"))
    await world.boss.ok(f"/v1/projects/{world.blue}/allocations/{world.blue_allocation}/release")


async def _all(world: World, place: str | None = None) -> list[dict[str, Any]]:
    found, after = [], "0"
    while True:
        page = (await world.boss.get(f"/v1/{place or 'tenants/' + world.tenant}/events?after={after}&limit=7")).json()
        if not page["items"]:
            return found
        found += page["items"]
        after = page["next_after"]


async def test_every_event_is_as_the_contract_says(world: World) -> None:
    await _everything_once(world)
    events = await _all(world)
    validator = Draft202012Validator(CONTRACT["components"]["schemas"]["Event"])
    for event in events:
        assert not list(validator.iter_errors(event)), event
        assert event["type"] in CONTRACT["components"]["messages"]
        assert len(json.dumps(event)) < 16_384
    assert len({event["type"] for event in events}) > 15


async def test_every_app_event_carries_the_seven_identifiers(world: World) -> None:
    await _everything_once(world)
    told = [event for event in await _all(world) if event["type"].startswith("apps.")]
    assert len(told) > 20
    for event in told:
        missing = [name for name in SEVEN if not event["data"].get(name)]
        assert not missing, f"{event['type']} lacks {missing}"
        assert event["data"]["org_id"] == world.tenant
        assert event["correlationid"]


async def test_an_event_says_which_request_it_came_from(world: World) -> None:
    headers = {"X-Correlation-Id": "from-ticket-12"}
    await world.boss.ok(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0]), headers=headers)
    told = [event["type"] for event in await _all(world) if event["correlationid"] == "from-ticket-12"]
    assert sorted(told) == sorted(["apps.member.added"] * 2 + ["apps.operation.queued", "apps.instance.requested"])


async def test_the_sequence_is_dense_under_many_writers_and_refusals(world: World) -> None:
    async def once(number: int) -> int:
        good = {"slug": f"project-{number}", "name": "One of many"}
        bad = {"app_slug": "unheard-of"}  # found out after its transaction began, so it is rolled back
        if number % 3:
            return (await world.boss.post(f"/v1/tenants/{world.tenant}/projects", good)).status_code
        return (await world.boss.post(f"/v1/projects/{world.red}/entitlements", bad)).status_code

    before = len(await _all(world))
    answers = await asyncio.gather(*(once(number) for number in range(60)))
    assert (answers.count(201), answers.count(404)) == (40, 20)
    sequences = [event["sequence"] for event in await _all(world)]
    assert sequences == list(range(1, before + 41))


async def test_each_tenant_has_its_own_sequence(world: World) -> None:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    mine = rows(world.platform, "select sequence from events where tenant_id = :t order by 1", t=world.tenant)
    theirs = rows(world.platform, "select sequence from events where tenant_id = :t", t=other)
    assert [row["sequence"] for row in mine] == list(range(1, len(mine) + 1))
    assert [row["sequence"] for row in theirs] == [1]


async def test_a_project_hears_only_of_itself(world: World) -> None:
    await _everything_once(world)
    red, blue = await _all(world, f"projects/{world.red}"), await _all(world, f"projects/{world.blue}")
    assert {event["data"]["project_id"] for event in red} == {world.red}
    assert {event["data"]["project_id"] for event in blue} == {world.blue}
    everything = [event["id"] for event in await _all(world) if event["data"]["project_id"] == world.red]
    assert [event["id"] for event in red] == everything


async def test_a_list_says_where_to_follow_from(world: World) -> None:
    await world.deploy()
    listed = (await world.boss.get(f"/v1/projects/{world.red}/instances")).json()
    await world.deploy(world.allocations[1], "second")
    path = f"/v1/projects/{world.red}/events?after={listed['event_sequence']}"
    later = (await world.boss.get(path)).json()["items"]
    assert {event["data"]["instance_name"] for event in later} == {"second"}


async def test_a_cursor_that_cannot_be_continued_is_gone(world: World) -> None:
    page = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1")).json()
    for after in (page["head"] + 1, f"00000000.{page['head']}"):
        for place in ("events", "events/stream"):
            gone = await world.boss.get(f"/v1/tenants/{world.tenant}/{place}?after={after}")
            assert (gone.status_code, gone.json()["code"]) == (410, "cursor_epoch_changed"), place
    good = await world.boss.get(f"/v1/tenants/{world.tenant}/events?after={page['next_after']}")
    assert good.json()["items"][0]["sequence"] == 2


async def test_a_cursor_older_than_what_is_kept_is_gone(world: World) -> None:
    from sqlalchemy import text

    world.platform.db.write_now(lambda tx: tx.execute(text("delete from events where sequence <= 10")))
    gone = await world.boss.get(f"/v1/tenants/{world.tenant}/events?after=5")
    assert (gone.status_code, gone.json()["code"]) == (410, "cursor_expired")
    kept = await world.boss.get(f"/v1/tenants/{world.tenant}/events?after=10")
    assert kept.json()["items"][0]["sequence"] == 11


async def test_a_long_poll_ends_with_the_first_event(world: World) -> None:
    head = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1")).json()["head"]
    path = f"/v1/projects/{world.red}/events?after={head}&wait_s=20"
    waiting = asyncio.create_task(world.boss.get(path))
    await asyncio.sleep(0.1)
    await world.deploy()
    page = (await asyncio.wait_for(waiting, promised(1.5))).json()
    assert page["items"][0]["sequence"] == head + 1


@pytest.mark.parametrize("broken", ["events", "audit", "answer"])
async def test_a_change_its_event_and_its_audit_row_are_kept_together_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise OSError("the disk is full")

    before = dump(world.platform, without={"sessions"})
    with monkeypatch.context() as patch:
        if broken == "events":
            patch.setattr(event_rows, "append", fail)
        elif broken == "audit":
            patch.setattr(audit_rows, "append", fail)
        else:
            flush = Context.flush
            patch.setattr(Context, "flush", lambda self, **kwargs: (flush(self, **kwargs), fail()))
        answer = await world.boss.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0]))
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "disk" not in answer.text
    assert dump(world.platform, without={"sessions"}) == before
    assert (await world.deploy())["operation"]["status"] == "queued"


async def test_an_undeclared_event_cannot_be_emitted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dump(world.platform)
    monkeypatch.delitem(event_rows.TYPES, "apps.member.added")
    answer = await world.boss.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0]))
    assert answer.status_code == 500
    assert dump(world.platform) == before


class Reader:
    """Follows a stream as a browser would, and can be cut anywhere: after an event, or in the middle of one."""

    def __init__(self, world: World, path: str) -> None:
        self.world, self.path, self.cursor, self.seen = world, path, "0", []

    async def read(self, count: int, characters: int = 10**9) -> None:
        """Until so many more events were read, or so many characters, whichever comes first."""
        headers = {"Authorization": f"Bearer {self.world.boss.token}", "Last-Event-ID": self.cursor}
        until = len(self.seen) + count
        async with self.world.boss.http.stream("GET", self.path, headers=headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            rest = ""
            async for piece in answer.aiter_text():
                *whole, rest = (rest + piece[:characters]).split("\n\n")
                characters -= len(piece)
                for message in whole:
                    self._take(message)
                    if len(self.seen) >= until:
                        return
                if characters <= 0:
                    return

    def _take(self, message: str) -> None:
        fields = dict(line.split(": ", 1) for line in message.split("\n") if not line.startswith(":"))
        if "data" in fields:
            self.cursor = fields["id"]
            event = json.loads(fields["data"])
            assert fields["event"] == event["type"]
            assert fields["id"].endswith(f".{event['sequence']}")
            self.seen.append(event)


async def test_a_stream_cut_anywhere_resumes_without_hole_or_double(served: Served, store: Store) -> None:
    async with calling(served, store.world) as world:
        path = f"/v1/tenants/{world.tenant}/events/stream"
        expected = len(await _all(world)) + 40
        writing = asyncio.create_task(_keep_writing(world, 40))
        dice = random.Random(20261115)
        readers = [Reader(world, path) for _ in range(3)]
        for reader in readers:
            while len(reader.seen) < expected:
                cut = min(dice.choice([1, 1, 2, 3, 5, 8, 13, 40]), expected - len(reader.seen))
                await asyncio.wait_for(reader.read(cut, dice.randrange(1, 4000)), 60)
        await writing
        for reader in readers:
            assert [event["sequence"] for event in reader.seen] == list(range(1, expected + 1))
        assert readers[0].seen == (await _all(world))[:expected]


async def _keep_writing(world: World, count: int) -> None:
    for number in range(count):
        await world.boss.ok(f"/v1/tenants/{world.tenant}/projects", {"slug": f"stream-{number}", "name": "Stream"})


async def test_a_new_event_reaches_a_reader_who_waits(served: Served, store: Store) -> None:
    async with calling(served, store.world) as world:
        reader = Reader(world, f"/v1/tenants/{world.tenant}/events/stream")
        head = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1")).json()["head"]
        reader.cursor = str(head)
        waiting = asyncio.create_task(_until_slug(reader, "quick"))
        await asyncio.sleep(0.3)
        await world.boss.ok(f"/v1/tenants/{world.tenant}/projects", {"slug": "quick", "name": "Quick"})
        await asyncio.wait_for(waiting, 60)


async def _until_slug(reader: "Reader", slug: str) -> None:
    """Other events may come between: the machines of this world are silent and become unknown by the real clock."""
    while not any(event["data"].get("slug") == slug for event in reader.seen):
        await reader.read(1)


async def test_a_stream_ends_when_its_reader_loses_the_right(served: Served, store: Store) -> None:
    async with calling(served, store.world) as world:
        path = f"/v1/projects/{world.blue}/events/stream"
        headers = {"Authorization": f"Bearer {world.blue_controller.token}"}
        async with world.boss.http.stream("GET", path, headers=headers, timeout=httpx2.Timeout(60)) as answer:
            pieces = answer.aiter_text()
            await anext(pieces)
            account = (await world.blue_controller.get("/v1/whoami")).json()["principal"]["id"]
            await world.boss.ok(f"/v1/projects/{world.blue}/service-accounts/{account}/disable")
            async with asyncio.timeout(60):
                async for _ in pieces:
                    pass
