"""What is wrong is refused with a sentence, a way out and a code, and leaves nothing behind."""

import json
import re
from typing import Any

import pytest
from gpuaas_core.catalog.manifest import InputsInvalid, check_inputs

from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import HOST_KEY, Api, World, applied, apply_trust, enrol_body, hold, invite, join
from core.tests.support.store_rows import dump, one

pytestmark = pytest.mark.any_store

ALLOCATION = "alloc_" + "0" * 26
KEPT = {"sessions", "used_assertions"}


def check_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert body["status"] == status
    assert body["type"] == f"urn:gpuaas:error:{code}"
    assert body["title"]
    assert body["detail"]
    assert body["way_out"]
    assert body["correlation_id"] == answer.headers["x-correlation-id"]
    assert isinstance(body["retryable"], bool)
    assert "Traceback" not in answer.text
    return body


async def check_refused(world: World, body: Any, status: int, code: str) -> dict[str, Any]:
    """The same answer for the deploy and for its plan; nothing written by either."""
    before = dump(world.platform, without=KEPT)
    path = f"/v1/projects/{world.red}/instances"
    problem = check_problem(await world.boss.post(path, body), status, code)
    planned = check_problem(await world.boss.post(path, body | {"validate_only": True}), status, code)
    assert planned["detail"] == problem["detail"]
    assert dump(world.platform, without=KEPT) == before
    return problem


async def test_a_plan_says_what_would_happen_and_writes_nothing(world: World) -> None:
    before = dump(world.platform, without=KEPT)
    body = world.deploy_body(world.allocations[0], validate_only=True)
    answer = await world.boss.post(f"/v1/projects/{world.red}/instances", body)
    assert answer.status_code == 200
    plan = answer.json()["plan"]
    (host,) = plan["hosts"]
    assert (host["allocation_id"], host["node_name"]) == (world.allocations[0], "node-0")
    assert host["components"] == ["head", "worker"]
    assert (host["sku"], host["price_micros_per_hour"], host["currency"]) == ("unspecified", None, None)
    assert dump(world.platform, without=KEPT) == before


async def test_a_plan_says_what_an_hour_of_each_machine_costs(world: World) -> None:
    kind = {"gpu_model": "H100", "gpu_count": 8, "cpus": 96, "memory_mb": 1000, "currency": "EUR"}
    await world.admin.ok("/v1/skus", {"name": "unspecified", "price_micros_per_hour": 23_500_000} | kind)
    body = world.deploy_body(world.allocations[0], validate_only=True)
    (host,) = (await world.boss.ok(f"/v1/projects/{world.red}/instances", body))["plan"]["hosts"]
    assert (host["price_micros_per_hour"], host["currency"]) == (23_500_000, "EUR")


async def test_an_unknown_allocation_and_another_projects_are_the_same_answer(world: World) -> None:
    unknown = await check_refused(world, world.deploy_body(ALLOCATION), 422, "allocation_unknown")
    theirs = await check_refused(world, world.deploy_body(world.blue_allocation), 422, "allocation_unknown")
    assert unknown["detail"].replace(ALLOCATION, world.blue_allocation) == theirs["detail"]


async def test_an_allocation_that_was_given_back_cannot_be_used(world: World) -> None:
    await world.boss.ok(f"/v1/projects/{world.blue}/allocations/{world.blue_allocation}/release")
    mine = await _allocation_in_state(world, "releasing")
    problem = await check_refused(world, world.deploy_body(mine), 409, "allocation_not_active")
    assert "releasing" in problem["detail"]


async def _allocation_in_state(world: World, state: str) -> str:
    node, machine, _ = await join(world, "spare")
    await applied(node, machine, 1)
    if state == "requested":
        return (await world.boss.ok(f"/v1/projects/{world.red}/allocations", {"node_id": node}))["id"]
    mine = await hold(world, world.red, node, machine)
    released = await world.boss.ok(f"/v1/projects/{world.red}/allocations/{mine}/release")
    assert released["state"] == "releasing"
    if state == "released":
        await apply_trust(node, machine)
    return mine


@pytest.mark.parametrize("state", ["requested", "released"])
async def test_an_allocation_the_machine_does_not_trust_cannot_be_used(world: World, state: str) -> None:
    mine = await _allocation_in_state(world, state)
    problem = await check_refused(world, world.deploy_body(mine), 409, "allocation_not_active")
    assert state in problem["detail"]


