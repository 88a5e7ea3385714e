"""Stop, start, restart, new inputs, other versions: one operation each, offered by the app, shown with reasons."""

import asyncio
import copy
from typing import Any

import pytest
from gpuaas_core.instances import views
from gpuaas_core.kit.wire import ActionView

from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import CLEAN, World
from core.tests.support.store_rows import dump, rows


def check_problem(answer: Any, status: int, code: str) -> Any:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return answer.json()


def actions(view: Any) -> dict[str, Any]:
    return {one["action"]: one for one in view["available_actions"]}


async def publish(world: World, version: str, **more: Any) -> None:
    manifest = copy.deepcopy(MANIFEST) | {"version": version} | more
    await world.admin.ok("/v1/apps/echo/versions", {"version": version, "manifest": manifest})
    await world.admin.ok(f"/v1/apps/echo/versions/{version}/publish")


@pytest.mark.parametrize(
    ("verb", "on_the_way", "after"),
    [("stop", "stopping", "stopped"), ("restart", "starting", "running"), ("rotate-keys", "updating", "running")],
)
async def test_a_running_instance_is_stopped_restarted_or_given_new_keys_by_one_operation(
    world: World, verb: str, on_the_way: str, after: str
) -> None:
    instance = await world.running()
    accepted = await world.boss.ok(world.of(instance, verb), {"reason": "a pause"})
    assert (accepted["operation"]["kind"], accepted["operation"]["params"]) == (
        verb.replace("-", "_"),
        {"reason": "a pause"},
    )
    assert accepted["instance"]["state"] == on_the_way
    claim = await world.claim()
    assert claim["operation"]["id"] == accepted["operation"]["id"]
    await world.done(claim)
    assert (await world.instance(instance["id"]))["state"] == after


async def test_a_stopped_instance_starts_again(world: World) -> None:
    instance = await world.running()
    await world.boss.ok(world.of(instance, "stop"))
    await world.done(await world.claim())
    check_problem(await world.boss.post(world.of(instance, "stop")), 409, "wrong_state")
    await world.boss.ok(world.of(instance, "start"))
    await world.done(await world.claim())
    assert (await world.instance(instance["id"]))["state"] == "running"


async def test_the_refusal_of_a_second_operation_names_the_one_under_way(world: World) -> None:
    instance = await world.running()
    accepted = await world.boss.ok(world.of(instance, "restart"))
    refused = await world.boss.post(world.of(instance, "restart"))
    assert refused.status_code == 409
    shown = actions(await world.instance(instance["id"]))
    assert not shown["restart"]["allowed"]
    assert not shown["retry"]["allowed"]
    assert accepted["operation"]["id"] in str(refused.json()) or "starting" in refused.json()["detail"]


async def test_what_an_app_does_not_declare_is_refused_and_shown_with_the_reason(world: World) -> None:
    await publish(world, "1.0.1", actions=[])
    instance = await world.running()
    assert instance["version"] == "1.0.1"
    shown = actions(instance)
    for verb in ("stop", "restart", "upgrade", "rollback"):
        body = {"version": "1.0.0"} if verb == "upgrade" else {}
        refused = check_problem(await world.boss.post(world.of(instance, verb), body), 409, "action_not_supported")
        assert "does not offer" in refused["detail"]
        assert (shown[verb]["allowed"], shown[verb]["reason"]) == (False, refused["detail"])
    assert shown["decommission"] == {"action": "decommission", "allowed": True, "reason": ""}


async def test_an_action_of_another_topology_is_refused_in_the_apps_own_words(world: World) -> None:
    instance = await world.running()
    body = {"component_key": "worker", "allocation_ids": [world.allocations[1]]}
    refused = check_problem(await world.boss.post(world.of(instance, "members"), body), 409, "action_not_supported")
    assert refused["detail"] == "On one machine there is nothing to add or take away."
    assert actions(instance)["add_worker"]["reason"] == refused["detail"]


