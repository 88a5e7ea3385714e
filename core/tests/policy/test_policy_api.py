"""Policies through the API: who sets them, in which state, what they refuse, and that the answer is the evaluator's."""

import random
from typing import Any

import pytest
from gpuaas_core.policy.evaluate import FIELDS, judge
from gpuaas_core.policy.reads import overlays_for
from gpuaas_core.tenancy.reads import project_scope
from joserfc.jwk import OKPKey
from sqlalchemy import text

from core.tests.support import policy_worlds
from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import Api, World, apply_trust, enrol_body, machine_token
from core.tests.support.store_rows import dump, rows

NEW = {"If-None-Match": "*"}
ECHO = "/v1/apps/echo/versions"


def _path(world: World, level: str, name: str = "house-rules") -> str:
    places = {"platform": "", "tenant": f"/tenants/{world.tenant}", "project": f"/projects/{world.red}"}
    return f"/v1{places[level]}/policies/{name}"


def _by(world: World, level: str) -> Api:
    return world.admin if level == "platform" else world.boss


async def _set(world: World, level: str, rules: Any, name: str = "house-rules", **more: Any) -> dict[str, Any]:
    body = {"rules": rules} | more
    answer = await _by(world, level).call("PUT", _path(world, level, name), json=body, headers=dict(NEW))
    assert answer.status_code == 200, answer.text
    assert answer.headers["etag"] == f'"{answer.json()["etag"]}"'
    return answer.json()


async def _explain(world: World, field: str, value: str, **more: str) -> dict[str, Any]:
    params = {"field": field, "value": value} | more
    answer = await world.viewer.get(f"/v1/projects/{world.red}/policy/explain", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _plan(world: World, **more: Any) -> Any:
    body = world.deploy_body(world.allocations[0], validate_only=True, **more)
    return await world.boss.post(f"/v1/projects/{world.red}/instances", body)


async def _refused(world: World, field: str) -> dict[str, Any]:
    """Plan and deploy refuse alike, and the deploy leaves only its refusal in the audit trail."""
    planned = await _plan(world)
    before = dump(world.platform, without={"sessions", "audit", "event_heads"})
    answer = await world.boss.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0]))
    assert (answer.status_code, answer.json()["code"]) == (403, "policy_denied"), answer.text
    assert planned.json()["detail"] == answer.json()["detail"]
    assert answer.json()["policy"]["field"] == field
    assert dump(world.platform, without={"sessions", "audit", "event_heads"}) == before
    told = {"id": answer.json()["correlation_id"]}
    (entry,) = rows(world.platform, "select outcome, reason from audit where correlation_id = :id", **told)
    assert entry == {"outcome": "denied", "reason": answer.json()["detail"]}
    return answer.json()


@pytest.mark.parametrize("level", ["platform", "tenant", "project"])
async def test_a_policy_is_made_read_changed_listed_and_removed(world: World, level: str) -> None:
    by, path = _by(world, level), _path(world, level)
    made = await _set(world, level, {"regions": {"deny": ["mars"]}}, reason="Too far.")
    assert (made["rules"], made["reason"], made["readable"]) == ({"regions": {"deny": ["mars"]}}, "Too far.", True)
    read = await by.get(path)
    assert (read.json(), read.headers["etag"]) == (made, f'"{made["etag"]}"')
    match = {"If-Match": f'"{made["etag"]}"'}
    changed = await by.call("PUT", path, json={"rules": {"skus": {"only": ["a100"]}}}, headers=dict(match))
    assert changed.json()["rules"] == {"skus": {"only": ["a100"]}}
    assert changed.json()["etag"] != made["etag"]
    assert (await by.get(path.rpartition("/")[0])).json()["items"] == [changed.json()]
    stale = await by.call("DELETE", path, headers=dict(match))
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    gone = await by.call("DELETE", path, headers={"If-Match": changed.headers["etag"]})
    assert gone.json() == changed.json()
    assert (await by.get(path)).status_code == 404
    kinds = [
        one["type"]
        for one in rows(world.platform, "select type from events where type like 'policy.%' order by sequence")
    ]
    assert kinds == [f"policy.{level}.set", f"policy.{level}.set", f"policy.{level}.removed"]
    audited = rows(world.platform, "select permission from audit where permission like 'policy.%' order by sequence")
    assert [one["permission"].rsplit(".", 1)[1] for one in audited] == ["set", "set", "remove"]


