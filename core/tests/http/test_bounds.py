"""What a request may carry has bounds, and what does not fit is refused in a sentence, before or after who asked."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from gpuaas_core.contract_docs.contracts import all_contracts
from gpuaas_core.kit.wire import PATTERNS

from core.tests.http.test_bad_input import check_problem, check_refused
from core.tests.support.fixtures import World
from core.tests.support.store_rows import dump

pytestmark = pytest.mark.any_store

FLOOD = b'{"name": "' + b"x" * (1024 * 1024) + b'"}'


async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
    """Without a Content-Length: the size shows only while it arrives."""
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("path", ["instances", "allocations/any/release"])
async def test_a_flood_is_refused_before_anybody_is_asked_who_they_are(
    world: World, announced: bool, path: str
) -> None:
    before = dump(world.platform)
    for caller in (world.boss, world.api.as_(None)):
        body: Any = FLOOD if announced else in_pieces(FLOOD)
        headers = {"Content-Type": "application/json"}
        where = f"/v1/projects/{world.red}/{path}"
        answer = await caller.call("POST", where, content=body, headers=headers)
        if caller.token or announced or path == "instances":
            check_problem(answer, 413, "body_too_large")
        else:  # a route that takes no body asks who is there before it reads one
            check_problem(answer, 401, "unauthenticated")
    assert dump(world.platform) == before


async def test_a_mebibyte_itself_is_still_read(world: World) -> None:
    inputs = {"greeting": "x" * (1024 * 1024 - 400)}
    await check_refused(world, world.deploy_body(world.allocations[0], inputs=inputs), 422, "inputs_invalid")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": NaN', "not json"])
async def test_a_stranger_learns_nothing_from_a_broken_body(world: World, text: str) -> None:
    headers = {"Content-Type": "application/json"}
    where = f"/v1/projects/{world.red}/instances"
    answer = await world.api.as_(None).call("POST", where, content=text, headers=headers)
    check_problem(answer, 401, "unauthenticated")
    answer = await world.viewer.call("POST", where, content=text, headers=dict(headers))
    check_problem(answer, 403, "permission_denied")


@pytest.mark.parametrize("key", [None, "short", "with spaces in the key!", "x" * 256])
async def test_a_key_is_needed_wherever_the_contract_asks_for_one(world: World, key: str | None) -> None:
    await world.deploy()
    claim = await world.claim()
    plan = world.deploy_body(world.allocations[1], "second", validate_only=True)
    asked = [
        (world.boss, f"/v1/projects/{world.red}/instances", plan),
        (world.controller, world.operation(claim["operation"]["id"], "heartbeat"), {"claim_epoch": 1}),
        (world.boss, "/v1/sign-out", {}),
    ]
    headers = {"Idempotency-Key": key} if key else {}
    for caller, path, body in asked:
        sent = headers | {"Authorization": f"Bearer {caller.token}"}
        check_problem(await caller.http.post(path, json=body, headers=sent), 400, "idempotency_key_missing")
    assert (await world.boss.get("/v1/whoami")).status_code == 200, "the refused sign-out did nothing"


async def test_only_the_newest_operation_offers_a_retry(world: World) -> None:
    accepted = await world.deploy()
    await world.fail(await world.claim())
    first = accepted["operation"]["id"]
    retry = await _offered(world, first, "retry")
    assert retry["allowed"], retry
    again = (await world.boss.ok(world.operation(first, "retry")))["operation"]["id"]
    retry = await _offered(world, first, "retry")
    assert not retry["allowed"]
    assert again in retry["reason"]
    check_problem(await world.boss.post(world.operation(first, "retry")), 409, "not_retryable")


async def _offered(world: World, operation_id: str, action: str) -> Any:
    view = (await world.boss.get(world.operation(operation_id))).json()
    return next(one for one in view["available_actions"] if one["action"] == action)


async def test_ids_and_inputs_have_bounds(world: World) -> None:
    body = world.deploy_body("a" * 41)
    problem = await check_refused(world, body, 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == "/placement_intent/head/0"
    body = world.deploy_body(world.allocations[0], inputs={"greeting": "é" * 33_000})
    problem = await check_refused(world, body, 422, "inputs_invalid")
    assert problem["errors"] == [
        {"pointer": "/inputs", "message": "66015 bytes as JSON; at most 65536 are allowed"},
    ]


async def test_what_does_not_fit_a_pattern_is_told_in_a_sentence(world: World) -> None:
    problem = await check_refused(world, world.deploy_body(world.allocations[0], "No!"), 422, "invalid_request")
    (error,) = problem["errors"]
    assert error["pointer"] == "/name"
    assert error["message"].startswith("It must be 3 to 40 lower-case letters, digits and dashes, starting with")
    assert problem["detail"] == "1 field is invalid: /name."


def test_every_pattern_a_person_can_meet_has_its_sentence() -> None:
    document = json.loads(all_contracts()["openapi.json"])
    schemas = document["components"]["schemas"].values()
    found = set(re.findall(r'"pattern": "((?:[^"\\]|\\.)*)"', json.dumps(list(schemas))))
    assert found
    assert {json.loads(f'"{one}"') for one in found} <= set(PATTERNS)


@pytest.mark.parametrize("wait", [False, True, "0", 0.5])
async def test_only_a_number_is_a_number(world: World, wait: Any) -> None:
    body = {"app_slug": "echo", "holder": "a", "wait_s": wait}
    path = f"/v1/projects/{world.red}/operations/claim"
    check_problem(await world.controller.post(path, body), 422, "invalid_request")


@pytest.mark.parametrize("word", ["yes", 1, "true"])
async def test_only_yes_or_no_is_yes_or_no(world: World, word: Any) -> None:
    body = world.deploy_body(world.allocations[0], validate_only=word)
    check_problem(await world.boss.post(f"/v1/projects/{world.red}/instances", body), 422, "invalid_request")


async def test_a_plan_counts_its_machines_in_words(world: World) -> None:
    body = world.deploy_body(world.allocations[0], validate_only=True)
    plan = await world.boss.ok(f"/v1/projects/{world.red}/instances", body)
    assert plan["plan"]["summary"].endswith("on 1 machine.")


async def test_projects_come_in_pages(world: World) -> None:
    first = (await world.boss.get("/v1/projects?limit=1")).json()
    assert len(first["items"]) == 1
    rest = (await world.boss.get(f"/v1/projects?cursor={first['next_cursor']}")).json()
    assert rest["next_cursor"] is None
    assert {one["id"] for one in first["items"] + rest["items"]} == {world.red, world.blue}
    assert (await world.boss.get("/v1/projects?cursor=!!")).json()["code"] == "cursor_invalid"