async def test_new_inputs_are_a_new_generation_once_the_caller_has_seen_the_old_one(world: World) -> None:
    instance = await world.running()
    seen = await world.boss.get(world.of(instance))
    tag = seen.headers["etag"]
    assert tag == seen.json()["etag"]
    body = {"inputs": {"greeting": "servus"}}
    check_problem(await world.boss.post(world.of(instance, "update"), body), 428, "precondition_required")
    refused = await world.boss.post(world.of(instance, "update"), body, headers={"If-Match": '"old"'})
    assert check_problem(refused, 412, "precondition_failed")["current_etag"] == tag
    accepted = await world.boss.ok(world.of(instance, "update"), body, headers={"If-Match": tag})
    assert (accepted["operation"]["kind"], accepted["instance"]["state"]) == ("reconfigure", "updating")
    assert (accepted["instance"]["generation"], accepted["instance"]["observed_generation"]) == (2, 1)
    claim = await world.claim()
    assert claim["instance"]["inputs"] == {"greeting": "servus"}
    await world.done(claim)
    assert (await world.instance(instance["id"]))["observed_generation"] == 2


async def test_a_lost_answer_to_an_update_is_repeated_and_not_refused(world: World) -> None:
    instance = await world.running()
    words = {"headers": {"If-Match": instance["etag"]}, "key": "the-same-key-again"}
    body = {"inputs": {"greeting": "moin"}}
    first = await world.boss.post(world.of(instance, "update"), body, **copy.deepcopy(words))
    again = await world.boss.post(world.of(instance, "update"), body, **copy.deepcopy(words))
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["operation"]["id"] == first.json()["operation"]["id"]


async def test_of_many_updates_based_on_one_etag_exactly_one_wins(world: World) -> None:
    instance = await world.running()
    path, tag = world.of(instance, "update"), instance["etag"]
    tries = [world.boss.post(path, {"inputs": {"greeting": str(n)}}, headers={"If-Match": tag}) for n in range(6)]
    answers = await asyncio.gather(*tries)
    assert sorted(answer.status_code for answer in answers) == [202] + [412] * 5
    assert (await world.instance(instance["id"]))["generation"] == 2


async def test_inputs_that_do_not_fit_change_nothing(world: World) -> None:
    instance = await world.running()
    before = dump(world.platform)
    body, tag = {"inputs": {"greeting": 7}}, {"If-Match": instance["etag"]}
    check_problem(await world.boss.post(world.of(instance, "update"), body, headers=tag), 422, "inputs_invalid")
    assert dump(world.platform) == before


@pytest.mark.parametrize("generation", [1, 3])
async def test_an_observation_of_another_generation_never_makes_it_ready(world: World, generation: int) -> None:
    instance = await world.running()
    body, tag = {"inputs": {"greeting": "hi"}}, {"If-Match": instance["etag"]}
    await world.boss.ok(world.of(instance, "update"), body, headers=tag)
    claim = await world.claim()
    ready = {"type": "Ready", "status": "True", "observed_generation": generation}
    for verb, more in (("complete", {}), ("progress", {"phase": "p", "step": 1, "of": 2, "message": "m"})):
        said = {"claim_epoch": 1, "conditions": [ready]} | more
        path = world.operation(claim["operation"]["id"], verb)
        check_problem(await world.controller.post(path, said), 422, "generation_outdated")
    said = {"claim_epoch": 1, "observed_generation": generation}
    path = world.operation(claim["operation"]["id"], "complete")
    check_problem(await world.controller.post(path, said), 422, "generation_outdated")
    await world.done(claim, conditions=[ready | {"observed_generation": 2}])
    (condition,) = (await world.instance(instance["id"]))["conditions"]
    assert (condition["observed_generation"], condition["status"]) == (2, "True")


