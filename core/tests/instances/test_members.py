"""Members one by one: added in a batch, drained, replaced, removed with evidence; side by side, never two on one."""

from typing import Any

import pytest

from core.tests.instances.test_instances import actions, check_problem
from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import CLEAN, HOST_KEY, World
from core.tests.support.store_rows import dump, rows


async def wide(world: World) -> tuple[Any, list[str]]:
    """An instance with one worker, and two machines to spare."""
    return await world.several(world.allocations[1]), await world.more_machines(2)


def worker(instance: Any, number: int = 0) -> Any:
    return [m for m in instance["members"] if m["component_key"] == "worker"][number]


async def add(world: World, instance: Any, *allocations: str) -> Any:
    body = {"component_key": "worker", "allocation_ids": list(allocations)}
    return await world.boss.ok(world.of(instance, "members"), body)


def holds(world: World) -> set[str]:
    return {row["allocation_id"] for row in rows(world.platform, "select allocation_id from allocation_holds")}


async def test_members_are_added_in_one_batch_and_their_operations_run_side_by_side(world: World) -> None:
    instance, spare = await wide(world)
    batch = await add(world, instance, *spare)
    assert [one["kind"] for one in batch["operations"]] == ["add_member"] * 2
    assert {one["batch_id"] for one in batch["operations"]} == {batch["batch_id"]}
    assert len({one["member_id"] for one in batch["operations"]}) == 2
    first, second = await world.claim("one"), await world.claim("two")
    assert {first["operation"]["id"], second["operation"]["id"]} == {one["id"] for one in batch["operations"]}
    await world.done(second)
    await world.done(first)
    after = await world.instance(instance["id"])
    assert [(m["ordinal"], m["state"]) for m in after["members"] if m["component_key"] == "worker"] == [
        (0, "ready"),
        (1, "ready"),
        (2, "ready"),
    ]
    assert (after["state"], after["members_total"]) == ("running", 4)
    listed = (await world.boss.get(f"/v1/projects/{world.red}/operations?batch_id={batch['batch_id']}")).json()
    assert {one["status"] for one in listed["items"]} == {"succeeded"}


async def test_a_batch_is_accepted_as_a_whole_or_not_at_all(world: World) -> None:
    instance, spare = await wide(world)
    before = dump(world.platform)
    for wrong, code in ((world.blue_allocation, "allocation_unknown"), (world.allocations[0], "allocation_in_use")):
        body = {"component_key": "worker", "allocation_ids": [*spare, wrong]}
        assert (await world.boss.post(world.of(instance, "members"), body)).json()["code"] == code
    body = {"component_key": "worker", "allocation_ids": [spare[0], spare[0]]}
    check_problem(await world.boss.post(world.of(instance, "members"), body), 422, "placement_invalid")
    body = {"component_key": "head", "allocation_ids": [spare[0]]}
    check_problem(await world.boss.post(world.of(instance, "members"), body), 409, "action_not_supported")
    assert dump(world.platform) == before


async def test_adding_and_removing_can_be_planned(world: World) -> None:
    instance, spare = await wide(world)
    await add(world, instance, spare[0])
    await world.done(await world.claim())
    before = dump(world.platform)
    body = {"component_key": "worker", "allocation_ids": [spare[1]], "validate_only": True}
    plan = (await world.boss.ok(world.of(instance, "members"), body))["plan"]
    assert plan["summary"] == "Add 1 worker to 'wide', one operation each."
    assert [host["allocation_id"] for host in plan["hosts"]] == [spare[1]]
    path = world.of(instance, "members", worker(instance)["id"], "remove")
    plan = (await world.boss.ok(path, {"validate_only": True}))["plan"]
    assert plan["summary"] == "Remove worker/0 of 'wide' from node-1."
    assert dump(world.platform) == before


async def test_a_member_is_drained_and_comes_back(world: World) -> None:
    instance, _ = await wide(world)
    path = world.of(instance, "members", worker(instance)["id"])
    asked = await world.boss.ok(f"{path}/drain", {"reason": "a new fan", "deadline_s": 60})
    assert asked["operation"]["params"] == {"reason": "a new fan", "deadline_s": 60}
    assert (await world.boss.get(path)).json()["state"] == "draining"
    await world.done(await world.claim())
    drained = (await world.boss.get(path)).json()
    assert drained["state"] == "drained"
    assert [name for name, one in actions(drained).items() if one["allowed"]] == ["undrain", "replace"]
    await world.boss.ok(f"{path}/undrain")
    await world.done(await world.claim())
    await world.boss.ok(f"{path}/restart")
    assert (await world.boss.get(path)).json()["state"] == "provisioning"
    await world.done(await world.claim())
    assert (await world.boss.get(path)).json()["state"] == "ready"