async def test_an_allocation_in_use_names_its_user_and_cannot_be_released(world: World) -> None:
    await world.deploy(name="early-bird")
    body = world.deploy_body(world.allocations[0], "second")
    problem = await check_refused(world, body, 409, "allocation_in_use")
    assert "early-bird" in problem["detail"]
    path = f"/v1/projects/{world.red}/allocations/{world.allocations[0]}"
    check_problem(await world.boss.post(f"{path}/release"), 409, "allocation_in_use")
    assert (await world.boss.get(path)).json()["in_use_by"]["instance_name"] == "early-bird"


async def test_inputs_are_checked_against_the_apps_own_form(world: World) -> None:
    body = world.deploy_body(world.allocations[0], inputs={"greeting": "x" * 21, "colour": "red"})
    problem = await check_refused(world, body, 422, "inputs_invalid")
    assert {error["pointer"]: error["message"] for error in problem["errors"]} == {
        "/inputs": "Unknown: 'colour'. Known: greeting.",
        "/inputs/greeting": "It may have at most 20 characters.",
    }


@pytest.mark.parametrize(
    ("change", "status", "code", "word"),
    [
        ({"placement_intent": {"tail": [ALLOCATION]}}, 422, "placement_invalid", "tail"),
        ({"placement_intent": {"head": [ALLOCATION, ALLOCATION]}}, 422, "placement_invalid", "twice"),
        ({"placement_intent": {"head": [ALLOCATION, "alloc_b"]}}, 422, "placement_invalid", "exactly 1"),
        ({"placement_intent": {"worker": [ALLOCATION]}}, 422, "placement_invalid", "head"),
        ({"placement_intent": {"head": [ALLOCATION], "worker": ["alloc_b"]}}, 422, "placement_invalid", "same"),
        ({"topology": "multi_node"}, 422, "placement_invalid", "worker"),
        (
            {"topology": "multi_node", "placement_intent": {"head": [ALLOCATION], "worker": [ALLOCATION]}},
            422,
            "placement_invalid",
            "head",
        ),
        ({"topology": "ring"}, 422, "topology_unknown", "single_node"),
        ({"app_slug": "unheard-of"}, 403, "app_not_entitled", "unheard-of"),
        ({"version": "9.9.9"}, 422, "version_not_published", "9.9.9"),
        ({"operating_mode": "platform_managed"}, 422, "operating_mode_refused", "platform_managed"),
    ],
)
async def test_a_deploy_that_does_not_fit_is_refused(
    world: World, change: dict[str, Any], status: int, code: str, word: str
) -> None:
    problem = await check_refused(world, world.deploy_body(world.allocations[0]) | change, status, code)
    assert word in problem["detail"]


async def test_a_project_that_lost_its_entitlement_cannot_deploy(world: World) -> None:
    await world.boss.ok(f"/v1/projects/{world.red}/entitlements/echo/disable")
    await check_refused(world, world.deploy_body(world.allocations[0]), 403, "app_not_entitled")
    (entry,) = (await world.boss.get(f"/v1/projects/{world.red}/catalog")).json()["items"]
    assert (entry["entitled"], bool(entry["reason"])) == (False, True)


async def test_an_unpublished_version_cannot_be_deployed(world: World) -> None:
    manifest = MANIFEST | {"version": "2.0.0"}
    await world.admin.ok("/v1/apps/echo/versions", {"version": "2.0.0", "manifest": manifest})
    body = world.deploy_body(world.allocations[0], version="2.0.0")
    await check_refused(world, body, 422, "version_not_published")
    assert (await world.deploy())["instance"]["version"] == "1.0.0", "the newest published one is the default"