async def test_a_change_needs_the_state_it_was_seen_in(world: World) -> None:
    path = _path(world, "tenant")
    missing = await world.boss.call("PUT", path, json={})
    assert (missing.status_code, missing.json()["code"]) == (428, "precondition_required")
    absent = await world.boss.call("PUT", path, json={}, headers={"If-Match": '"pol_1.1"'})
    assert absent.status_code == 412
    made = await _set(world, "tenant", {})
    for wrong in ({"If-None-Match": "*"}, {"If-Match": '"pol_1.1"'}, {"If-Match": f'W/"{made["etag"]}"'}):
        assert (await world.boss.call("PUT", path, json={}, headers=dict(wrong))).status_code == 412
    assert (await world.boss.call("DELETE", path)).status_code == 428
    await world.boss.call("DELETE", path, headers={"If-Match": f'"{made["etag"]}"'})
    again = await _set(world, "tenant", {})
    assert again["etag"] != made["etag"], "a policy created again is not the one that was removed"


async def test_a_lost_answer_is_told_again_to_the_same_key(world: World) -> None:
    headers = NEW | {"Idempotency-Key": "the-same-key-of-16-and-more"}
    first = await world.boss.call("PUT", _path(world, "tenant"), json={}, headers=dict(headers))
    again = await world.boss.call("PUT", _path(world, "tenant"), json={}, headers=dict(headers))
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize(
    "body",
    [
        {"rules": {"planets": {"deny": ["mars"]}}},
        {"rules": {"regions": {}}},
        {"rules": {"regions": {"deny": ["Mars"]}}},
        {"rules": {"regions": {"deny": ["*"]}}},
        {"rules": {"operating_modes": {"only": ["as_you_like"]}}},
        {"rules": {"regions": ["mars"]}},
        {"enables": {"platform_managed": ["echo"]}},
    ],
    ids=str,
)
async def test_what_is_no_rule_is_not_kept(world: World, body: Any) -> None:
    refused = await world.boss.call("PUT", _path(world, "tenant"), json=body, headers=dict(NEW))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("level", ["platform", "tenant", "project"])
@pytest.mark.parametrize(
    ("field", "value"),
    [("apps", "echo"), ("runtime_backends", "bare_metal"), ("regions", "default"), ("skus", "unspecified")],
)
async def test_a_deploy_is_refused_by_a_policy_of_any_level(world: World, level: str, field: str, value: str) -> None:
    await _set(world, level, {field: {"deny": [value]}}, reason="Not this year.")
    problem = await _refused(world, field)
    assert "Not this year" in problem["detail"]
    assert "house-rules" in problem["detail"]
    assert problem["policy"]["level"] == level


async def test_what_runs_stays_and_can_be_torn_down_under_a_policy_that_denies_it(world: World) -> None:
    running = await world.running()
    await _set(world, "platform", {"apps": {"only": []}, "regions": {"only": []}, "skus": {"only": []}})
    assert (await world.instance(running["id"]))["state"] == "running"
    await world.decommission(running["id"])
    assert (await world.torn_down(await world.claim()))["status"] == "succeeded"


async def test_the_sources_a_version_fetches_from_must_each_be_allowed(world: World) -> None:
    manifest = MANIFEST | {"version": "2.0.0", "artifact_sources": ["registry-a", "registry-b"]}
    await world.admin.ok(ECHO, {"version": "2.0.0", "manifest": manifest})
    await world.admin.ok(f"{ECHO}/2.0.0/publish")
    world.platform.clock.forward(1)  # type: ignore[attr-defined] - the tests' own clock
    await _set(world, "tenant", {"artifact_sources": {"only": ["registry-a"]}})
    refused = await _plan(world, version="2.0.0")
    assert "'registry-b'" in refused.json()["detail"]
    assert (await _plan(world, version="1.0.0")).status_code == 200


