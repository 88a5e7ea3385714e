"""Tasks of machines: who may ask for which, how a machine gets one, how it ends, and what a stale caller cannot do."""

import asyncio
import base64
import json
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.custody.task_keys import CONTEXT
from gpuaas_core.node_tasks import kinds, service
from gpuaas_core.node_tasks.kinds import KINDS

from core.tests.capacity.test_capacity import healthy
from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import Api, MovableClock, World, add_node, apply_trust, asleep, hold, poll, trust_of
from core.tests.support.store_rows import REFUSED, dump, one, rows

FILE = {"path": "/opt/gpuaas/first/run.conf", "content": "threads = 4\n", "mode": "0640"}
UNIT = {"unit": "gpuaas-first.service", "action": "restart"}


async def take(world: World, node: str, agent: Api, wait_s: int = 0) -> Any:
    """A poll of an agent that runs no task and has applied what it said last: the task it gets, if there is any."""
    applied = (await world.boss.get(f"/v1/nodes/{node}")).json()["trust_applied"]
    answer = await poll(node, agent, applied, takes_task=True, machine_id="worker", wait_s=wait_s)
    return answer.json()["task"] if answer.content else None


class Machine:
    """A machine of the red project and the operation its controller holds."""

    def __init__(self, world: World, node: str, agent: Api, claim: Any, allocation: str) -> None:
        self.world, self.node, self.agent, self.claim, self.allocation = world, node, agent, claim, allocation

    @property
    def path(self) -> str:
        return f"{self.world.operation(self.claim['operation']['id'])}/tasks"

    def body(self, kind: str = "write_file", arguments: Any = None, **more: Any) -> dict[str, Any]:
        said = {"allocation_id": self.allocation, "claim_epoch": self.claim["claim_epoch"]}
        return said | {"kind": kind, "arguments": FILE if arguments is None else arguments} | more

    async def ask(self, *args: Any) -> Any:
        return await self.world.controller.ok(self.path, self.body(*args))

    async def take(self) -> Any:
        return await take(self.world, self.node, self.agent)

    async def say(self, verb: str, leased: Any, **more: Any) -> Any:
        said = {"attempt": leased["attempt"], "epoch": leased["epoch"]} | more
        return await self.agent.post(f"/v1/nodes/{self.node}/tasks/{leased['task_id']}/{verb}", said)

    async def begin(self) -> Any:
        leased = await self.take()
        assert (await self.say("renew", leased)).status_code == 200
        return leased

    async def seen(self, task: Any) -> Any:
        return (await self.world.controller.get(f"{self.path}/{task['id']}")).json()


@pytest.fixture
async def machine(world: World) -> Machine:
    node, agent, _ = await add_node(world, "worker")
    allocation = await hold(world, world.red, node, agent)
    await world.deploy(allocation)
    return Machine(world, node, agent, await world.claim(), allocation)