@pytest.mark.parametrize("verb", ["drain", "remove", "replace"])
async def test_what_happens_at_a_deadline_is_a_choice_that_reaches_the_app(world: World, verb: str) -> None:
    instance, spare = await wide(world)
    await add(world, instance, spare[0])
    await world.done(await world.claim())
    path = world.of(instance, "members", worker(instance)["id"], verb)
    where = {"allocation_id": spare[1]} if verb == "replace" else {}
    check_problem(await world.boss.post(path, where | {"at_deadline": "requeue"}), 422, "invalid_request")
    wrong = where | {"deadline_s": 60, "at_deadline": "burn"}
    check_problem(await world.boss.post(path, wrong), 422, "invalid_request")
    check_problem(await world.boss.post(path, where | {"deadline_s": -1}), 422, "invalid_request")
    asked = await world.boss.ok(path, where | {"deadline_s": 0, "at_deadline": "requeue"})
    assert asked["operation"]["params"] == {"deadline_s": 0, "at_deadline": "requeue"}
    assert (await world.claim())["operation"]["params"] == {"deadline_s": 0, "at_deadline": "requeue"}


async def test_trying_anyway_is_said_to_the_app_once_and_not_to_later_tries(world: World) -> None:
    instance, spare = await wide(world)
    batch = await add(world, instance, spare[0])
    await world.fail(await world.claim())
    first = (await world.boss.ok(world.operation(batch["operations"][0]["id"], "retry"), {"try_anyway": True}))[
        "operation"
    ]
    assert first["params"] == {"try_anyway": True}
    await world.fail(await world.claim())
    path = world.of(instance, "members", first["member_id"], "retry")
    check_problem(await world.boss.post(path, {"try_anyway": "yes"}), 422, "invalid_request")
    assert (await world.boss.ok(path))["operation"]["params"] == {}
    await world.fail(await world.claim())
    assert (await world.boss.ok(path, {"try_anyway": True}))["operation"]["params"] == {"try_anyway": True}


async def test_a_removed_member_leaves_evidence_frees_its_machine_and_goes_into_history(world: World) -> None:
    instance, spare = await wide(world)
    await add(world, instance, spare[0])
    await world.done(await world.claim())
    gone = worker(instance)
    await world.boss.ok(world.of(instance, "members", gone["id"], "remove"))
    claim = await world.claim()
    path = world.operation(claim["operation"]["id"], "complete")
    removed = {"claim_epoch": 1, "members": [{"member_id": gone["id"], "state": "removed"}]}
    check_problem(await world.controller.post(path, removed), 422, "teardown_evidence_missing")
    await world.done(claim, evidence={gone["allocation_id"]: CLEAN})
    assert gone["allocation_id"] not in holds(world)
    listed = (await world.boss.get(world.of(instance, "members"))).json()["items"]
    assert gone["id"] not in {one["id"] for one in listed}
    past = (await world.boss.get(world.of(instance, "members") + "?history=true")).json()["items"]
    assert [(one["id"], one["state"]) for one in past] == [(gone["id"], "removed")]
    assert (await world.boss.get(world.of(instance, "members", gone["id"]))).json()["state"] == "removed"
    await world.boss.ok(world.of(instance, "restart"))
    grant = {"claim_epoch": 1, "allocation_id": gone["allocation_id"], "ssh_public_key": HOST_KEY}
    again = await world.claim()
    refused = await world.controller.post(world.operation(again["operation"]["id"], "access-grants"), grant)
    check_problem(refused, 404, "allocation_not_of_operation")


async def test_the_last_worker_cannot_be_removed_but_replaced(world: World) -> None:
    instance, spare = await wide(world)
    old = worker(instance)
    path = world.of(instance, "members", old["id"])
    refused = check_problem(await world.boss.post(f"{path}/remove"), 409, "member_needed")
    assert actions((await world.boss.get(path)).json())["remove"]["reason"] == refused["detail"]
    asked = (await world.boss.ok(f"{path}/replace", {"allocation_id": spare[0]}))["operation"]
    assert asked["old_member_id"] == old["id"]
    assert {old["allocation_id"], spare[0]} <= holds(world)
    blocked = check_problem(await world.boss.post(f"{path}/drain"), 409, "operation_live")
    assert blocked["operation_id"] == asked["id"]
    claim = await world.claim()
    refused = await world.controller.post(world.operation(asked["id"], "complete"), {"claim_epoch": 1})
    check_problem(refused, 422, "teardown_evidence_missing")
    await world.done(claim, evidence={old["allocation_id"]: CLEAN})
    fresh = worker(await world.instance(instance["id"]))
    assert (fresh["replaces"], fresh["state"], fresh["allocation_id"]) == (old["id"], "ready", spare[0])
    assert old["allocation_id"] not in holds(world)