async def test_an_older_generation_may_be_called_not_ready_and_stuck_is_the_platforms_word(world: World) -> None:
    await world.deploy()
    claim = await world.claim()
    await world.progress(claim, 1, conditions=[{"type": "Ready", "status": "False", "reason": "Starting"}])
    await world.progress(claim, 2, conditions=[{"type": "Disk", "status": "Unknown"}])
    shown = {one["type"]: one["status"] for one in (await world.instance(claim["instance"]["id"]))["conditions"]}
    assert shown == {"Ready": "False", "Disk": "Unknown"}
    body = {"claim_epoch": 1, "conditions": [{"type": "Stuck", "status": "False"}]}
    path = world.operation(claim["operation"]["id"], "complete")
    check_problem(await world.controller.post(path, body), 422, "condition_reserved")


async def test_an_upgrade_changes_the_version_only_when_it_succeeds_and_can_be_taken_back(world: World) -> None:
    instance = await world.running()
    await publish(world, "1.1.0")
    check_problem(await world.boss.post(world.of(instance, "rollback")), 409, "nothing_to_roll_back")
    asked = (await world.boss.ok(world.of(instance, "upgrade"), {"version": "1.1.0"}))["operation"]
    assert (asked["from_version"], asked["to_version"], asked["target"]["version"]) == ("1.0.0", "1.1.0", "1.1.0")
    claim = await world.claim()
    assert (claim["instance"]["version"], claim["instance"]["state"]) == ("1.0.0", "upgrading")
    await world.done(claim)
    upgraded = await world.instance(instance["id"])
    assert (upgraded["version"], upgraded["previous_version"], upgraded["state"]) == ("1.1.0", "1.0.0", "running")
    back = (await world.boss.ok(world.of(instance, "rollback")))["operation"]
    assert (back["from_version"], back["to_version"]) == ("1.1.0", "1.0.0")
    await world.done(await world.claim())
    assert (await world.instance(instance["id"]))["version"] == "1.0.0"


async def test_an_upgrade_that_failed_can_be_retried_or_rolled_back(world: World) -> None:
    instance = await world.running()
    await publish(world, "1.1.0")
    await world.boss.ok(world.of(instance, "upgrade"), {"version": "1.1.0"})
    await world.fail(await world.claim())
    broken = await world.instance(instance["id"])
    assert (broken["version"], broken["state"]) == ("1.0.0", "failed")
    assert actions(broken)["retry"]["allowed"]
    assert actions(broken)["rollback"]["allowed"]
    retried = await world.boss.ok(world.operation(broken["last_operation_id"], "retry"))
    assert (retried["operation"]["to_version"], retried["instance"]["state"]) == ("1.1.0", "upgrading")
    await world.fail(await world.claim())
    back = (await world.boss.ok(world.of(instance, "rollback")))["operation"]
    assert (back["from_version"], back["to_version"]) == ("1.1.0", "1.0.0")
    await world.done(await world.claim())
    mended = await world.instance(instance["id"])
    assert (mended["version"], mended["state"], mended["previous_version"]) == ("1.0.0", "running", None)


@pytest.mark.parametrize(
    ("version", "status", "code"), [("1.0.0", 422, "version_unchanged"), ("9.9.9", 422, "version_not_published")]
)
async def test_only_another_published_version_can_be_upgraded_to(
    world: World, version: str, status: int, code: str
) -> None:
    instance = await world.running()
    check_problem(await world.boss.post(world.of(instance, "upgrade"), {"version": version}), status, code)


async def test_a_canceled_stop_leaves_the_instance_running_and_can_be_asked_for_again(world: World) -> None:
    instance = await world.running()
    stop = (await world.boss.ok(world.of(instance, "stop")))["operation"]
    await world.boss.ok(world.operation(stop["id"], "cancel"))
    assert (await world.instance(instance["id"]))["state"] == "running"
    again = await world.boss.ok(world.operation(stop["id"], "retry"))
    assert again["instance"]["state"] == "stopping"
    claim = await world.claim()
    await world.boss.ok(world.operation(again["operation"]["id"], "cancel"))
    await world.fail(claim, "canceled")
    assert (await world.instance(instance["id"]))["state"] == "running"


