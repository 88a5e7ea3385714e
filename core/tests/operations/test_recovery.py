"""What people do when work does not go as it should: no recovery needs the store, and nothing is stuck silently."""

from typing import Any

import pytest
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.operations import watchdog
from sqlalchemy import text

from core.tests.instances.test_instances import actions, check_problem, publish
from core.tests.instances.test_members import holds
from core.tests.support.fixtures import MovableClock, World
from core.tests.support.store_rows import one, rows

DAY = 24 * 3600


def tidied(world: World) -> None:
    tidy(world.platform, world.platform.clock())


async def operation(world: World, claim: Any) -> Any:
    return (await world.boss.get(world.operation(claim["operation"]["id"]))).json()


async def test_a_claim_taken_away_is_dead_and_the_work_waits_again(world: World) -> None:
    await world.deploy()
    claim = await world.claim()
    assert actions(await operation(world, claim))["release_claim"]["allowed"]
    taken = await world.boss.ok(world.operation(claim["operation"]["id"], "release-claim"), {"reason": "it hangs"})
    assert (taken["status"], taken["claim_epoch"], taken["claimed_by"]) == ("queued", 2, None)
    check_problem(
        await world.controller.post(world.operation(taken["id"], "heartbeat"), {"claim_epoch": 1}), 409, "stale_claim"
    )
    again = await world.claim("controller-b")
    assert (again["operation"]["id"], again["claim_epoch"]) == (taken["id"], 3)
    await world.complete(again)
    check_problem(await world.boss.post(world.operation(taken["id"], "release-claim")), 409, "wrong_state")


async def test_abandoned_work_ends_unknown_with_the_reason_in_the_audit_trail(world: World) -> None:
    accepted = await world.deploy()
    claim = await world.claim()
    path = world.operation(accepted["operation"]["id"], "abandon")
    check_problem(await world.boss.post(path), 422, "invalid_request")
    headers = {"X-Correlation-Id": "giving-up-4711"}
    ended = await world.boss.ok(path, {"reason": "the controller is lost"}, headers=headers)
    assert (ended["status"], ended["error"]["code"]) == ("needs_attention", "abandoned")
    (audited,) = rows(world.platform, "select * from audit where correlation_id = 'giving-up-4711'")
    assert (audited["permission"], "the controller is lost" in audited["reason"]) == ("apps.operation.abandon", True)
    assert (await world.instance(accepted["instance"]["id"]))["state"] == "failed"
    refused = await world.controller.post(world.operation(ended["id"], "complete"), {"claim_epoch": 1})
    check_problem(refused, 409, "stale_claim")
    await world.boss.ok(world.operation(ended["id"], "retry"))
    await world.complete(await world.claim())
    assert claim["claim_epoch"] == 1


@pytest.mark.parametrize("ended_first", [False, True])
async def test_an_abandoned_teardown_is_deleted_and_leaves_orphans_until_they_are_resolved(
    world: World, ended_first: bool
) -> None:
    instance = await world.running()
    await world.decommission(instance["id"])
    claim = await world.claim()
    if ended_first:
        await world.fail(claim)
    await world.boss.ok(world.operation(claim["operation"]["id"], "abandon"), {"reason": "the rack is gone"})
    gone = await world.instance(instance["id"])
    assert (gone["state"], {m["state"] for m in gone["members"]}) == ("deleted", {"removed"})
    assert (await operation(world, claim))["status"] == ("failed" if ended_first else "needs_attention")
    assert holds(world) == set()
    told = [row["type"] for row in rows(world.platform, "select type from events order by sequence")]
    assert {"apps.instance.abandoned", "apps.orphan.recorded"} <= set(told)
    path = f"/v1/projects/{world.red}/orphans"
    left = (await world.boss.get(path)).json()["items"]
    assert {one["node_name"] for one in left} == {"node-0"}
    check_problem(
        await world.boss.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0])),
        409,
        "machine_not_clean",
    )
    for orphan in left:
        await world.boss.ok(f"{path}/{orphan['id']}/resolve", {"reason": "wiped it by hand"})
    assert (await world.boss.get(path)).json()["items"] == []
    looked_at = (await world.boss.get(f"{path}?resolved=true")).json()["items"]
    assert {(one["resolution"], one["resolved_by"]) for one in looked_at} == {("wiped it by hand", world.boss_id)}
    assert (await world.boss.post(f"{path}/{left[0]['id']}/resolve", {"reason": "again"})).json()["resolution"] == (
        "wiped it by hand"
    )
    await world.running()


async def test_ended_work_that_leaves_nothing_half_gone_cannot_be_abandoned(world: World) -> None:
    await world.deploy()
    claim = await world.claim()
    await world.fail(claim)
    path = world.operation(claim["operation"]["id"], "abandon")
    check_problem(await world.boss.post(path, {"reason": "because"}), 409, "wrong_state")