async def test_instance_and_member_operations_exclude_each_other_and_name_the_blocker(world: World) -> None:
    instance, spare = await wide(world)
    path = world.of(instance, "members", worker(instance)["id"])
    drain = (await world.boss.ok(f"{path}/drain"))["operation"]
    blocked = check_problem(await world.boss.post(world.of(instance, "stop")), 409, "operation_live")
    assert blocked["operation_id"] == drain["id"]
    blocked = check_problem(
        await world.boss.post(f"{path}/replace", {"allocation_id": spare[0]}), 409, "operation_live"
    )
    assert blocked["operation_id"] == drain["id"]
    await add(world, instance, spare[0])
    for _ in range(2):
        await world.done(await world.claim())
    restart = (await world.boss.ok(world.of(instance, "restart")))["operation"]
    check_problem(await world.boss.post(f"{path}/undrain"), 409, "wrong_state")
    shown = actions((await world.boss.get(path)).json())["undrain"]
    assert (shown["allowed"], "starting" in shown["reason"]) == (False, True)
    assert restart["kind"] == "restart"


async def test_a_failed_member_can_be_retried_removed_or_given_up_and_the_instance_goes_on(world: World) -> None:
    instance, spare = await wide(world)
    await add(world, instance, spare[0])
    await world.fail(await world.claim())
    after = await world.instance(instance["id"])
    broken = worker(after, 1)
    assert (after["state"], broken["state"]) == ("running", "failed")
    path = world.of(instance, "members", broken["id"])
    retried = await world.boss.ok(f"{path}/retry")
    assert retried["operation"]["retry_of"] == broken["last_operation_id"]
    await world.fail(await world.claim())
    removal = await world.boss.ok(f"{path}/remove")
    await world.boss.ok(world.operation(removal["operation"]["id"], "cancel"))
    assert (await world.boss.get(path)).json()["state"] == "failed"
    check_problem(await world.boss.post(f"{path}/tombstone", {}), 422, "invalid_request")
    given_up = await world.boss.ok(f"{path}/tombstone", {"reason": "the machine burned"})
    assert given_up["state"] == "removed"
    assert spare[0] not in holds(world)
    (orphan,) = (await world.boss.get(f"/v1/projects/{world.red}/orphans")).json()["items"]
    assert (orphan["id"], orphan["reason"]) == (given_up["orphan_id"], "the machine burned")


async def test_a_canceled_addition_leaves_no_member_and_no_hold_but_a_failed_one_stays_failed(world: World) -> None:
    instance, spare = await wide(world)
    batch = await add(world, instance, *spare)
    first, second = (one["id"] for one in batch["operations"])
    await world.boss.ok(world.operation(first, "cancel"))
    assert len(holds(world) & set(spare)) == 1
    await world.fail(await world.claim())
    again = (await world.boss.ok(world.operation(second, "retry")))["operation"]
    await world.boss.ok(world.operation(again["id"], "cancel"))
    left = [m for m in (await world.instance(instance["id"]))["members"] if m["ordinal"] > 0]
    assert [m["state"] for m in left] == ["failed"], "the first try may have left something on the machine"
    check_problem(await world.boss.post(world.operation(first, "retry")), 409, "not_retryable")


async def test_work_on_one_member_reports_on_no_other(world: World) -> None:
    instance, spare = await wide(world)
    await add(world, instance, spare[0])
    claim = await world.claim()
    other = worker(instance)
    for state in ("failed", "removed"):
        said = {"claim_epoch": 1, "members": [{"member_id": other["id"], "state": state}]}
        refused = await world.controller.post(world.operation(claim["operation"]["id"], "complete"), said)
        check_problem(refused, 422, "member_unknown")
    await world.progress(claim, 1)
    assert (await world.instance(instance["id"]))["health"]["status"] == "healthy"


async def test_a_decommission_takes_the_place_of_all_member_operations(world: World) -> None:
    instance, spare = await wide(world)
    batch = await add(world, instance, *spare)
    stale = await world.claim()
    await world.decommission(instance["id"])
    for one in batch["operations"]:
        assert (await world.boss.get(world.operation(one["id"]))).json()["status"] == "superseded"
    said = {"claim_epoch": 1}
    path = world.operation(stale["operation"]["id"], "complete")
    check_problem(await world.controller.post(path, said), 409, "stale_claim")
    await world.torn_down(await world.claim())
    assert holds(world) == set()


