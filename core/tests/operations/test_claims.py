"""Claims: one holder at a time, a rising epoch, a lease by the platform's clock; a stale holder changes nothing."""

import asyncio
from typing import Any

import pytest

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import CLEAN, HOST_KEY, MovableClock, World
from core.tests.support.promises import promised
from core.tests.support.store_rows import dump

ERROR = {"code": "it_broke", "message": "It broke.", "way_out": "Mend it.", "retryable": True}
REPORTS: dict[str, dict[str, Any]] = {
    "heartbeat": {},
    "progress": {"phase": "late", "step": 4, "of": 5, "message": "I am still here"},
    "complete": {},
    "fail": {"error": ERROR},
    "return-claim": {"retry_in_s": 0},
    "access-grants": {"ssh_public_key": HOST_KEY},
}


def _report(verb: str, claim: Any) -> dict[str, Any]:
    body = REPORTS[verb] | {"claim_epoch": claim["claim_epoch"]}
    if verb == "complete":
        body["members"] = [{"member_id": m["id"], "state": "ready"} for m in claim["instance"]["members"]]
    if verb == "access-grants":
        body["allocation_id"] = claim["instance"]["members"][0]["allocation_id"]
    return body


@pytest.mark.parametrize("verb", REPORTS)
async def test_a_stale_epoch_changes_nothing(world: World, clock: MovableClock, verb: str) -> None:
    await world.deploy()
    old = await world.claim()
    clock.forward(31)
    assert (await world.claim("controller-b"))["claim_epoch"] == 2
    before = dump(world.platform)
    refused = await world.controller.post(world.operation(old["operation"]["id"], verb), _report(verb, old))
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_claim")
    assert dump(world.platform) == before


@pytest.mark.parametrize("verb", REPORTS)
async def test_another_service_account_cannot_use_my_claim(world: World, verb: str) -> None:
    await world.deploy()
    claim = await world.claim()
    before = dump(world.platform)
    refused = await world.second.post(world.operation(claim["operation"]["id"], verb), _report(verb, claim))
    assert (refused.status_code, refused.json()["code"]) == (409, "stale_claim")
    assert dump(world.platform) == before


@pytest.mark.parametrize("ending", ["succeeded", "failed", "superseded", "canceled"])
async def test_an_ended_operation_is_final(world: World, ending: str) -> None:
    accepted = await world.deploy()
    claim = await world.claim()
    if ending == "succeeded":
        await world.complete(claim)
    elif ending == "superseded":
        await world.decommission(accepted["instance"]["id"])
    else:
        await world.boss.ok(world.operation(claim["operation"]["id"], "cancel"))
        await world.fail(claim, "canceled" if ending == "canceled" else "it_broke")
    before = dump(world.platform)
    for verb in REPORTS:
        refused = await world.controller.post(world.operation(claim["operation"]["id"], verb), _report(verb, claim))
        assert (refused.status_code, refused.json()["code"]) == (409, "stale_claim"), verb
    refused = await world.boss.post(world.operation(claim["operation"]["id"], "cancel"))
    assert (refused.status_code, refused.json()["code"]) == (409, "not_cancelable")
    assert dump(world.platform) == before
    assert (await world.boss.get(world.operation(claim["operation"]["id"]))).json()["status"] == ending


async def test_a_lease_that_is_over_lets_another_holder_in_and_not_before(world: World, clock: MovableClock) -> None:
    await world.deploy()
    assert (await world.claim())["lease_expires_in_s"] == 30
    clock.forward(29)
    assert await world.claim("controller-b", by=world.second) is None
    clock.forward(2)
    taken = await world.claim("controller-b", by=world.second)
    assert taken["claim_epoch"] == 2
    assert taken["operation"]["claimed_by"] == "controller-b"


@pytest.mark.parametrize("verb", ["heartbeat", "progress"])
async def test_a_report_renews_the_lease(world: World, clock: MovableClock, verb: str) -> None:
    await world.deploy()
    claim = await world.claim()
    clock.forward(29)
    answer = await world.controller.ok(world.operation(claim["operation"]["id"], verb), _report(verb, claim))
    assert answer == {"lease_expires_in_s": 30, "cancel_requested": False}
    clock.forward(29)
    assert await world.claim("controller-b") is None


async def test_a_restarted_holder_takes_its_work_back_at_once_and_its_former_self_is_stale(world: World) -> None:
    await world.deploy()
    before = await world.claim()
    after = await world.claim()
    assert after["operation"]["id"] == before["operation"]["id"]
    assert after["claim_epoch"] == before["claim_epoch"] + 1
    refused = await world.controller.post(world.operation(after["operation"]["id"], "heartbeat"), {"claim_epoch": 1})
    assert refused.json()["code"] == "stale_claim"