async def test_a_lower_level_cannot_open_what_a_higher_one_closed(world: World) -> None:
    await _set(world, "platform", {"regions": {"deny": ["default"]}})
    await _set(world, "tenant", {"regions": {"only": ["default"]}})
    await _set(world, "project", {"regions": {"only": ["default"]}})
    problem = await _refused(world, "regions")
    assert problem["policy"]["level"] == "platform"


@pytest.mark.parametrize("broken", ["", "{", "null", "[]", '{"planets": {}}', '{"regions": {"deny": "x"}}', "NaN"])
async def test_a_row_that_cannot_be_read_refuses_until_it_is_mended(world: World, broken: str) -> None:
    made = await _set(world, "tenant", {"regions": {"deny": ["mars"]}})
    spoil = text("update policies set rules = :broken")
    world.platform.db.write_now(lambda tx: tx.execute(spoil, {"broken": broken}))
    problem = await _refused(world, "apps")
    assert "unreadable rules" in problem["detail"]
    shown = (await world.boss.get(_path(world, "tenant"))).json()
    assert (shown["readable"], shown["rules"]) == (False, None)
    match = {"If-Match": f'"{made["etag"]}"'}
    assert (await world.boss.call("PUT", _path(world, "tenant"), json={}, headers=match)).status_code == 200
    assert (await _plan(world)).status_code == 200


async def test_platform_managed_is_refused_until_the_platform_enables_the_app_for_it(world: World) -> None:
    refused = await _plan(world, operating_mode="platform_managed")
    assert (refused.status_code, refused.json()["code"]) == (422, "operating_mode_refused")
    assert refused.json()["detail"] == "No platform policy enables platform_managed for the app 'echo'."
    await _set(world, "platform", {}, enables={"platform_managed": ["echo"]})
    still = await _plan(world, operating_mode="platform_managed")
    assert "does not support" in still.json()["detail"]
    modes = {
        "operating_modes": ["tenant_dedicated", "platform_managed"],
        "control_plane_scopes": ["project", "platform"],
    }
    await world.admin.ok(ECHO, {"version": "2.0.0", "manifest": MANIFEST | {"version": "2.0.0"} | modes})
    await world.admin.ok(f"{ECHO}/2.0.0/publish")
    accepted = await world.deploy(version="2.0.0", operating_mode="platform_managed")
    found = accepted["instance"]
    assert (found["operating_mode"], found["control_plane_scope"]) == ("platform_managed", "platform")
    ruling = await _explain(world, "operating_modes", "platform_managed", app_slug="echo")
    assert ruling["allowed"]
    await _set(world, "project", {"operating_modes": {"deny": ["platform_managed"]}})
    second = {"name": "second", "placement_intent": {"head": [world.allocations[1]]}}
    again = await _plan(world, version="2.0.0", operating_mode="platform_managed", **second)
    assert again.json()["code"] == "operating_mode_refused"


async def _machine(world: World, name: str, **where: str) -> tuple[str, Api]:
    invited = await world.boss.ok(f"/v1/tenants/{world.tenant}/enrolments", {"node_name": name} | where)
    key = OKPKey.generate_key("Ed25519")
    node = (await world.api.ok("/v1/enrol", enrol_body(invited["token"], name, key)))["node_id"]
    machine = await machine_token(world.api, key, node, world.now())
    await apply_trust(node, machine)
    return node, machine