async def test_members_are_listed_in_pages(world: World) -> None:
    instance, spare = await wide(world)
    await add(world, instance, *spare)
    seen, cursor = [], ""
    for _ in range(10):
        page = (await world.boss.get(world.of(instance, "members") + f"?limit=1{cursor}")).json()
        seen += [one["id"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert len(seen) == len(set(seen)) == 4


async def test_an_instance_is_read_without_its_members_and_still_counts_them(world: World) -> None:
    instance, spare = await wide(world)
    await add(world, instance, *spare)
    whole, lean = [(await world.boss.get(world.of(instance) + more)).json() for more in ("", "?members=0")]
    assert (len(whole["members"]), lean["members"]) == (4, [])
    assert lean["member_counts"] == whole["member_counts"]
    assert sum(one["count"] for one in lean["member_counts"]) == lean["members_total"] == 4
    assert lean["etag"].partition(".")[0] == whole["etag"].partition(".")[0], "an update takes either"
    (listed,) = (await world.boss.get(f"/v1/projects/{world.red}/instances?members=1")).json()["items"]
    assert (len(listed["members"]), listed["member_counts"]) == (1, whole["member_counts"])
    assert (await world.boss.get(world.of(instance) + "?members=201")).status_code == 422


async def test_operations_are_listed_from_either_end(world: World) -> None:
    instance, spare = await wide(world)
    await add(world, instance, *spare)
    asked = f"/v1/projects/{world.red}/operations?instance_id={instance['id']}"
    oldest = [one["id"] for one in (await world.boss.get(asked)).json()["items"]]
    newest, cursor = [], ""
    while cursor is not None:
        page = (await world.boss.get(f"{asked}&newest_first=true&limit=1&cursor={cursor}")).json()
        newest += [one["id"] for one in page["items"]]
        cursor = page["next_cursor"]
    assert len(oldest) > 2
    assert newest == oldest[::-1]


@pytest.mark.parametrize("verb", ["drain", "undrain", "restart", "remove", "retry"])
async def test_a_member_of_another_instance_does_not_exist(world: World, verb: str) -> None:
    instance = await world.running()
    other = await world.running(world.allocations[1], "second")
    path = world.of(instance, "members", other["members"][0]["id"])
    assert (await world.boss.post(f"{path}/{verb}")).status_code == 404
    assert (await world.boss.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("before", "verb", "state"),
    [
        ("ready", "drain", "ready"),
        ("ready", "restart", "ready"),
        ("ready", "remove", "ready"),
        ("drained", "undrain", "drained"),
    ],
)
async def test_a_member_operation_that_changed_nothing_leaves_the_member_as_it_was(
    world: World, before: str, verb: str, state: str
) -> None:
    instance, spare = await wide(world)
    await add(world, instance, spare[0])
    await world.done(await world.claim())
    member = worker(instance)
    path = world.of(instance, "members", member["id"])
    if before == "drained":
        await world.boss.ok(f"{path}/drain")
        await world.done(await world.claim())
    await world.boss.ok(f"{path}/{verb}")
    ended = await world.fail(await world.claim(), undone=True)
    assert ended["status"] == "failed"
    assert (await world.boss.get(path)).json()["state"] == state
    now = await world.instance(instance["id"])
    assert (now["state"], now["health"]) == ("running", instance["health"])
    again = await world.boss.ok(world.operation(ended["id"], "retry"))
    assert again["operation"]["retry_of"] == ended["id"]


@pytest.mark.parametrize("verb", ["add", "replace"])
async def test_a_new_member_that_was_refused_before_anything_changed_is_not_left_behind(
    world: World, verb: str
) -> None:
    instance, spare = await wide(world)
    old = worker(instance)
    if verb == "add":
        await add(world, instance, spare[0])
    else:
        await world.boss.ok(world.of(instance, "members", old["id"], "replace"), {"allocation_id": spare[0]})
    await world.fail(await world.claim(), undone=True)
    now = await world.instance(instance["id"])
    assert now["state"] == "running"
    assert {m["id"]: m["state"] for m in now["members"]} == {m["id"]: "ready" for m in instance["members"]}
    assert spare[0] not in holds(world)


async def test_many_members_are_drained_in_one_batch_and_the_batch_is_canceled_as_one(world: World) -> None:
    """What waits is canceled at once, what a controller holds is asked to stop, what has ended stays as it ended."""
    instance, spare = await wide(world)
    await add(world, instance, *spare)
    await world.done(await world.claim())
    await world.done(await world.claim())
    ids = [m["id"] for m in (await world.instance(instance["id"]))["members"] if m["component_key"] == "worker"]
    batch = await world.boss.ok(world.of(instance, "members", "drain"), {"member_ids": ids, "reason": "repair"})
    assert [one["kind"] for one in batch["operations"]] == ["drain_member"] * 3
    assert {one["batch_id"] for one in batch["operations"]} == {batch["batch_id"]}
    ended, held = await world.claim("one"), await world.claim("two")
    await world.done(ended)
    canceled = await world.boss.ok(f"/v1/projects/{world.red}/batches/{batch['batch_id']}/cancel")
    found = {one["id"]: (one["status"], one["cancel_requested"]) for one in canceled["operations"]}
    (waiting,) = set(found) - {ended["operation"]["id"], held["operation"]["id"]}
    assert found[ended["operation"]["id"]] == ("succeeded", False)
    assert found[held["operation"]["id"]] == ("running", True)
    assert found[waiting] == ("canceled", False)
    await world.fail(held, code="canceled")
    again = await world.boss.post(f"/v1/projects/{world.red}/batches/{batch['batch_id']}/cancel")
    check_problem(again, 409, "not_cancelable")
    states = {m["id"]: m["state"] for m in (await world.instance(instance["id"]))["members"] if m["id"] in ids}
    assert sorted(states.values()) == ["drained", "ready", "ready"]


async def test_a_batch_of_member_operations_is_accepted_as_a_whole_or_not_at_all(world: World) -> None:
    instance, spare = await wide(world)
    await add(world, instance, spare[0])
    await world.done(await world.claim())
    members = (await world.instance(instance["id"]))["members"]
    workers = [m["id"] for m in members if m["component_key"] == "worker"]
    before = dump(world.platform)
    refused = await world.boss.post(world.of(instance, "members", "remove"), {"member_ids": workers})
    check_problem(refused, 409, "member_needed")
    twice = await world.boss.post(world.of(instance, "members", "restart"), {"member_ids": [workers[0]] * 2})
    check_problem(twice, 422, "invalid_request")
    assert dump(world.platform) == before


async def test_retry_is_among_the_actions_of_a_member_whose_operation_failed(world: World) -> None:
    instance, _ = await wide(world)
    one = worker(instance)
    assert not actions(one)["retry"]["allowed"]
    await world.boss.ok(world.of(instance, "members", one["id"], "drain"))
    await world.fail(await world.claim())
    shown = (await world.boss.get(world.of(instance, "members", one["id"]))).json()
    assert actions(shown)["retry"]["allowed"]
    await world.boss.ok(world.of(instance, "members", one["id"], "retry"))
    busy = (await world.boss.get(world.of(instance, "members", one["id"]))).json()
    assert not actions(busy)["retry"]["allowed"]


async def test_an_action_is_offered_and_accepted_only_for_the_components_it_is_valid_for(world: World) -> None:
    components = [dict(one) for one in MANIFEST["components"]]
    head = next(one for one in components if one["key"] == "head")
    head["actions"] = ["restart"]
    manifest = MANIFEST | {"version": "1.1.0", "components": components}
    wrong = manifest | {"components": [head | {"actions": ["fly"]}, *components[1:]]}
    refused = await world.admin.post("/v1/apps/echo/versions", {"version": "1.1.0", "manifest": wrong})
    assert "'fly' is not a member action" in check_problem(refused, 422, "manifest_invalid")["errors"][0]["message"]
    await world.admin.ok("/v1/apps/echo/versions", {"version": "1.1.0", "manifest": manifest})
    await world.admin.ok("/v1/apps/echo/versions/1.1.0/publish")
    instance = await world.several(world.allocations[1])
    by_component = {m["component_key"]: m for m in instance["members"]}
    assert actions(by_component["worker"])["drain"]["allowed"]
    offered = actions(by_component["head"])
    assert offered["restart"]["allowed"]
    assert offered["drain"] == {"action": "drain", "allowed": False, "reason": offered["drain"]["reason"]}
    answer = await world.boss.post(world.of(instance, "members", by_component["head"]["id"], "drain"))
    problem = check_problem(answer, 409, "action_not_supported")
    assert problem["detail"] == offered["drain"]["reason"] == "The app does not offer 'drain' for the component 'head'."