async def test_work_named_as_held_right_now_is_not_handed_out_again(world: World) -> None:
    await world.deploy()
    first = await world.claim()
    mine = [first["operation"]["id"]]
    assert await world.claim(holding=mine) is None
    await world.deploy(world.allocations[1], "second")
    second = await world.claim(holding=mine)
    assert second["operation"]["id"] not in mine


async def test_the_same_holder_name_of_another_account_takes_nothing_over(world: World) -> None:
    await world.deploy()
    await world.claim("controller-a")
    assert await world.claim("controller-a", by=world.second) is None


async def test_of_controllers_racing_for_one_operation_exactly_one_gets_it(world: World) -> None:
    await world.deploy()
    racers = [world.claim(f"controller-{n}", by=(world.controller, world.second)[n % 2]) for n in range(12)]
    won = [claim for claim in await asyncio.gather(*racers) if claim is not None]
    assert len(won) == 1
    assert won[0]["claim_epoch"] == 1


async def test_a_waiting_controller_gets_new_work_at_once(world: World) -> None:
    waiting = asyncio.create_task(world.claim(wait_s=20))
    await asyncio.sleep(0.1)
    accepted = await world.deploy()
    claim = await asyncio.wait_for(waiting, promised(1.5))
    assert claim["operation"]["id"] == accepted["operation"]["id"]


async def test_a_controller_disabled_while_it_waits_gets_no_work(world: World) -> None:
    body = {"app_slug": "echo", "holder": "controller-a", "wait_s": 20}
    waiting = asyncio.create_task(world.controller.post(f"/v1/projects/{world.red}/operations/claim", body))
    await asyncio.sleep(0.1)
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.controller_id}/disable")
    accepted = await world.deploy()
    refused = await asyncio.wait_for(waiting, 15)
    assert refused.status_code == 401
    operation = (await world.boss.get(world.operation(accepted["operation"]["id"]))).json()
    assert (operation["status"], operation["claim_epoch"]) == ("queued", 0)


async def test_a_claim_given_back_waits_for_its_delay(world: World, clock: MovableClock) -> None:
    await world.deploy()
    claim = await world.claim()
    body = {"claim_epoch": 1, "retry_in_s": 40, "reason": "The machine is rebooting"}
    released = await world.controller.ok(world.operation(claim["operation"]["id"], "return-claim"), body)
    assert (released["status"], released["claimed_by"]) == ("queued", None)
    assert released["progress"]["message"] == "The machine is rebooting"
    clock.forward(39)
    assert await world.claim() is None
    clock.forward(2)
    assert (await world.claim())["claim_epoch"] == 2


async def test_eight_attempts_without_a_step_further_need_attention(world: World, clock: MovableClock) -> None:
    accepted = await world.deploy()
    for attempt in range(8):
        assert (await world.claim())["operation"]["attempts"] == attempt + 1
    assert await world.claim() is None
    operation = (await world.boss.get(world.operation(accepted["operation"]["id"]))).json()
    assert operation["status"] == "needs_attention"
    assert operation["error"]["code"] == "attempts_exhausted"
    assert operation["error"]["way_out"]
    instance = await world.instance(accepted["instance"]["id"])
    assert instance["state"] == "failed"
    allowed = {one["action"] for one in instance["available_actions"] if one["allowed"]}
    assert allowed == {"retry", "update", "decommission"}
    again = await world.boss.ok(world.operation(operation["id"], "retry"))
    await world.complete(await world.claim())
    assert (await world.instance(accepted["instance"]["id"]))["state"] == "running"
    assert again["operation"]["retry_of"] == operation["id"]


async def test_work_that_is_given_up_does_not_stand_in_the_way_of_other_work(world: World) -> None:
    await world.deploy()
    for _ in range(8):
        await world.claim()
    healthy = await world.deploy(world.allocations[1], "second")
    claim = await world.claim()
    assert claim is not None, "the poisoned operation was given up and the healthy one behind it was not handed out"
    assert claim["operation"]["id"] == healthy["operation"]["id"]


async def test_work_that_comes_after_a_giving_up_reaches_the_same_waiting_controller(world: World) -> None:
    await world.deploy()
    for _ in range(8):
        await world.claim()
    waiting = asyncio.create_task(world.claim(wait_s=20))
    await asyncio.sleep(0.2)
    healthy = await world.deploy(world.allocations[1], "second")
    claim = await asyncio.wait_for(waiting, 15)
    assert claim["operation"]["id"] == healthy["operation"]["id"]


