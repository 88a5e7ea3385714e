"""What changing an input does is said before it is done, and what an app refuses never becomes an operation."""

import copy
from typing import Any

import pytest
from gpuaas_core.catalog.manifest import InputsInvalid, ManifestInvalid, check_inputs, check_manifest
from gpuaas_core.instances import plans

from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import World
from core.tests.support.store_rows import dump

FORM = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "greeting": {"type": "string", "maxLength": 20, "default": "hello"},
        "name": {"type": "string"},
        "loud": {"type": "integer"},
        "knobs": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "additionalProperties": {"not": {}, "x-message": "There is no knob called {name}."},
        },
        "plain": {},
    },
}
DECLARED = {
    "/greeting": {"effect": "pushed"},
    "/name": {"effect": "refused", "sentence": "A name is for life."},
    "/loud": {"effect": "needs_drain"},
    "/knobs": {"effect": "pushed"},
    "/knobs/b": {"effect": "needs_restart", "sentence": "The echo is restarted."},
}
MORE = {"inputs_schema": FORM, "input_effects": DECLARED}
APP: dict[str, Any] = copy.deepcopy(MANIFEST) | MORE


def check_problem(answer: Any, status: int, code: str) -> Any:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return answer.json()


def told(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    return {one.field: one.effect for one in plans.changes(APP, old, new)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, {}),
        ({}, {"greeting": "hello"}, {}),
        ({"greeting": "hello"}, {}, {}),
        ({}, {"greeting": "hi"}, {"/greeting": "pushed"}),
        ({"loud": 1}, {"loud": True}, {"/loud": "needs_drain"}),
        ({"knobs": {"a": 1, "b": 1}}, {"knobs": {"a": 2, "b": 1}}, {"/knobs/a": "pushed"}),
        ({}, {"knobs": {"a": 2, "b": 1}}, {"/knobs/a": "pushed", "/knobs/b": "needs_restart"}),
        ({"knobs": {"b": 1}}, {}, {"/knobs/b": "needs_restart"}),
        ({"knobs": {"b": 1}}, {"knobs": 7}, {"/knobs": "pushed"}),
        ({"plain": {"x/y": 1}}, {"plain": {"x/y": 2}}, {"/plain": "unknown"}),
        ({"name": "a"}, {"greeting": "hi"}, {"/greeting": "pushed", "/name": "refused"}),
    ],
)
def test_each_changed_input_has_its_effect(old: Any, new: Any, expected: Any) -> None:
    assert told(old, new) == expected


def test_an_effect_that_names_no_input_is_refused_with_the_manifest() -> None:
    for pointer in ("/nothing", "/knobs/c", "/greeting2/x"):
        wrong = APP | {"input_effects": {pointer: {"effect": "pushed"}}}
        with pytest.raises(ManifestInvalid):
            check_manifest(wrong, app_slug="echo", version="1.0.0")
    check_manifest(APP, app_slug="echo", version="1.0.0")


def test_a_form_can_say_in_its_own_words_why_something_is_refused() -> None:
    with pytest.raises(InputsInvalid) as refused:
        check_inputs(APP, {"knobs": {"z": 1}})
    assert refused.value.errors == [{"pointer": "/inputs/knobs/z", "message": "There is no knob called z."}]


@pytest.fixture
async def running(world: World) -> Any:
    manifest = APP | {"version": "2.0.0"}
    await world.admin.ok("/v1/apps/echo/versions", {"version": "2.0.0", "manifest": manifest})
    await world.admin.ok("/v1/apps/echo/versions/2.0.0/publish")
    accepted = await world.deploy(version="2.0.0", inputs={"name": "ann", "knobs": {"a": 1}})
    await world.complete(await world.claim())
    return await world.instance(accepted["instance"]["id"])