async def test_a_name_is_taken_until_its_instance_is_gone(world: World) -> None:
    instance = await world.running()
    again = world.deploy_body(world.allocations[1])
    await check_refused(world, again, 409, "name_taken")
    await world.decommission(instance["id"])
    await world.torn_down(await world.claim())
    assert (await world.boss.post(f"/v1/projects/{world.red}/instances", again)).status_code == 202


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"name": "Has Capitals"}, "/name"),
        ({"name": "x" * 41}, "/name"),
        ({"name": "line\n"}, "/name"),
        ({"name": "naïve"}, "/name"),
        ({"name": "zero\u0000byte"}, "/name"),
        ({"name": 7}, "/name"),
        ({"name": None}, "/name"),
        ({"name": "x" * 300_000}, "/name"),
        ({"topology": "a'; drop table instances; --"}, "/topology"),
        ({"placement_intent": {}}, "/placement_intent"),
        ({"placement_intent": {"head": []}}, "/placement_intent/head"),
        ({"placement_intent": {"head": "alloc"}}, "/placement_intent/head"),
        ({"placement_intent": {"head": [{"id": 1}]}}, "/placement_intent/head/0"),
        ({"inputs": ["a", "list"]}, "/inputs"),
        ({"operating_mode": "free"}, "/operating_mode"),
        ({"surprise": True}, "/surprise"),
        ({"\u202egnp.exe": True}, "/\u202egnp.exe"),
    ],
)
async def test_a_malformed_field_is_pointed_at(world: World, change: dict[str, Any], pointer: str) -> None:
    problem = await check_refused(world, world.deploy_body(world.allocations[0]) | change, 422, "invalid_request")
    assert pointer in [error["pointer"] for error in problem["errors"]]
    assert len(json.dumps(problem)) < 5_000, "a refusal does not echo the flood"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "not json",
        '{"name": "a", "name": "b"}',
        '{"inputs": {"x": NaN}}',
        '{"inputs": {"x": -Infinity}}',
        '{"inputs": {"x": 1e999}}',
        '{"inputs": {"x": "\\ud800"}}',
        '{"\\udfff": 1}',
        '{"inputs": ' + "[" * 200 + "]" * 200 + "}",
        "[" * 100_000,
        '{"inputs": {"x": ' + "9" * 5_000 + "}}",
        b"\xff\xfe{}",
        b'{"name": "\xc3\x28"}',
    ],
)
@pytest.mark.parametrize("path", ["instances", "allocations/any/release"])
async def test_a_body_that_cannot_be_stored_is_refused(world: World, text: str | bytes, path: str) -> None:
    before = dump(world.platform, without=KEPT)
    headers = {"Content-Type": "application/json"}
    where = f"/v1/projects/{world.red}/{path}"
    answer = await world.boss.call("POST", where, content=text, headers=headers)
    check_problem(answer, 400, "malformed_body")
    assert dump(world.platform, without=KEPT) == before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "nonsense"]
)
async def test_another_content_type_is_not_read_as_json(world: World, kind: str) -> None:
    before = dump(world.platform, without=KEPT)
    text = json.dumps(world.deploy_body(world.allocations[0]))
    headers = {"Content-Type": kind}
    answer = await world.boss.call("POST", f"/v1/projects/{world.red}/instances", content=text, headers=headers)
    assert answer.status_code in (400, 415, 422), answer.text
    assert answer.json()["way_out"]
    assert dump(world.platform, without=KEPT) == before


async def test_a_controllers_detail_is_kept_whatever_letters_it_has(world: World) -> None:
    accepted = await world.deploy()
    claim = await world.claim()
    detail = {"ключ": ["\u0000", "\u202e", "👩‍🔬", "a\u0301", "\ufeff"], "n": 2**53}
    await world.progress(claim, 1, adapter_detail=detail, message="Zażółć 🦆 \u2028")
    operation = (await world.boss.get(world.operation(accepted["operation"]["id"]))).json()
    assert operation["adapter_detail"] == detail
    assert operation["progress"]["message"] == "Zażółć 🦆 \u2028"


@pytest.mark.parametrize(
    "query",
    [
        "instances?limit=0",
        "instances?limit=201",
        "instances?limit=many",
        "instances?cursor=%F0%9F%A6%86",
        "instances?cursor=AAAA%00",
        "instances?cursor=!!!",
        "instances?deleted=perhaps",
        "operations?status=" + "x" * 21,
        "events?after=-1",
        "events?after=ten",
        "events?after=%C2%B2",
        "events?after=%D9%A3",
        "events?after=.",
        "events?after=99999999999999999999999",
        "events?wait_s=31",
        "events/stream?after=abc",
    ],
)
async def test_a_senseless_query_is_refused(world: World, query: str) -> None:
    answer = await world.boss.get(f"/v1/projects/{world.red}/{query}")
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["way_out"]


async def test_the_cursor_of_one_list_is_refused_by_another(world: World) -> None:
    nodes = (await world.boss.get(f"/v1/tenants/{world.tenant}/nodes?limit=1")).json()["next_cursor"]
    projects = (await world.boss.get("/v1/projects?limit=1")).json()["next_cursor"]
    assert nodes
    assert projects
    for path in ("operations", "instances", "allocations"):
        for cursor in (nodes, projects):
            answer = await world.boss.get(f"/v1/projects/{world.red}/{path}?cursor={cursor}")
            assert "issued for another list" in check_problem(answer, 400, "cursor_invalid")["detail"]
    check_problem(await world.boss.get(f"/v1/projects?cursor={nodes}"), 400, "cursor_invalid")
    assert (await world.boss.get(f"/v1/tenants/{world.tenant}/nodes?cursor={nodes}")).status_code == 200


