"""Looking at a running instance between operations: what is seen, who may look, and when a look says nothing."""

from typing import Any

import pytest
from gpuaas_core.background.trust_maintenance import keep

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import CLEAN, HOST_KEY, Api, World
from core.tests.support.store_rows import dump, one, rows

SEEN = {"status": "degraded", "sentence": "One of two workers does not answer."}


def seen(instance: Any, **more: Any) -> dict[str, Any]:
    looked_at = {"last_operation_id": instance["last_operation_id"], "observed_generation": instance["generation"]}
    return looked_at | {"health": SEEN} | more


async def look(world: World, instance: Any, *, by: Api | None = None, **more: Any) -> Any:
    return await (by or world.controller).post(world.of(instance, "observation"), seen(instance, **more))


async def enter(world: World, instance: Any, allocation: str, *, by: Api | None = None) -> Any:
    body = {"allocation_id": allocation, "ssh_public_key": HOST_KEY}
    return await (by or world.controller).post(world.of(instance, "observation", "access-grants"), body)


def why_gone(world: World) -> str | None:
    keep(world.platform)
    return one(world.platform, "select revoke_reason from access_grants where purpose = 'observation'")


def told(world: World) -> list[str]:
    return [row["type"] for row in rows(world.platform, "select type from events order by sequence")]


async def test_what_is_seen_is_shown_and_an_equal_look_writes_nothing(world: World) -> None:
    instance = await world.running()
    before = len(told(world))
    member = instance["members"][0]["id"]
    said: dict[str, Any] = {
        "conditions": [{"type": "worker", "status": "False", "reason": "silent", "message": "node-1 is silent."}],
        "members": [{"member_id": member, "runtime_state": "down", "runtime_version": "1.2"}],
        "access": {"host": "node-0"},
        "adapter_detail": {"drift": []},
        "runtime_version": "1.2",
    }
    first = await look(world, instance, **said)
    assert first.status_code == 200, first.text
    named = ["access", "adapter_detail", "conditions", "health", "runtime_version", "members"]
    assert first.json()["changed"] == named
    shown = await world.instance(instance["id"])
    assert shown["health"] == SEEN
    assert shown["conditions"][0]["message"] == "node-1 is silent."
    assert shown["members"][0]["runtime_state"] == "down"
    assert (shown["access"], shown["runtime_version"]) == ({"host": "node-0"}, "1.2")
    assert sorted(told(world)[before:]) == ["apps.instance.updated", "apps.member.changed"]
    store = dump(world.platform)
    again = await look(world, instance, **said)
    assert again.status_code == 204
    assert dump(world.platform) == store, "an equal look left a trace"
    assert (await world.instance(instance["id"]))["etag"] == shown["etag"]


async def test_conditions_keep_their_moment_and_those_not_named_stay(world: World, clock: Any) -> None:
    instance = await world.running()
    ready = {"type": "a", "status": "True", "message": "fine"}
    await look(world, instance, conditions=[ready, {"type": "b", "status": "True"}])
    first = (await world.instance(instance["id"]))["conditions"]
    clock.forward(60)
    instance = await world.instance(instance["id"])
    await look(world, instance, conditions=[ready | {"message": "fine, too"}])
    second = (await world.instance(instance["id"]))["conditions"]
    assert [(one["type"], one["message"]) for one in second] == [("a", "fine, too"), ("b", "")]
    assert second[0]["last_transition_at"] == first[0]["last_transition_at"]
    check_problem(
        await look(world, instance, conditions=[{"type": "Stuck", "status": "True"}]), 422, "condition_reserved"
    )


async def test_detail_is_told_by_name_and_null_takes_it_away(world: World) -> None:
    instance = await world.running()
    await look(world, instance, adapter_detail={"drift": ["x"], "seen": 1})
    await look(world, instance, adapter_detail={"drift": None, "more": 2})
    assert (await world.instance(instance["id"]))["adapter_detail"] == {"seen": 1, "more": 2}


async def test_the_last_of_two_controllers_wins_and_neither_is_hurt(world: World) -> None:
    instance = await world.running()
    await world.deploy(world.allocations[1], "other")
    assert await world.claim(by=world.second), "now both have worked for the app"
    mended = {"status": "healthy", "sentence": "All is well."}
    assert (await look(world, instance)).status_code == 200
    assert (await look(world, instance, by=world.second, health=mended)).status_code == 200
    assert (await look(world, instance, by=world.second, health=mended)).status_code == 204
    assert (await world.instance(instance["id"]))["health"] == mended


async def test_what_is_only_seen_spoils_no_update_that_was_based_on_an_earlier_read(world: World) -> None:
    instance = await world.running()
    assert (await look(world, instance)).status_code == 200
    assert (await world.instance(instance["id"]))["etag"] != instance["etag"], "all that is shown is in the tag"
    body, path = {"inputs": {"greeting": "moin"}}, world.of(instance, "update")
    await world.boss.ok(path, body, headers={"If-Match": instance["etag"]})
    refused = await world.boss.post(path, body, headers={"If-Match": instance["etag"]})
    check_problem(refused, 412, "precondition_failed")


async def test_only_a_controller_of_an_entitled_project_looks(world: World) -> None:
    instance = await world.running()
    for asked in (look(world, instance, by=world.boss), enter(world, instance, world.allocations[0], by=world.boss)):
        check_problem(await asked, 403, "observer_not_controller")
    assert (await look(world, instance, by=world.blue_controller)).status_code == 404
    assert (await look(world, instance, by=world.viewer)).status_code == 403
    await world.boss.ok(f"/v1/projects/{world.red}/entitlements/echo/disable")
    check_problem(await look(world, instance), 403, "app_not_entitled")
    check_problem(await enter(world, instance, world.allocations[0]), 403, "app_not_entitled")
    assert (await world.instance(instance["id"]))["health"]["status"] == "healthy"