async def test_a_task_is_asked_for_signed_begun_reported_and_seen(machine: Machine) -> None:
    asked = await machine.ask()
    assert (asked["state"], asked["attempt"], asked["epoch"]) == ("queued", 0, machine.claim["claim_epoch"])
    leased = await machine.take()
    trust = await trust_of(machine.node, machine.agent)
    (key,) = [k for k in trust["task_keys"] if k["id"] == leased["document"]["key_id"]]
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key["public_key"]))
    signature, payload = base64.b64decode(leased["document"]["signature"]), leased["document"]["payload"].encode()
    public.verify(signature, CONTEXT + payload)
    with pytest.raises(InvalidSignature):
        public.verify(signature, CONTEXT + payload.replace(b"write_file", b"fetch_file"))
    said = json.loads(payload)
    kinds.check(kinds.DOCUMENT, said)
    assert (said["node_id"], said["arguments"], said["attempt"]) == (machine.node, FILE, 1)
    assert (await machine.seen(asked))["state"] == "leased"
    assert (await machine.say("renew", leased)).json() == {"lease_expires_in_s": 30}
    assert (await machine.seen(asked))["state"] == "running"
    done = await machine.say("result", leased, outcome="succeeded", evidence={"sha256": "ab"}, message="Written.")
    assert done.status_code == 200
    seen = await machine.seen(asked)
    assert (seen["state"], seen["evidence"], seen["message"]) == ("succeeded", {"sha256": "ab"}, "Written.")
    listed = (await machine.world.boss.get(f"/v1/nodes/{machine.node}/tasks?state=succeeded")).json()["items"]
    assert [task["id"] for task in listed] == [asked["id"]]
    told = [
        r["type"] for r in rows(machine.world.platform, "select type from events where type like 'capacity.task.%'")
    ]
    assert told == ["capacity.task.queued", "capacity.task.running", "capacity.task.succeeded"]
    before = rows(machine.world.platform, "select count(*) as n from audit")
    asked = await machine.ask()
    leased = await machine.take()
    for _ in range(3):
        await machine.say("renew", leased)
    after = rows(machine.world.platform, "select count(*) as n from audit")
    assert after[0]["n"] - before[0]["n"] == 3, "asked, handed out, begun; going on is no act"
    assert healthy(machine.world), "the machine's first word is on record like every other change"


async def test_a_machine_sees_and_reports_only_its_own_tasks(machine: Machine) -> None:
    task = await machine.ask()
    before = dump(machine.world.platform, without=REFUSED)
    stranger, path = machine.world.machine, f"/v1/nodes/{machine.node}/tasks"
    report = {"attempt": 1, "epoch": 1, "outcome": "succeeded"}
    assert (await poll(machine.node, stranger, takes_task=True)).status_code == 404
    for verb, body in ((f"{task['id']}/renew", report), (f"{task['id']}/result", report)):
        assert (await stranger.post(f"{path}/{verb}", body)).status_code == 404
    own = f"/v1/nodes/{machine.world.nodes[-1]}/tasks/{task['id']}"
    assert (await stranger.post(f"{own}/result", report)).status_code == 404, (
        "another machine's task under one's own node"
    )
    assert dump(machine.world.platform, without=REFUSED) == before


async def test_only_the_holder_of_the_claim_asks_and_only_for_its_own_machines(machine: Machine) -> None:
    world, before = machine.world, dump(machine.world.platform, without=REFUSED)
    stale = machine.body(claim_epoch=machine.claim["claim_epoch"] + 1)
    check_problem(await world.controller.post(machine.path, stale), 409, "stale_claim")
    check_problem(await world.second.post(machine.path, machine.body()), 409, "stale_claim")
    other = machine.body(allocation_id=world.allocations[1])
    check_problem(await world.controller.post(machine.path, other), 404, "allocation_not_of_operation")
    assert (await world.blue_controller.post(machine.path, machine.body())).status_code == 404
    assert dump(world.platform, without=REFUSED) == before


async def test_after_a_takeover_nothing_the_former_claim_asked_for_is_begun(machine: Machine) -> None:
    waiting = await machine.ask()
    leased, former = await machine.take(), machine.claim
    assert leased["task_id"] == waiting["id"]
    machine.claim = await machine.world.claim()  # the same holder again: its former self is fenced
    assert machine.claim["claim_epoch"] > former["claim_epoch"]
    assert (await machine.seen(waiting))["state"] == "canceled"
    check_problem(await machine.say("renew", leased), 409, "stale_task")
    assert await machine.take() is None
    assert (await machine.ask())["epoch"] == machine.claim["claim_epoch"]


async def test_an_operation_that_ended_leaves_no_task_waiting(machine: Machine) -> None:
    task = await machine.ask()
    await machine.world.complete(machine.claim)
    assert (await machine.seen(task))["state"] == "canceled"