async def test_a_machine_is_held_only_where_policy_allows_its_region_and_sku(world: World) -> None:
    node, machine = await _machine(world, "far-away", region="eu-north", sku="h100-8x")
    shown = (await world.boss.get(f"/v1/nodes/{node}")).json()
    assert (shown["region"], shown["sku"]) == ("eu-north", "h100-8x")
    old = (await world.boss.get(f"/v1/nodes/{world.nodes[0]}")).json()
    assert (old["region"], old["sku"]) == ("default", "unspecified")
    path = f"/v1/projects/{world.red}/allocations"
    first = await _set(world, "tenant", {"regions": {"deny": ["eu-north"]}})
    for rules, field in (({"regions": {"deny": ["eu-north"]}}, "regions"), ({"skus": {"only": ["a100"]}}, "skus")):
        match = {"If-Match": f'"{first["etag"]}"'}
        first = (await world.boss.call("PUT", _path(world, "tenant"), json={"rules": rules}, headers=match)).json()
        refused = await world.boss.post(path, {"node_id": node})
        assert (refused.status_code, refused.json()["code"]) == (403, "policy_denied")
        assert refused.json()["policy"]["field"] == field
        assert "far-away" in refused.json()["detail"]
    await world.boss.call("DELETE", _path(world, "tenant"), headers={"If-Match": f'"{first["etag"]}"'})
    held = await world.boss.ok(path, {"node_id": node})
    assert (held["region"], held["sku"]) == ("eu-north", "h100-8x")
    await apply_trust(node, machine)
    await _set(world, "project", {"regions": {"only": ["default"]}})
    answer = await world.boss.post(f"/v1/projects/{world.red}/instances", world.deploy_body(held["id"]))
    assert answer.json()["detail"].startswith("echo cannot be placed on 'far-away': the region 'eu-north'")


async def test_the_effective_policy_says_where_each_value_was_narrowed(world: World) -> None:
    top = await _set(world, "platform", {"regions": {"deny": ["mars"]}})
    mine = await _set(world, "tenant", {"regions": {"only": ["eu-west", "mars"]}})
    answer = await world.viewer.get(f"/v1/projects/{world.red}/policy/effective")
    fields = {one["field"]: one for one in answer.json()["fields"]}
    assert fields.keys() == FIELDS.keys()
    regions = fields["regions"]
    assert (regions["only"], regions["denied"]) == (["eu-west"], ["mars"])
    rulings = {one["value"]: one for one in regions["values"]}
    assert (rulings["mars"]["allowed"], rulings["mars"]["level"], rulings["mars"]["matched"]) == (
        False,
        "platform",
        [top["id"]],
    )
    assert (rulings["eu-west"]["allowed"], rulings["eu-west"]["matched"]) == (True, [mine["id"]])
    assert not regions["others"]["allowed"]
    assert fields["skus"]["only"] is None
    assert fields["skus"]["others"]["allowed"]


@pytest.mark.parametrize("seed", range(12))
async def test_the_apis_answer_is_the_evaluators(world: World, seed: int) -> None:
    """Random policies at every level, a few rows broken, written past the API; every field asked through it."""
    dice = random.Random(seed)
    places = {"platform": "*", "tenant": world.tenant, "project": world.red, "entitlement": f"{world.red}/echo"}
    made = [policy_worlds.overlay(dice, n, dice.choice(list(FIELDS)), broken=0.05) for n in range(dice.randrange(1, 6))]
    insert = text(
        "insert into policies (id, scope_kind, scope_id, name, rules, enables, reason, revision, updated_by, created_at, updated_at)"
        " values (:id, :kind, :scope, :id, :rules, :enables, :reason, 1, 'usr_1', 1, 1)"
    )
    values = [
        {
            "id": one.id,
            "kind": one.place[0],
            "scope": places[one.place[0]],
            "rules": policy_worlds.written(one.rules),
            "enables": None if one.enables is None else policy_worlds.written(one.enables),
            "reason": one.reason,
        }
        for one in made
    ]
    world.platform.db.write_now(lambda tx: tx.execute(insert, values))
    stored = world.platform.db.read_now(lambda tx: overlays_for(tx, project_scope(tx, world.red), "echo"))
    assert {one.id for one in stored} == {one.id for one in made}
    for field in FIELDS:
        for value in dice.sample(policy_worlds.values_of(field), 3):
            told = await _explain(world, field, value, **({} if field == "operating_modes" else {"app_slug": "echo"}))
            relevant = [one for one in stored if field != "operating_modes" or one.place[0] != "entitlement"]
            ruling = judge(relevant, field, value)
            assert (told["allowed"], told["reason"], tuple(told["matched"])) == (
                ruling.allowed,
                ruling.reason,
                ruling.matched,
            )