BODIES = {
    '{"name": "a", "name": "b"}': "has the name 'name' twice",
    '{"name": NaN}': "cannot|NaN",
    '{"name": "\\ud800"}': "lone surrogate",
    "[" * 100_000: "cannot be read as JSON|not valid JSON|nested",
    '{"n": ' + "9" * 5000 + "}": "thousands of digits",
    "name=x": "not valid JSON|is not JSON",
}


@pytest.mark.parametrize(("body", "words"), BODIES.items(), ids=range(len(BODIES)))
async def test_what_cannot_be_read_says_why_in_a_sentence(world: World, body: str, words: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await world.boss.call("POST", f"/v1/projects/{world.red}/instances", content=body, headers=headers)
    assert re.search(words, check_problem(answer, 400, "malformed_body")["detail"])


async def test_what_belongs_to_the_platform_is_not_asked_of_a_tenant(world: World) -> None:
    refused = check_problem(await world.boss.get("/v1/tenants"), 403, "permission_denied")
    assert "platform administrators" in refused["way_out"]


async def test_a_field_that_is_not_right_is_told_in_our_words(world: World) -> None:
    answer = await world.boss.post(f"/v1/projects/{world.red}/instances", {"name": 7, "colour": "red", "topology": ""})
    told = {one["pointer"]: one["message"] for one in check_problem(answer, 422, "invalid_request")["errors"]}
    assert told["/app_slug"] == "It is missing."
    assert told["/colour"] == "Unknown field."
    assert told["/name"] == "It must be text."
    answer = await world.boss.post(f"/v1/projects/{world.red}/instances", [])
    (error,) = check_problem(answer, 422, "invalid_request")["errors"]
    assert error["message"] == "It must be a JSON object, sent with the content type application/json."


@pytest.mark.parametrize("after", ["-1", "x", "9" * 18, "9" * 19, "9" * 400])
async def test_a_senseless_audit_position_is_no_accident(world: World, after: str) -> None:
    answer = await world.boss.get(f"/v1/tenants/{world.tenant}/audit?after={after}")
    assert answer.status_code in (200, 422), answer.text


@pytest.mark.parametrize("name", ["%00", "prj_%F0%9F%A6%86", "..%2F..%2Fetc", "%20", "x" * 3000])
async def test_a_strange_id_is_an_absent_one(world: World, name: str) -> None:
    for path in (f"/v1/projects/{name}/instances", f"/v1/projects/{world.red}/instances/{name}", f"/v1/apps/{name}"):
        check_problem(await world.boss.get(path), 404, "not_found")


async def test_unknown_addresses_and_methods_are_problems_too(world: World) -> None:
    check_problem(await world.boss.get("/v2/everything"), 404, "not_found")
    elsewhere = await world.boss.get("/v1/projects/", headers={"Host": "evil.example"})
    check_problem(elsewhere, 404, "not_found")
    assert "location" not in elsewhere.headers, "no redirect, least of all with a token"
    answer = await world.boss.call("DELETE", f"/v1/projects/{world.red}/instances")
    check_problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, POST"


@pytest.mark.parametrize(
    "jwk",
    [
        {},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "OKP", "crv": "Ed25519"},
        {"kty": "OKP", "crv": "Ed25519", "x": "short"},
        {"kty": "OKP", "crv": "Ed25519", "x": 7},
        {"kty": "OKP", "crv": "Ed25519", "x": None},
        {"kty": "OKP", "crv": "X25519", "x": "A" * 43},
        {"kty": "OKP", "crv": "P-256", "x": "A" * 43},
        {"kty": "EC", "crv": "Ed25519", "x": "A" * 43, "y": "A" * 43},
        {"kty": "EC", "crv": "P-256", "x": "A" * 43, "y": "A" * 43},
        {"kty": "EC", "crv": "P-256", "x": ["A"], "y": {}},
        {"kty": ["OKP"], "crv": "Ed25519"},
        {"kty": "OKP", "crv": "Ed25519", "x": "A" * 43, "d": "A" * 43},
    ],
)
async def test_a_key_we_cannot_check_is_not_registered(world: World, jwk: dict[str, Any]) -> None:
    before = dump(world.platform, without=KEPT)
    path = f"/v1/projects/{world.red}/service-accounts"
    check_problem(await world.boss.post(path, {"name": "odd", "public_jwk": jwk}), 422, "public_key_not_accepted")
    assert dump(world.platform, without=KEPT) == before


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==",
        "x" * 999,
        HOST_KEY[:-4],
        "ssh-ed25519 é",
    ],
)
async def test_an_ssh_key_that_is_none_gets_no_certificate(world: World, line: str) -> None:
    await world.deploy()
    claim = await world.claim()
    before = dump(world.platform, without=KEPT)
    body = {"claim_epoch": 1, "allocation_id": world.allocations[0], "ssh_public_key": line}
    path = world.operation(claim["operation"]["id"], "access-grants")
    check_problem(await world.controller.post(path, body), 422, "ssh_key_not_accepted")
    assert dump(world.platform, without=KEPT) == before