async def test_a_step_further_starts_the_count_of_attempts_again(world: World) -> None:
    await world.deploy()
    for _ in range(7):
        claim = await world.claim()
    await world.progress(claim, 1)
    assert (await world.claim())["operation"]["attempts"] == 2
    await world.progress(await world.claim(), 1)
    assert (await world.claim())["operation"]["attempts"] == 4, "the same step again is no step further"


async def test_a_decommission_supersedes_a_running_deploy(world: World) -> None:
    accepted = await world.deploy()
    old = await world.claim()
    asked = await world.decommission(accepted["instance"]["id"])
    assert asked["instance"]["state"] == "deleting"
    assert (await world.boss.get(world.operation(old["operation"]["id"]))).json()["status"] == "superseded"
    teardown = await world.claim()
    assert (teardown["operation"]["kind"], teardown["operation"]["id"]) == ("decommission", asked["operation"]["id"])
    await world.torn_down(teardown)
    assert (await world.instance(accepted["instance"]["id"]))["state"] == "deleted"


async def test_a_decommission_asked_twice_is_refused_with_the_possible(world: World) -> None:
    accepted = await world.deploy()
    await world.decommission(accepted["instance"]["id"])
    refused = await world.boss.post(f"/v1/projects/{world.red}/instances/{accepted['instance']['id']}/decommission")
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
    assert "deleting" in refused.json()["detail"]


async def test_waiting_work_is_canceled_at_once(world: World) -> None:
    accepted = await world.deploy()
    canceled = await world.boss.ok(world.operation(accepted["operation"]["id"], "cancel"))
    assert canceled["status"] == "canceled"
    assert (await world.instance(accepted["instance"]["id"]))["state"] == "failed"
    assert await world.claim() is None


async def test_a_holder_is_asked_to_stop_and_says_how_it_ended(world: World) -> None:
    accepted = await world.deploy()
    claim = await world.claim()
    path = world.operation(claim["operation"]["id"], "")
    asked = await world.boss.ok(world.operation(claim["operation"]["id"], "cancel"))
    assert (asked["status"], asked["cancel_requested"]) == ("running", True)
    beat = await world.controller.ok(world.operation(claim["operation"]["id"], "heartbeat"), {"claim_epoch": 1})
    assert beat["cancel_requested"] is True
    await world.fail(claim, "canceled")
    assert (await world.boss.get(path)).json()["status"] == "canceled"
    instance = await world.instance(accepted["instance"]["id"])
    assert instance["state"] == "failed"
    assert {member["state"] for member in instance["members"]} == {"failed"}


async def test_a_retry_is_a_new_operation_and_only_of_the_newest(world: World) -> None:
    accepted = await world.deploy()
    await world.fail(await world.claim())
    failed = accepted["operation"]["id"]
    again = await world.boss.ok(world.operation(failed, "retry"))
    assert again["operation"]["id"] != failed
    assert again["operation"]["retry_of"] == failed
    assert again["operation"]["kind"] == "deploy"
    assert {member["state"] for member in again["instance"]["members"]} == {"pending"}
    assert (await world.boss.get(world.operation(failed))).json()["status"] == "failed"
    refused = await world.boss.post(world.operation(failed, "retry"))
    assert (refused.status_code, refused.json()["code"]) == (409, "not_retryable")