async def test_an_update_is_planned_field_by_field_and_nothing_is_written(world: World, running: Any) -> None:
    before = dump(world.platform)
    wanted = {"name": "bob", "greeting": "hi", "knobs": {"a": 1, "b": 2}}
    answer = await world.boss.post(world.of(running, "update"), {"inputs": wanted, "validate_only": True})
    assert answer.status_code == 200
    plan = answer.json()["plan"]
    rows = [(one["field"], one["old"], one["new"], one["effect"], one["sentence"]) for one in plan["changes"]]
    assert rows == [
        ("/greeting", "hello", "hi", "pushed", "Applied while everything goes on running."),
        ("/knobs/b", None, 2, "needs_restart", "The echo is restarted."),
        ("/name", "ann", "bob", "refused", "A name is for life."),
    ]
    assert "would be refused" in plan["summary"]
    assert (plan["inputs"], len(plan["hosts"]), plan["warnings"]) == (wanted, 1, [])
    assert dump(world.platform) == before


async def test_a_plan_looks_at_the_inputs_and_at_the_state_it_was_made_for(world: World, running: Any) -> None:
    path, body = world.of(running, "update"), {"inputs": {"surprise": 1}, "validate_only": True}
    check_problem(await world.boss.post(path, body), 422, "inputs_invalid")
    body = {"inputs": {}, "validate_only": True}
    check_problem(await world.boss.post(path, body, headers={"If-Match": '"old"'}), 412, "precondition_failed")


async def test_a_refused_change_never_becomes_an_operation(world: World, running: Any) -> None:
    tag = {"If-Match": running["etag"]}
    answer = await world.boss.post(world.of(running, "update"), {"inputs": {"name": "bob"}}, headers=tag)
    problem = check_problem(answer, 422, "change_refused")
    assert {"pointer": "/inputs/name", "message": "A name is for life."} in problem["errors"]
    now = await world.instance(running["id"])
    assert (now["state"], now["generation"], now["inputs"]) == ("running", 1, running["inputs"])
    assert now["last_operation_id"] == running["last_operation_id"]


async def test_an_update_that_changed_nothing_leaves_the_instance_running_and_says_so(
    world: World, running: Any
) -> None:
    path, wanted = world.of(running, "update"), running["inputs"] | {"greeting": "no"}
    await world.boss.ok(path, {"inputs": wanted}, headers={"If-Match": running["etag"]})
    ended = await world.fail(await world.claim(), undone=True)
    now = await world.instance(running["id"])
    assert (ended["status"], now["state"], now["health"]["status"]) == ("failed", "running", "degraded")
    assert (now["generation"], now["observed_generation"]) == (2, 1)
    plan = (await world.boss.ok(path, {"inputs": running["inputs"], "validate_only": True}))["plan"]
    assert "not applied" in plan["warnings"][0]
    back = await world.boss.ok(path, {"inputs": running["inputs"]}, headers={"If-Match": now["etag"]})
    assert back["instance"]["state"] == "updating"
    await world.done(await world.claim())
    assert (await world.instance(running["id"]))["observed_generation"] == 3


async def test_a_failed_update_that_is_undone_can_be_tried_again(world: World, running: Any) -> None:
    path = world.of(running, "update")
    await world.boss.ok(path, {"inputs": running["inputs"]}, headers={"If-Match": running["etag"]})
    ended = await world.fail(await world.claim(), undone=True)
    again = await world.boss.ok(world.operation(ended["id"], "retry"))
    assert again["instance"]["state"] == "updating"


async def test_a_deploy_cannot_be_undone_by_saying_so(world: World) -> None:
    made = await world.deploy()
    await world.fail(await world.claim(), undone=True)
    assert (await world.instance(made["instance"]["id"]))["state"] == "failed"


@pytest.mark.parametrize("verb", ["stop", "restart", "rotate-keys"])
async def test_an_action_without_a_reconciler_never_turns_a_running_instance_failed(
    world: World, running: Any, verb: str
) -> None:
    await world.boss.ok(world.of(running, verb))
    ended = await world.fail(await world.claim(), undone=True)
    now = await world.instance(running["id"])
    assert (ended["status"], now["state"]) == ("failed", "running")