async def test_a_controller_that_falls_silent_is_seen_within_a_minute_and_seen_to_come_back(
    world: World, clock: MovableClock
) -> None:
    await world.deploy()
    claim = await world.claim()
    clock.forward(29)
    tidied(world)
    assert (await operation(world, claim))["stuck"] is None
    clock.forward(5)
    tidied(world)
    shown = await operation(world, claim)
    assert shown["stuck"]["reason"] == "heartbeats_missed"
    possible = {name for name, one in actions(shown).items() if one["allowed"]}
    assert possible == {"cancel", "release_claim", "abandon"}
    (condition,) = (await world.instance(claim["instance"]["id"]))["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Stuck", "True", "heartbeats_missed")
    tidied(world)
    assert one(world.platform, "select count(*) from events where type = 'apps.operation.stuck'") == 1
    body = {"claim_epoch": claim["claim_epoch"]}
    await world.controller.ok(world.operation(claim["operation"]["id"], "heartbeat"), body)
    assert (await operation(world, claim))["stuck"] is None
    assert (await world.instance(claim["instance"]["id"]))["conditions"] == []
    assert one(world.platform, "select count(*) from events where type = 'apps.operation.unstuck'") == 1


async def test_work_that_gets_no_further_is_stuck_until_it_does(world: World, clock: MovableClock) -> None:
    await world.deploy()
    claim = await world.claim()
    for _ in range(31):
        clock.forward(20)
        body = {"claim_epoch": claim["claim_epoch"]}
        await world.controller.ok(world.operation(claim["operation"]["id"], "heartbeat"), body)
    tidied(world)
    assert (await operation(world, claim))["stuck"]["reason"] == "no_progress"
    await world.progress(claim, 1)
    tidied(world)
    assert (await operation(world, claim))["stuck"] is None


async def test_work_that_no_controller_claims_is_marked_unclaimed(world: World, clock: MovableClock) -> None:
    accepted = await world.deploy()
    clock.forward(121)
    tidied(world)
    assert (await operation(world, accepted))["stuck"]["reason"] == "unclaimed"
    await world.complete(await world.claim())
    assert (await operation(world, accepted))["stuck"] is None


async def test_a_late_operation_is_stuck_when_held_and_needs_attention_when_not(
    world: World, clock: MovableClock
) -> None:
    await world.deploy()
    held = await world.claim()
    await world.deploy(world.allocations[1], "second")
    clock.forward(7201)
    lease = "update operations set lease_expires_at = :until where id = :id"
    until = {"until": world.platform.clock() + 20_000, "id": held["operation"]["id"]}
    world.platform.db.write_now(lambda tx: tx.execute(text(lease), until))
    tidied(world)
    assert (await operation(world, held))["stuck"]["reason"] == "deadline_passed"
    listed = (await world.boss.get(f"/v1/projects/{world.red}/operations?status=needs_attention")).json()["items"]
    assert [found["error"]["code"] for found in listed] == ["deadline_passed"]
    assert (await world.instance(listed[0]["instance_id"]))["state"] == "failed"
    audited = rows(world.platform, "select * from audit where actor_id = 'platform'")
    assert [row["resource_id"] for row in audited] == [listed[0]["id"]]


async def test_an_app_says_how_long_its_work_may_take(world: World, clock: MovableClock) -> None:
    await publish(world, "1.0.1", operations={"stop": {"deadline_s": 60, "expected_phase_s": 5}})
    instance = await world.running()
    await world.boss.ok(world.of(instance, "stop"))
    claim = await world.claim()
    clock.forward(11)
    tidied(world)
    assert (await operation(world, claim))["stuck"]["reason"] == "no_progress"
    clock.forward(60)
    assert await world.claim("controller-b") is None
    assert (await operation(world, claim))["error"]["code"] == "deadline_passed"


async def test_an_app_says_so_of_its_deploy_too(world: World, clock: MovableClock) -> None:
    await publish(world, "1.0.1", operations={"deploy": {"deadline_s": 60}})
    accepted = await world.deploy()
    clock.forward(61)
    tidied(world)
    found = (await world.boss.get(world.operation(accepted["operation"]["id"]))).json()
    assert (found["status"], found["error"]["code"]) == ("needs_attention", "deadline_passed")


async def test_operations_are_kept_thirty_days_with_their_request_ids_and_not_longer(
    world: World, clock: MovableClock
) -> None:
    body = world.deploy_body(world.allocations[0])
    path = f"/v1/projects/{world.red}/instances"
    accepted = await world.boss.ok(path, body, key="asked-a-month-ago-1")
    await world.complete(await world.claim())
    restart = await world.boss.ok(world.of(accepted["instance"], "restart"))
    await world.complete(await world.claim())
    clock.forward(29 * DAY)
    tidied(world)
    kept = "select count(*) from seen_requests where key = 'asked-a-month-ago-1'"
    assert one(world.platform, "select count(*) from operations") == 2
    assert one(world.platform, kept) == 1
    clock.forward(1 * DAY + 60)
    tidied(world)
    assert one(world.platform, kept) == 0
    left = {row["id"] for row in rows(world.platform, "select id from operations")}
    assert left == {restart["operation"]["id"]}, "the newest one of an instance stays with it"
    assert watchdog.KEPT_DAYS == 30


async def test_current_work_and_history_are_listed_apart(world: World) -> None:
    instance = await world.running()
    restart = (await world.boss.ok(world.of(instance, "restart")))["operation"]
    path = f"/v1/projects/{world.red}/operations?instance_id={instance['id']}"
    now = (await world.boss.get(f"{path}&history=false")).json()["items"]
    past = (await world.boss.get(f"{path}&history=true")).json()["items"]
    assert [found["id"] for found in now] == [restart["id"]]
    assert [found["kind"] for found in past] == ["deploy"]