PATHS = [
    "/etc/passwd",
    "/opt/gpuaas",
    "/opt/gpuaas/",
    "/opt/gpuaas/../../etc/passwd",
    "/opt/gpuaas/a/./b",
    "/opt/gpuaas//a",
    "/opt/gpuaas/.ssh/x",
    "/opt/gpuaas/a\n",
    "/opt/gpuaas/a\0b",
    "/opt/gpuaas-agent/gpuaas_agent/cli.py",
    "opt/gpuaas/a",
    "/etc/gpuaas/agent.json",
    "/etc/systemd/system/gpuaas-agent.service",
    "/etc/systemd/system/ssh.service",
    "/etc/systemd/system/gpuaas-x.service.d/a.conf",
]


@pytest.mark.parametrize("path", PATHS)
async def test_a_path_outside_of_the_places_is_refused(machine: Machine, path: str) -> None:
    refused = await machine.world.controller.post(machine.path, machine.body("write_file", FILE | {"path": path}))
    check_problem(refused, 422, "task_invalid")


@pytest.mark.parametrize(
    ("kind", "arguments", "code"),
    [
        ("shell", {"command": "id"}, "task_kind_unknown"),
        ("wipe", {}, "task_kind_unknown"),
        ("upgrade_agent", {}, "task_kind_unknown"),
        ("write_file", FILE | {"more": 1}, "task_invalid"),
        ("write_file", FILE | {"mode": "4755"}, "task_invalid"),
        ("write_file", FILE | {"mode": "0666"}, "task_invalid"),
        ("write_file", FILE | {"content": "x" * 65537}, "task_invalid"),
        ("run_unit", UNIT | {"unit": "ssh.service"}, "task_invalid"),
        ("run_unit", UNIT | {"unit": "gpuaas-agent.service"}, "task_invalid"),
        ("run_unit", UNIT | {"unit": "gpuaas-x.service ssh.service"}, "task_invalid"),
        ("run_unit", UNIT | {"action": "mask"}, "task_invalid"),
        ("collect_evidence", {"what": ["shadow"]}, "task_invalid"),
        ("fetch_artifact", {"artifact_id": "art_1", "path": FILE["path"], "mode": "0755"}, "not_found"),
    ],
)
async def test_what_is_not_in_the_table_cannot_be_asked_for(
    machine: Machine, kind: str, arguments: Any, code: str
) -> None:
    before = dump(machine.world.platform)
    refused = await machine.world.controller.post(machine.path, machine.body(kind, arguments))
    check_problem(refused, 404 if code == "not_found" else 422, code)
    assert dump(machine.world.platform) == before


async def test_a_report_that_is_told_again_changes_nothing(machine: Machine) -> None:
    await machine.ask()
    leased = await machine.begin()
    first = await machine.say("result", leased, outcome="failed", message="No space.")
    before = dump(
        machine.world.platform, without={"sessions", "used_assertions", "seen_requests", "audit", "event_heads"}
    )
    again = await machine.say("result", leased, outcome="failed", message="No space.")
    assert (again.status_code, again.json()) == (200, first.json())
    check_problem(await machine.say("result", leased, outcome="succeeded"), 409, "stale_task")
    assert (
        dump(machine.world.platform, without={"sessions", "used_assertions", "seen_requests", "audit", "event_heads"})
        == before
    )


async def test_work_that_was_not_begun_cannot_be_done(machine: Machine) -> None:
    await machine.ask()
    check_problem(await machine.say("result", await machine.take(), outcome="succeeded"), 409, "wrong_state")


async def test_what_was_lost_on_the_way_to_the_machine_is_handed_out_again_at_once(machine: Machine) -> None:
    await machine.ask("run_unit", UNIT)
    lost, second = await machine.take(), await machine.take()
    assert (lost["task_id"], lost["attempt"] + 1) == (second["task_id"], second["attempt"])
    check_problem(await machine.say("renew", lost), 409, "stale_task")
    assert (await machine.say("renew", second)).status_code == 200


