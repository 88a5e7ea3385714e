"""A machine named for two components: where the app allows it, by people who said so; who shares cannot leave alone."""

import copy
from typing import Any

import pytest
from gpuaas_core.catalog.manifest import ManifestInvalid, check_manifest

from core.tests.instances.test_instances import actions, check_problem
from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import World


def sharing(version: str = "2.0.0", partner: str = "head") -> dict[str, Any]:
    manifest: dict[str, Any] = copy.deepcopy(MANIFEST) | {"version": version}
    manifest["topologies"][1]["components"]["worker"]["may_share_with"] = partner
    return manifest


async def mixed(world: World) -> Any:
    """A worker beside the head, and one on a machine of its own."""
    manifest = sharing()
    await world.admin.ok("/v1/apps/echo/versions", {"version": "2.0.0", "manifest": manifest})
    await world.admin.ok("/v1/apps/echo/versions/2.0.0/publish")
    first, second = world.allocations[:2]
    body = world.deploy_body(first, "mixed", topology="multi_node")
    body["placement_intent"] = {"head": [first], "worker": [first, second]}
    accepted = await world.boss.ok(f"/v1/projects/{world.red}/instances", body)
    await world.complete(await world.claim())
    return await world.instance(accepted["instance"]["id"])


async def test_a_worker_may_be_beside_the_head_where_the_app_says_so(world: World) -> None:
    instance = await mixed(world)
    first, second = world.allocations[:2]
    placed = [(m["component_key"], m["allocation_id"]) for m in instance["members"]]
    assert sorted(placed) == sorted([("head", first), ("worker", first), ("worker", second)])


async def test_without_that_word_a_machine_is_for_one_component(world: World) -> None:
    body = world.deploy_body(world.allocations[0], "wrong", topology="multi_node")
    body["placement_intent"] |= {"worker": world.allocations[:2]}
    refused = await world.boss.post(f"/v1/projects/{world.red}/instances", body)
    check_problem(refused, 422, "placement_invalid")


async def test_who_shares_a_machine_cannot_leave_it_alone_but_be_drained(world: World) -> None:
    instance = await mixed(world)
    workers = {m["allocation_id"]: m for m in instance["members"] if m["component_key"] == "worker"}
    beside, apart = (workers[one] for one in world.allocations[:2])
    path = world.of(instance, "members", beside["id"])
    spare = (await world.more_machines(1))[0]
    said = check_problem(await world.boss.post(f"{path}/remove"), 409, "machine_shared")
    check_problem(await world.boss.post(f"{path}/replace", {"allocation_id": spare}), 409, "machine_shared")
    shown = actions((await world.boss.get(path)).json())
    assert (shown["remove"]["allowed"], shown["remove"]["reason"]) == (False, said["detail"])
    assert shown["drain"]["allowed"]
    assert actions((await world.boss.get(world.of(instance, "members", apart["id"]))).json())["remove"]["allowed"]


async def test_a_decommission_gives_one_certificate_for_the_shared_machine(world: World) -> None:
    instance = await mixed(world)
    await world.decommission(instance["id"])
    await world.torn_down(await world.claim())
    listed = (await world.boss.get(f"/v1/projects/{world.red}/departure-certificates")).json()["items"]
    shared = next(one for one in listed if one["allocation_id"] == world.allocations[0])
    assert len(listed) == 2
    assert [m["component_key"] for m in shared["statement"]["members"]] == ["head", "worker"]


def test_a_manifest_cannot_share_with_a_component_it_does_not_have() -> None:
    check_manifest(sharing(), app_slug="echo", version="2.0.0")
    with pytest.raises(ManifestInvalid):
        check_manifest(sharing(partner="tail"), app_slug="echo", version="2.0.0")


async def test_each_member_on_a_shared_machine_is_told_the_name_of_its_own_machine(world: World) -> None:
    await world.admin.ok("/v1/apps/echo/versions", {"version": "2.0.0", "manifest": sharing()})
    await world.admin.ok("/v1/apps/echo/versions/2.0.0/publish")
    names = set()
    for name, allocation in zip(("one", "two"), world.allocations, strict=False):
        body = world.deploy_body(allocation, name, topology="multi_node")
        body["placement_intent"] = {"head": [allocation], "worker": [allocation]}
        instance = (await world.boss.ok(f"/v1/projects/{world.red}/instances", body))["instance"]
        await world.complete(await world.claim())
        (worker,) = [m for m in (await world.instance(instance["id"]))["members"] if m["component_key"] == "worker"]
        reason = actions(worker)["remove"]["reason"]
        assert repr(worker["node_name"]) in reason
        names.add(worker["node_name"])
    assert len(names) == 2