async def test_the_requested_modes_are_shown_beside_the_effective_ones(world: World) -> None:
    accepted = await world.deploy(operating_mode="tenant_dedicated", control_plane_scope="tenant")
    shown = accepted["instance"]
    assert shown["requested"] == {"operating_mode": "tenant_dedicated", "control_plane_scope": "tenant"}
    effective = ("operating_mode", "control_plane_scope", "runtime_backend", "tenant_boundary_mode")
    assert [shown[name] for name in effective] == ["tenant_dedicated", "project", "bare_metal", "tenant_isolated"]


@pytest.mark.parametrize("hint", [{"operating_mode": "platform_managed"}, {"control_plane_scope": "platform"}])
async def test_a_platform_managed_instance_is_refused_until_policy_allows_it(world: World, hint: Any) -> None:
    body = world.deploy_body(world.allocations[0]) | hint
    answer = await world.boss.post(f"/v1/projects/{world.red}/instances", body)
    check_problem(answer, 422, "operating_mode_refused")


async def test_a_decommission_can_be_planned(world: World) -> None:
    instance = await world.running()
    before = dump(world.platform, without={"sessions"})
    answer = await world.boss.post(world.of(instance, "decommission"), {"validate_only": True})
    assert answer.status_code == 200
    plan = answer.json()["plan"]
    assert plan["summary"] == "Tear 'first' down on 1 machine."
    assert plan["hosts"][0]["components"] == ["head", "worker"]
    assert dump(world.platform, without={"sessions"}) == before


async def test_etags_are_on_instances_members_and_operations_and_change_with_them(world: World) -> None:
    accepted = await world.deploy()
    member = accepted["instance"]["members"][0]
    paths = [
        world.of(accepted["instance"]),
        world.of(accepted["instance"], "members", member["id"]),
        world.operation(accepted["operation"]["id"]),
    ]
    before = [(await world.boss.get(path)).headers["etag"] for path in paths]
    assert [(await world.boss.get(path)).headers["etag"] for path in paths] == before
    await world.complete(await world.claim())
    after = [(await world.boss.get(path)).headers["etag"] for path in paths]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert all(tag.startswith('"') for tag in after), "a strong tag"


async def test_teardown_evidence_is_needed_for_members_reported_removed_too(world: World) -> None:
    instance = await world.running()
    await world.decommission(instance["id"])
    claim = await world.claim()
    removed = [{"member_id": m["id"], "state": "removed"} for m in claim["instance"]["members"]]
    await world.progress(claim, 1, members=removed)
    body = {"claim_epoch": 1, "members": removed}
    path = world.operation(claim["operation"]["id"], "complete")
    check_problem(await world.controller.post(path, body), 422, "teardown_evidence_missing")
    await world.complete(claim, members=removed, evidence={world.allocations[0]: CLEAN})
    assert (await world.instance(instance["id"]))["state"] == "deleted"
    assert rows(world.platform, "select * from allocation_holds") == []


async def test_remembered_actions_equal_those_that_are_computed(world: World) -> None:
    """They are remembered for all instances with the same facts, also while an operation is under way."""
    made = [await world.running(world.allocations[number], f"run-{number}") for number in range(2)]
    for verb in ("stop", "decommission"):
        for one in made:
            accepted = await world.boss.ok(world.of(one, verb))
            remembered = [accepted["instance"], await world.instance(one["id"])]
            views._KNOWN.clear()  # pyright: ignore[reportPrivateUsage]
            assert [_reasons(view) for view in remembered] == [_reasons(await world.instance(one["id"]))] * 2


def test_remembered_actions_name_the_operation_under_way() -> None:
    reasons = ("The stop op_1 is under way.", "The member is pending.", "")
    known = views.Possible([ActionView(action="x", allowed=not reason, reason=reason) for reason in reasons], "op_1")
    assert [one.reason for one in known.under("op_2").views] == ["The stop op_2 is under way.", *reasons[1:]]
    assert known.under("op_1") is known


def _reasons(view: Any) -> list[tuple[str, bool, str]]:
    things = [view, *view["members"]]
    return [(one["action"], one["allowed"], one["reason"]) for thing in things for one in thing["available_actions"]]