@pytest.mark.parametrize(
    "form",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"type": "no-such-type"},
        {"properties": {"a": {"pattern": "("}}},
    ],
)
async def test_a_manifest_whose_form_cannot_be_used_is_not_added(world: World, form: dict[str, Any]) -> None:
    manifest = MANIFEST | {"version": "3.0.0", "inputs_schema": form}
    answer = await world.admin.post("/v1/apps/echo/versions", {"version": "3.0.0", "manifest": manifest})
    problem = check_problem(answer, 422, "manifest_invalid")
    assert problem["errors"][0]["pointer"].startswith("/inputs_schema")
    assert one(world.platform, "select count(*) from app_versions") == 1


async def test_a_form_may_refer_to_its_own_definitions(world: World) -> None:
    form = {"type": "object", "properties": {"n": {"$ref": "#/$defs/small"}}, "$defs": {"small": {"maximum": 3}}}
    manifest = MANIFEST | {"version": "3.0.0", "inputs_schema": form}
    await world.admin.ok("/v1/apps/echo/versions", {"version": "3.0.0", "manifest": manifest})
    await world.admin.ok("/v1/apps/echo/versions/3.0.0/publish")
    body = world.deploy_body(world.allocations[0], inputs={"n": 4})
    problem = await check_refused(world, body, 422, "inputs_invalid")
    assert problem["errors"][0]["pointer"] == "/inputs/n"


async def test_a_machine_with_a_senseless_key_or_token_does_not_join(world: World) -> None:
    token = await invite(world, "spare")
    good = enrol_body(token, "spare", world.machine_key)
    bad: list[tuple[dict[str, Any], int, str]] = [
        ({"token": "é" * 30}, 401, "enrolment_token_invalid"),
        ({"token": "x" * 30}, 401, "enrolment_token_invalid"),
        ({"public_jwk": {"kty": "oct"}}, 422, "public_key_not_accepted"),
        ({"ssh_host_public_key": "ssh-dss AAAA"}, 422, "ssh_key_not_accepted"),
        ({"address": "host.example; reboot"}, 422, "invalid_request"),
        ({"ssh_port": 70_000}, 422, "invalid_request"),
    ]
    before = dump(world.platform, without=KEPT)
    anybody: Api = world.api.as_(None)
    for change, status, code in bad:
        check_problem(await anybody.post("/v1/enrol", good | change), status, code)
    assert dump(world.platform, without=KEPT) == before


FORM: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "additionalProperties": False,
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "colour": {"enum": ["red", "blue"]},
        "names": {"type": "array", "minItems": 1, "items": {"type": ["string", "null"], "minLength": 2}},
        "code": {"type": "string", "pattern": "^a", "x-message": "{name} begins with an a."},
    },
}
SAID = [
    ({}, "/inputs", "'size' is missing."),
    ({"size": "x"}, "/inputs/size", "It must be a whole number."),
    ({"size": 0}, "/inputs/size", "It must be at least 1."),
    ({"size": 10}, "/inputs/size", "It must be at most 9."),
    ({"size": 1, "colour": "pink"}, "/inputs/colour", "It must be one of: red, blue."),
    ({"size": 1, "names": []}, "/inputs/names", "It must have at least 1 items."),
    ({"size": 1, "names": [7]}, "/inputs/names/0", "It must be text or null."),
    ({"size": 1, "code": "b"}, "/inputs/code", "code begins with an a."),
    ({"size": 1, "x": 1}, "/inputs", "Unknown: 'x'. Known: code, colour, names, size."),
]


@pytest.mark.parametrize(("inputs", "pointer", "words"), SAID)
def test_what_does_not_fit_a_form_is_told_in_words(inputs: dict[str, Any], pointer: str, words: str) -> None:
    with pytest.raises(InputsInvalid) as refusal:
        check_inputs({"inputs_schema": FORM}, inputs)
    assert refusal.value.errors == [{"pointer": pointer, "message": words}]