async def test_an_operation_on_the_whole_goes_before_what_is_seen(world: World) -> None:
    instance = await world.running()
    await world.boss.ok(world.of(instance, "restart"))
    check_problem(await look(world, instance), 409, "not_observable")
    check_problem(await enter(world, instance, world.allocations[0]), 409, "not_observable")
    await world.complete(await world.claim())
    late = await look(world, instance)
    check_problem(late, 409, "observation_outdated")
    now = await world.instance(instance["id"])
    older = {"observed_generation": now["generation"] + 1}
    check_problem(await look(world, now, **older), 409, "observation_outdated")
    assert now["health"]["status"] == "healthy"
    assert (await look(world, now)).status_code == 200


async def test_an_instance_that_does_not_run_is_not_looked_at(world: World) -> None:
    accepted = (await world.deploy())["instance"]
    check_problem(await look(world, accepted), 409, "not_observable")


async def test_a_member_in_work_is_passed_over_and_a_stranger_is_unknown(world: World) -> None:
    (spare,) = await world.more_machines(1)
    instance = await world.several(world.allocations[1], spare)
    workers = [m for m in instance["members"] if m["component_key"] == "worker"]
    await world.boss.ok(world.of(instance, "members", workers[0]["id"], "restart"))
    both = [{"member_id": one["id"], "runtime_state": "down"} for one in workers]
    assert (await look(world, instance, members=both)).status_code == 200
    states = {m["id"]: m["runtime_state"] for m in (await world.instance(instance["id"]))["members"]}
    assert (states[workers[0]["id"]], states[workers[1]["id"]]) == (None, "down")
    stranger = [{"member_id": "mem_00000000000000000000000000", "runtime_state": "down"}]
    assert (await look(world, instance, members=stranger)).status_code == 404


async def _stopped(world: World, instance: Any, worker: Any) -> str:
    await world.boss.ok(world.of(instance, "stop"))
    return "an operation changes the instance it was given to look at"


async def _restarted(world: World, instance: Any, worker: Any) -> str:
    await world.boss.ok(world.of(instance, "restart"))
    await world.complete(await world.claim())
    return "an operation changes the instance it was given to look at"


async def _worked_on(world: World, instance: Any, worker: Any) -> str:
    await world.boss.ok(world.of(instance, "members", worker["id"], "drain"))
    return "an operation works on its machine"


async def _removed(world: World, instance: Any, worker: Any) -> str:
    await world.boss.ok(world.of(instance, "members", worker["id"], "remove"))
    claim = await world.claim()
    await world.done(claim, evidence={worker["allocation_id"]: CLEAN})
    return "its machine is no longer part of the instance"


async def _disabled(world: World, instance: Any, worker: Any) -> str:
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.controller_id}/disable")
    return "its account is disabled"


ENDS = [_stopped, _restarted, _worked_on, _removed, _disabled]


@pytest.mark.parametrize("end", ENDS, ids=[end.__name__ for end in ENDS])
async def test_access_to_look_ends_with_its_reason(world: World, end: Any) -> None:
    (spare,) = await world.more_machines(1)
    instance = await world.several(world.allocations[1], spare)
    worker = next(m for m in instance["members"] if m["allocation_id"] == spare)
    grant = await enter(world, instance, spare)
    assert grant.status_code == 201, grant.text
    assert why_gone(world) is None
    assert why_gone(world) is None, "it was taken back without a reason"
    reason = await end(world, instance, worker)
    assert why_gone(world) == reason


async def test_work_on_another_member_takes_no_access_away(world: World) -> None:
    (spare,) = await world.more_machines(1)
    instance = await world.several(world.allocations[1], spare)
    other = next(m for m in instance["members"] if m["allocation_id"] == world.allocations[1])
    await enter(world, instance, spare)
    await world.boss.ok(world.of(instance, "members", other["id"], "drain"))
    assert why_gone(world) is None
    check_problem(await enter(world, instance, world.allocations[1]), 409, "not_observable")
    path = f"/v1/projects/{world.red}/access-grants"
    (shown,) = (await world.boss.get(path)).json()["items"]
    assert (shown["purpose"], shown["operation_id"]) == ("observation", instance["last_operation_id"])


async def test_access_to_look_is_for_machines_of_this_instance_only(world: World) -> None:
    instance = await world.running()
    for stranger in (world.allocations[1], world.blue_allocation, "alloc_nowhere"):
        check_problem(await enter(world, instance, stranger), 404, "allocation_not_of_operation")


async def test_the_end_of_work_on_one_member_hides_nothing_that_was_seen(world: World) -> None:
    (spare,) = await world.more_machines(1)
    instance = await world.several(world.allocations[1], spare)
    await look(world, instance)
    worker = next(m for m in instance["members"] if m["allocation_id"] == spare)
    await world.boss.ok(world.of(instance, "members", worker["id"], "restart"))
    ended = await world.done(await world.claim(), message="node-1 was restarted.")
    assert ended["progress"]["message"] == "node-1 was restarted."
    assert (await world.instance(instance["id"]))["health"] == SEEN


async def test_what_a_report_says_by_name_stays_on_the_operation(world: World) -> None:
    await world.deploy()
    claim = await world.claim()
    await world.progress(claim, 1, adapter_detail={"preflight": [{"host": "a"}], "note": 1})
    await world.progress(claim, 2, adapter_detail={"note": 2})
    ended = await world.complete(claim, adapter_detail={"steps": []})
    assert ended["adapter_detail"] == {"preflight": [{"host": "a"}], "note": 2, "steps": []}
    assert (await world.instance(ended["instance_id"]))["adapter_detail"] == {"steps": []}