async def test_of_simultaneous_retries_exactly_one_is_accepted(world: World) -> None:
    accepted = await world.deploy()
    await world.fail(await world.claim())
    path = world.operation(accepted["operation"]["id"], "retry")
    answers = await asyncio.gather(*(world.boss.post(path) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409, 409, 409]


async def test_a_failed_teardown_can_be_retried_until_it_is_done(world: World) -> None:
    instance = await world.running()
    asked = await world.decommission(instance["id"])
    await world.fail(await world.claim())
    assert (await world.instance(instance["id"]))["state"] == "deleting"
    again = await world.boss.ok(world.operation(asked["operation"]["id"], "retry"))
    assert again["operation"]["kind"] == "decommission"
    await world.torn_down(await world.claim())
    assert (await world.instance(instance["id"]))["state"] == "deleted"


async def test_a_deploy_is_complete_only_when_every_member_is_ready(world: World) -> None:
    accepted = await world.deploy()
    claim = await world.claim()
    one_ready = [{"member_id": claim["instance"]["members"][0]["id"], "state": "ready"}]
    before = dump(world.platform)
    body = {"claim_epoch": 1, "members": one_ready}
    refused = await world.controller.post(world.operation(claim["operation"]["id"], "complete"), body)
    assert (refused.status_code, refused.json()["code"]) == (422, "members_not_ready")
    assert dump(world.platform) == before
    await world.complete(claim)
    assert (await world.instance(accepted["instance"]["id"]))["state"] == "running"


async def test_a_member_of_another_instance_cannot_be_reported(world: World) -> None:
    other = await world.running(world.allocations[1], "other")
    await world.deploy()
    claim = await world.claim()
    before = dump(world.platform)
    body = {"claim_epoch": 1, "members": [{"member_id": other["members"][0]["id"], "state": "failed"}]}
    refused = await world.controller.post(world.operation(claim["operation"]["id"], "complete"), body)
    assert (refused.status_code, refused.json()["code"]) == (422, "member_unknown")
    assert dump(world.platform) == before


@pytest.mark.parametrize("evidence", [None, {}, {"alloc_other": CLEAN}])
async def test_a_teardown_needs_evidence_for_each_machine(world: World, evidence: dict | None) -> None:
    instance = await world.running()
    await world.decommission(instance["id"])
    claim = await world.claim()
    before = dump(world.platform)
    body = {"claim_epoch": claim["claim_epoch"], "evidence": evidence}
    refused = await world.controller.post(world.operation(claim["operation"]["id"], "complete"), body)
    assert (refused.status_code, refused.json()["code"]) == (422, "teardown_evidence_missing")
    assert dump(world.platform) == before


async def test_access_is_granted_only_to_the_machines_of_the_claimed_work(world: World) -> None:
    await world.deploy()
    claim = await world.claim()
    before = dump(world.platform)
    for allocation in (world.allocations[1], world.blue_allocation, "alloc_unknown"):
        body = {"claim_epoch": 1, "allocation_id": allocation, "ssh_public_key": HOST_KEY}
        refused = await world.controller.post(world.operation(claim["operation"]["id"], "access-grants"), body)
        assert (refused.status_code, refused.json()["code"]) == (404, "allocation_not_of_operation")
    assert dump(world.platform) == before


async def test_progress_is_seen_by_people_and_its_percentage_never_goes_back(world: World) -> None:
    accepted = await world.deploy()
    claim = await world.claim()
    seen = []
    for step in (1, 3, 2):
        await world.progress(claim, step)
        seen.append((await world.boss.get(world.operation(accepted["operation"]["id"]))).json()["progress"])
    assert [one["step"] for one in seen] == [1, 3, 2]
    assert [one["percent"] for one in seen] == [20, 60, 60]
    instance = await world.instance(accepted["instance"]["id"])
    assert instance["health"] == {"status": "progressing", "sentence": "Step 2"}


async def test_tenants_take_turns_however_many_operations_one_of_them_has_waiting(world: World) -> None:
    """Three of another tenant wait first; then one of this tenant comes, and is the second to be claimed."""
    first = [
        (await world.deploy(one, f"first-{n}"))["operation"]["id"] for n, one in enumerate(await world.more_machines(3))
    ]
    with world.platform.db.engine.begin() as tx:
        tx.exec_driver_sql("update operations set tenant_id = 'ten_another'")
    late = (await world.deploy(world.allocations[0], "late"))["operation"]["id"]
    claimed: list[str] = []
    while (claim := await world.claim(holding=claimed)) is not None:
        claimed.append(claim["operation"]["id"])
    assert claimed == [first[0], late, first[1], first[2]]


async def test_one_claim_call_serves_all_that_the_caller_may_work_on(world: World) -> None:
    """Its own project, and one where the key is lent to it; nothing where it is not, or not any more."""
    own = (await world.deploy())["operation"]["id"]
    other = await world.boss.ok(f"/v1/projects/{world.blue}/instances", world.deploy_body(world.blue_allocation))
    body: dict[str, Any] = {"app_slug": "echo", "holder": "controller-a"}
    claimed = await world.controller.ok("/v1/operations/claim", body)
    assert claimed["operation"]["id"] == own
    body["holding"] = [own]
    assert await world.controller.ok("/v1/operations/claim", body) is None
    lent = {
        "grantee_id": world.controller_id,
        "permissions": ["apps.operation.work"],
        "expires_in_s": 600,
        "reason": "help",
    }
    lent = await world.boss.ok(f"/v1/projects/{world.blue}/delegations", lent)
    lost = await world.controller.ok("/v1/operations/claim", body)
    assert lost["operation"]["id"] == other["operation"]["id"]
    path = f"/v1/operations/{lost['operation']['id']}"
    epoch = {"claim_epoch": lost["claim_epoch"]}
    assert (await world.controller.ok(f"{path}/heartbeat", epoch))["lease_expires_in_s"] == 30
    await world.boss.ok(f"/v1/projects/{world.blue}/delegations/{lent['id']}/revoke")
    check_problem(await world.controller.post(f"{path}/heartbeat", epoch), 404, "not_found")
    body["holding"] = [own]
    assert await world.controller.ok("/v1/operations/claim", body) is None