async def test_an_abandoned_task_is_done_again_only_if_that_is_harmless(machine: Machine, clock: MovableClock) -> None:
    harmless, once = await machine.ask("write_file", FILE), await machine.ask("run_unit", UNIT)
    begun = [await machine.begin(), await machine.begin()]
    assert await machine.take() is None
    clock.forward(31)
    again = await machine.take()
    assert (again["task_id"], again["attempt"]) == (harmless["id"], 2)
    assert (await machine.say("renew", again)).status_code == 200
    assert await machine.take() is None
    late = await machine.say("result", begun[0], outcome="succeeded")
    check_problem(late, 409, "stale_task")
    assert (await machine.say("result", begun[1], outcome="interrupted")).status_code == 200, "late, but its own"
    assert (await machine.seen(once))["state"] == "interrupted"


async def test_a_task_without_a_result_expires_and_says_what_is_known(machine: Machine, clock: MovableClock) -> None:
    begun, waiting = await machine.ask("run_unit", UNIT), await machine.ask()
    leased = await machine.begin()
    clock.forward(kinds.WAITS_S + 130)
    platform = machine.world.platform
    tidy(platform, platform.clock())
    sentences = [
        r["message"] for r in rows(platform, "select message from node_tasks where state = 'expired' order by id")
    ]
    assert sentences == [
        "The task expired. It was started; its result is unknown.",
        "The task expired. No node started it.",
    ]
    assert one(platform, "select count(*) from node_tasks where ended_at is null") == 0
    assert {begun["id"], waiting["id"]} >= {leased["task_id"]}
    assert healthy(machine.world)


async def test_a_task_that_kills_its_machine_again_and_again_is_given_up(machine: Machine) -> None:
    task = await machine.ask()
    for _ in range(service.MOST_ATTEMPTS):
        assert await machine.take()
    assert await machine.take() is None
    seen = await machine.seen(task)
    assert (seen["state"], seen["attempt"]) == ("failed", service.MOST_ATTEMPTS)


async def test_evidence_is_bounded(machine: Machine) -> None:
    await machine.ask()
    leased = await machine.begin()
    much = await machine.say("result", leased, outcome="succeeded", evidence={"out": "x" * 70_000})
    check_problem(much, 422, "invalid_request")


