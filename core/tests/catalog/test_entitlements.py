"""Entitlements: enabled, narrowed, running out, disabled; what runs stays."""

import json
from typing import Any

from gpuaas_core.background.housekeeping import tidy

from core.tests.capacity.test_capacity import healthy
from core.tests.support.fixtures import World
from core.tests.support.store_rows import rows


async def _entitle(world: World, **more: Any) -> dict[str, Any]:
    return await world.boss.ok(f"/v1/projects/{world.red}/entitlements", {"app_slug": "echo"} | more)


async def _entry(world: World) -> dict[str, Any]:
    (entry,) = (await world.viewer.get(f"/v1/projects/{world.red}/catalog")).json()["items"]
    return entry


async def _plan(world: World, project: str | None = None, allocation: str | None = None) -> Any:
    body = world.deploy_body(allocation or world.allocations[0], "planned", validate_only=True)
    return await world.boss.post(f"/v1/projects/{project or world.red}/instances", body)


def _events(world: World, verb: str) -> list[dict[str, Any]]:
    found = rows(world.platform, f"select * from events where type = 'catalog.entitlement.{verb}' order by sequence")
    return [one | {"data": one["data"] if isinstance(one["data"], dict) else json.loads(one["data"])} for one in found]


async def test_an_overlay_on_an_entitlement_narrows_one_app_in_one_project(world: World) -> None:
    made = await _entitle(world, overlay={"regions": {"only": ["eu-west"]}}, reason="Licensed for the EU.")
    assert made["overlay"]["rules"] == {"regions": {"only": ["eu-west"]}}
    refused = await _plan(world)
    assert refused.json()["policy"]["level"] == "entitlement"
    assert "Licensed for the EU" in refused.json()["detail"]
    assert (await _plan(world, world.blue, world.blue_allocation)).status_code == 200
    effective = f"/v1/projects/{world.red}/policy/effective"
    assert made["overlay"]["id"] in (await world.viewer.get(effective, params={"app_slug": "echo"})).json()["policies"]
    assert (await world.viewer.get(effective)).json()["policies"] == []


async def test_entitling_again_keeps_the_overlay_until_another_is_given(world: World) -> None:
    await _entitle(world, overlay={"regions": {"only": ["eu-west"]}})
    assert (await _entitle(world))["overlay"]["rules"] == {"regions": {"only": ["eu-west"]}}
    assert (await _plan(world)).status_code == 403
    assert (await _entitle(world, overlay={}))["overlay"]["rules"] == {}
    assert (await _plan(world)).status_code == 200


async def test_an_overlay_cannot_open_what_a_policy_denies(world: World) -> None:
    path = f"/v1/tenants/{world.tenant}/policies/no-default"
    deny = {"rules": {"regions": {"deny": ["default"]}}}
    assert (await world.boss.call("PUT", path, json=deny, headers={"If-None-Match": "*"})).status_code == 200
    await _entitle(world, overlay={"regions": {"only": ["default"]}})
    assert (await _plan(world)).json()["policy"]["level"] == "tenant"


async def test_an_entitlement_ends_by_itself_and_says_so_once(world: World) -> None:
    made = await _entitle(world, expires_in_s=3600)
    assert (made["active"], made["expires_at"] is not None) == (True, True)
    assert (await _plan(world)).status_code == 200
    world.platform.clock.forward(3601)  # type: ignore[attr-defined] - the tests' own clock
    refused = await _plan(world)
    assert (refused.status_code, refused.json()["code"]) == (403, "app_not_entitled")
    assert "expired" in refused.json()["detail"]
    entry = await _entry(world)
    assert (entry["entitled"], entry["reason"]) == (False, "the project's entitlement has expired")
    for _ in range(2):
        tidy(world.platform, world.platform.clock())
    (event,) = _events(world, "expired")
    assert (event["project_id"], event["data"]["app_slug"]) == (world.red, "echo")
    assert healthy(world), "what ends by itself is on record, too"
    (listed,) = (await world.viewer.get(f"/v1/projects/{world.red}/entitlements")).json()["items"]
    assert (listed["enabled"], listed["active"]) == (False, False)
    assert (await _entitle(world))["expires_at"] is None
    assert (await _plan(world)).status_code == 200


async def test_disabling_says_what_keeps_running(world: World) -> None:
    running = await world.running()
    gone = await world.boss.ok(f"/v1/projects/{world.red}/entitlements/echo/disable")
    assert (gone["enabled"], gone["keeps_running"]) == (False, [running["name"]])
    assert (await _plan(world)).json()["code"] == "app_not_entitled"
    assert (await world.instance(running["id"]))["state"] == "running"
    await world.decommission(running["id"])
    await world.torn_down(await world.claim())
    again = await world.boss.ok(f"/v1/projects/{world.red}/entitlements/echo/disable")
    assert again["keeps_running"] == []
    assert [one["project_id"] for one in _events(world, "disabled")] == [world.red, world.red]


async def test_enabling_tells_of_its_overlay_and_end(world: World) -> None:
    await _entitle(world, overlay={"skus": {"deny": ["a100"]}}, expires_in_s=600)
    told = _events(world, "enabled")[-1]["data"]
    assert told["overlay"] == {"skus": {"deny": ["a100"]}}
    assert 0 < told["expires_at"] - world.platform.clock() <= 600_000
    assert (told["org_id"], told["project_id"]) == (world.tenant, world.red)


async def test_the_catalog_says_in_a_sentence_which_policy_is_in_the_way(world: World) -> None:
    assert (await _entry(world))["reason"] == "ready to deploy"
    rules = {"rules": {"apps": {"deny": ["echo"]}}, "reason": "Not tested yet."}
    path = f"/v1/tenants/{world.tenant}/policies/tested-only"
    await world.boss.call("PUT", path, json=rules, headers={"If-None-Match": "*"})
    entry = await _entry(world)
    assert (entry["entitled"], entry["deployable"]) == (True, False)
    assert entry["reason"] == "the app 'echo' is denied by the tenant policy 'tested-only': Not tested yet"
