"""Observations beside the claims: what is reported, how often, and that a slow or broken one delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from gpuaas_sdk import AsyncClient, Bearer, Done, MemberObservation, Observation, ObserveContext, ObservePolicy, Work
from gpuaas_sdk.client.models import InstanceView, MemberView
from gpuaas_sdk.controller.observe import SETTLED_AFTER_S, Observer

from sdk.tests.support.controllers import controlling
from sdk.tests.support.controllers import until as until_within
from sdk.tests.support.fake_platform import Call, Platform, problem, wire

PATIENT_S = 40.0  # a busy machine looks late
OFTEN = ObservePolicy(every_s=0.05, at_once=4, within_s=0.5)


def instances(platform: Platform, *names: str, **more: Any) -> None:
    def listed(call: Call) -> tuple[int, Any]:
        return 200, {"items": [instance(name, **more) for name in names], "next_cursor": None}

    platform.on("GET", r"/v1/projects/prj_1/instances", listed)
    platform.on("POST", r"/v1/projects/prj_1/instances/\w+/observation", lambda call: (204, None))


def instance(name: str, **more: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"id": f"inst_{name}", "name": name, "project_id": "prj_1", "app_slug": "slurm"}
    known |= {"state": "running", "generation": 3, "last_operation_id": "op_9"}
    return wire(InstanceView, **(known | {"members": [wire(MemberView, id="mem_1", component_key="worker")]} | more))


def reported(platform: Platform, name: str = r"\w+") -> list[Call]:
    return platform.seen("POST", rf"/v1/projects/prj_1/instances/inst_{name}/observation")


async def until(holds: Callable[[], Any]) -> Any:
    return await until_within(holds, PATIENT_S)


async def nothing(work: Work) -> Done:
    return Done("Up.")


async def fine(look: ObserveContext) -> Observation:
    members = [MemberObservation(member_id=m.id, runtime_state="idle") for m in look.members("worker")]
    return Observation("All is well.", members=members, adapter_detail={"drift": []})


async def test_a_running_instance_is_looked_at_again_and_again(platform: Platform) -> None:
    instances(platform, "one")
    async with controlling(platform, nothing, observe=fine, observe_policy=OFTEN):
        await until(lambda: len(reported(platform)) >= 3)
    output = reported(platform)[0].body
    assert (output["last_operation_id"], output["observed_generation"]) == ("op_9", 3)
    assert output["health"] == {"status": "healthy", "sentence": "All is well."}
    assert output["members"] == [{"member_id": "mem_1", "runtime_state": "idle"}]
    assert "access" not in output


async def test_only_running_instances_of_the_own_app_are_looked_at(platform: Platform) -> None:
    mine, other, resting = instance("mine"), instance("other", app_slug="ray"), instance("rest", state="stopped")
    instances(platform)
    platform.on("GET", r"/v1/projects/prj_1/instances", lambda call: (200, {"items": [mine, other, resting]}))
    async with controlling(platform, nothing, observe=fine, observe_policy=OFTEN):
        await until(lambda: len(reported(platform)) >= 2)
    assert {call.path.split("/")[5] for call in reported(platform)} == {"inst_mine"}


async def test_what_another_account_operates_is_left_to_it(platform: Platform) -> None:
    shared, mine, other = instance("all"), instance("mine", operator_id="sa_1"), instance("other", operator_id="sa_2")
    instances(platform)
    platform.on("GET", r"/v1/projects/prj_1/instances", lambda call: (200, {"items": [shared, mine, other]}))
    async with controlling(platform, nothing, "sa_1", observe=fine, observe_policy=OFTEN):
        await until(lambda: len(reported(platform)) >= 4)
    assert {call.path.split("/")[5] for call in reported(platform)} == {"inst_all", "inst_mine"}


async def test_a_look_that_hangs_or_raises_delays_no_other(platform: Platform) -> None:
    instances(platform, "hangs", "raises", "fine")

    async def look(at: ObserveContext) -> Observation:
        if at.instance.name == "hangs":
            await asyncio.sleep(60)
        if at.instance.name == "raises":
            raise KeyError("a bug of the app")
        return await fine(at)

    async with controlling(platform, nothing, observe=look, observe_policy=OFTEN):
        await until(lambda: len(reported(platform, "fine")) >= 8)
    assert reported(platform, "hangs") == reported(platform, "raises") == []


async def test_no_more_looks_at_once_than_allowed(platform: Platform) -> None:
    instances(platform, *(f"i{n}" for n in range(6)))
    looking, most = 0, 0

    async def look(at: ObserveContext) -> None:
        nonlocal looking, most
        looking += 1
        most = max(most, looking)
        await asyncio.sleep(0.05)
        looking -= 1

    pace = ObservePolicy(every_s=0.05, at_once=2, within_s=5)
    async with controlling(platform, nothing, observe=look, observe_policy=pace):
        await until(lambda: most == 2)
        await asyncio.sleep(0.3)
    assert most == 2
    assert reported(platform) == [], "a look that finds nothing to say says nothing"


async def test_the_end_of_an_operation_is_looked_at_soon(platform: Platform) -> None:
    instances(platform, "one")
    rarely = ObservePolicy(every_s=60.0)
    async with controlling(platform, nothing, observe=fine, observe_policy=rarely):
        await until(lambda: len(reported(platform)) == 1)
        platform.queue(instance_id="inst_one")
        await until(lambda: len(reported(platform)) == 2)


async def test_while_another_operation_works_there_the_end_of_one_is_not_looked_at(platform: Platform) -> None:
    """The look would share the hosts with it, and what it says would be old before it is reported."""
    instances(platform, "one")
    may_end = asyncio.Event()

    async def work(work: Work) -> Done:
        if work.operation.member_id == "mem_slow":
            await may_end.wait()
        return Done("Up.")

    async with controlling(platform, work, observe=fine, observe_policy=ObservePolicy(every_s=60.0)):
        await until(lambda: len(reported(platform)) == 1)
        platform.queue(instance_id="inst_one", member_id="mem_slow")
        platform.queue(instance_id="inst_one", member_id="mem_quick")
        await until(lambda: platform.reports("complete"))
        await asyncio.sleep(2 * SETTLED_AFTER_S)
        assert len(reported(platform)) == 1
        may_end.set()
        await until(lambda: len(reported(platform)) == 2)


async def test_a_refused_look_is_tried_again_later(platform: Platform) -> None:
    instances(platform, "one")
    path = r"/v1/projects/prj_1/instances/\w+/observation"
    platform.on("POST", path, lambda call: problem(409, "not_observable"))
    async with controlling(platform, nothing, observe=fine, observe_policy=OFTEN):
        await until(lambda: len(reported(platform)) >= 2)


async def test_work_on_one_member_says_how_it_ended_and_nothing_of_the_instances_health(platform: Platform) -> None:
    platform.queue(member_id="mem_2")
    async with controlling(platform, nothing):
        report = (await until(lambda: platform.reports("complete")))[0]
    assert report.body["message"] == "Up."
    assert "health" not in report.body


async def test_who_is_stopped_in_the_very_moment_it_is_woken_stops(platform: Platform) -> None:
    """asyncio's `wait_for` forgets a cancellation that meets the end of what it waits for."""
    instances(platform)
    async with AsyncClient(platform.url, Bearer("tok"), project_id="prj_1") as client:
        observer = Observer(client, "prj_1", "slurm", fine, ObservePolicy(every_s=60))
        running = asyncio.create_task(observer.run())
        await until(lambda: platform.seen("GET", r"/v1/projects/prj_1/instances"))
        await asyncio.sleep(0.5)  # it has nothing to look at and waits
        observer.soon("inst_one")
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=5)
        running.cancel()
    assert done, "it goes on although it was reported to stop"