async def test_a_machine_is_not_buried_in_tasks(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_WAITING", 2)
    await machine.ask()
    await machine.ask()
    check_problem(await machine.world.controller.post(machine.path, machine.body()), 409, "too_many_tasks")


async def test_a_long_poll_wakes_for_a_task_and_for_its_end(machine: Machine) -> None:
    polling = asyncio.create_task(take(machine.world, machine.node, machine.agent, wait_s=20))
    await asleep(machine.world.platform, f"node:{machine.node}")
    task = await machine.ask()
    leased = await asyncio.wait_for(polling, 15)
    await machine.say("renew", leased)
    waiting = asyncio.create_task(machine.world.controller.get(f"{machine.path}/{task['id']}?wait_s=20"))
    await asyncio.sleep(0.05)
    await machine.say("result", leased, outcome="succeeded")
    assert (await asyncio.wait_for(waiting, 15)).json()["state"] == "succeeded"


class Leaving:
    """A machine whose agent knows tasks, and whose allocation is given back."""

    def __init__(self, world: World, node: str, agent: Api, allocation: str) -> None:
        self.world, self.node, self.agent, self.allocation = world, node, agent, allocation

    async def take(self) -> Any:
        return await take(self.world, self.node, self.agent)

    async def release(self) -> Any:
        return await self.world.boss.ok(f"/v1/projects/{self.world.red}/allocations/{self.allocation}/release")

    async def wiped(self, outcome: str) -> None:
        leased = await self.take()
        said = {"attempt": leased["attempt"], "epoch": leased["epoch"]}
        path = f"/v1/nodes/{self.node}/tasks/{leased['task_id']}"
        await self.agent.ok(f"{path}/renew", said)
        await self.agent.ok(f"{path}/result", said | {"outcome": outcome, "message": f"It {outcome}."})

    async def again(self, **more: Any) -> Any:
        return await self.world.boss.post(f"/v1/nodes/{self.node}/wipe", {"reason": "looked at it"} | more)

    async def seen(self) -> tuple[str, str | None]:
        path = f"/v1/projects/{self.world.red}/allocations/{self.allocation}"
        found = (await self.world.boss.get(path)).json()
        return found["state"], found["wipe"]

    async def given_to_blue(self) -> int:
        body = {"node_id": self.node}
        return (await self.world.boss.post(f"/v1/projects/{self.world.blue}/allocations", body)).status_code


@pytest.fixture
async def leaving(world: World) -> Leaving:
    node, agent, _ = await add_node(world, "leaving")
    found = Leaving(world, node, agent, await hold(world, world.red, node, agent))
    assert await found.take() is None
    return found


async def test_a_machine_is_free_for_others_only_when_it_was_wiped(leaving: Leaving) -> None:
    released = await leaving.release()
    assert (released["state"], released["wipe"]) == ("releasing", "pending")
    assert await leaving.take() is None, "wiped while its holder may still come back"
    await apply_trust(leaving.node, leaving.agent)
    assert await leaving.seen() == ("releasing", "pending")
    assert await leaving.given_to_blue() == 409
    await leaving.wiped("succeeded")
    assert await leaving.seen() == ("released", "done")
    assert await leaving.given_to_blue() == 201


async def test_a_wipe_that_failed_keeps_the_machine_until_another_succeeds(leaving: Leaving) -> None:
    check_problem(await leaving.again(), 409, "nothing_to_wipe")
    await leaving.release()
    await apply_trust(leaving.node, leaving.agent)
    check_problem(await leaving.again(), 409, "wipe_under_way")
    await leaving.wiped("failed")
    assert await leaving.seen() == ("releasing", "failed")
    assert await leaving.given_to_blue() == 409
    told = rows(leaving.world.platform, "select data from events where type = 'capacity.allocation.wipe_failed'")
    assert "It failed." in str(told)
    asked = await leaving.again()
    assert asked.json()["wipe"] == "pending"
    await leaving.wiped("succeeded")
    assert await leaving.seen() == ("released", "done")


@pytest.mark.parametrize("trust_first", [True, False])
async def test_an_operator_can_report_that_a_machine_was_cleaned_by_hand(leaving: Leaving, trust_first: bool) -> None:
    await leaving.release()
    if trust_first:
        await apply_trust(leaving.node, leaving.agent)
    assert (await leaving.again(by_hand=True)).json()["wipe"] == "done"
    assert (await leaving.seen())[0] == ("released" if trust_first else "releasing")
    await apply_trust(leaving.node, leaving.agent)
    assert await leaving.seen() == ("released", "done")
    assert await leaving.take() is None, "the wipe it was to do is taken back"


async def test_a_machine_that_is_away_is_still_wiped_when_it_comes_back_days_later(
    leaving: Leaving, clock: MovableClock
) -> None:
    await leaving.release()
    clock.forward(3 * 24 * 3600)
    platform = leaving.world.platform
    tidy(platform, platform.clock())
    assert one(platform, "select state from node_tasks") == "queued"
    clock.forward(5 * 24 * 3600)
    tidy(platform, platform.clock())
    assert one(platform, "select wipe from allocations where id = :id", id=leaving.allocation) == "failed"


def test_every_kind_says_everything_about_itself() -> None:
    for name, kind in KINDS.items():
        assert kind.says.endswith("."), name
        assert 0 < kind.time_limit_s <= 1800, name
        assert 0 < kind.output_limit <= 65536, name
        assert kind.arguments["additionalProperties"] is False, name
