"""Departure certificates: written with the end of what left a machine, refused where the evidence contradicts itself."""

import hashlib
import json
from typing import Any

import pytest

from core.tests.instances.test_instances import check_problem
from core.tests.instances.test_members import add
from core.tests.support.fixtures import HOST_KEY, World, add_node, apply_trust, hold
from core.tests.support.store_rows import dump

CLEAN = {"host": "node-1", "checks": [{"check": "key", "ok": True, "detail": "the key is gone"}], "mo": 1.5, "ü": "é"}
SHORT = {"checks": [{"check": "port", "ok": True}]}


async def certificates(world: World, who: Any = None, **wanted: str) -> list[Any]:
    query = "&".join(f"{name}={value}" for name, value in wanted.items())
    return (await (who or world.boss).get(f"/v1/projects/{world.red}/departure-certificates?{query}")).json()["items"]


async def leaving(world: World) -> tuple[Any, Any]:
    """A running instance on two machines, and the claim of its decommission."""
    instance = await world.several(world.allocations[1])
    await world.decommission(instance["id"])
    return instance, await world.claim()


async def test_a_decommission_leaves_one_certificate_per_machine(world: World) -> None:
    instance, claim = await leaving(world)
    first, second = world.allocations[:2]
    await world.complete(claim, members=[], evidence={first: CLEAN, second: SHORT})
    found = {one["allocation_id"]: one for one in await certificates(world, instance_id=instance["id"])}
    assert found.keys() == {first, second}
    said = found[first]["statement"]
    assert (said["instance"]["name"], said["instance"]["version"]) == ("wide", instance["version"])
    assert [m["component_key"] for m in said["members"]] == ["head"]
    assert said["host"]["name"] == next(m["node_name"] for m in instance["members"] if m["allocation_id"] == first)
    me = (await world.boss.get("/v1/whoami")).json()["principal"]["id"]
    assert (said["operation"]["kind"], said["operation"]["requested_by"]) == ("decommission", me)
    assert said["checks"] == CLEAN["checks"]
    assert said["evidence"] == CLEAN
    assert found[second]["statement"]["checks"] == [{"check": "port", "ok": True, "detail": ""}]
    told = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1000")).json()["items"]
    told = [one for one in told if one["type"] == "apps.departure.certified"]
    assert {one["data"]["digest"] for one in told} == {one["digest"] for one in found.values()}


async def test_anybody_can_compute_the_digest_from_what_the_api_answers(world: World) -> None:
    _, claim = await leaving(world)
    await world.complete(claim, members=[], evidence=dict.fromkeys(world.allocations[:2], CLEAN))
    for one in await certificates(world):
        text = json.dumps(one["statement"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert one["digest"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


async def test_evidence_that_says_something_is_left_ends_nothing_and_names_it(world: World) -> None:
    _, claim = await leaving(world)
    bad = {"checks": [*CLEAN["checks"], {"check": "services", "ok": False, "detail": "exporter.service runs"}]}
    path = world.operation(claim["operation"]["id"], "complete")
    body = {"claim_epoch": 1, "members": [], "evidence": {world.allocations[0]: CLEAN, world.allocations[1]: bad}}
    before = dump(world.platform)
    refused = check_problem(await world.controller.post(path, body), 422, "teardown_not_clean")
    assert "services: exporter.service runs" in refused["detail"]
    assert {name: rows for name, rows in dump(world.platform).items() if name != "audit"} == {
        name: rows for name, rows in before.items() if name != "audit"
    }
    await world.complete(claim, members=[], evidence=dict.fromkeys(world.allocations[:2], CLEAN))
    assert len(await certificates(world)) == 2


UNVERIFIABLE = [
    ({}, "has no `checks`"),
    ({"clean": True}, "has no `checks`"),
    ("clean", "has no `checks`"),
    ({"checks": []}, "has no `checks`"),
    ({"checks": ["clean"]}, "`checks[0].check`"),
    ({"checks": [CLEAN["checks"][0], {"ok": True}]}, "`checks[1].check`"),
    ({"checks": [{"check": "port"}]}, "'port'"),
    ({"checks": [{"check": "port", "ok": "yes"}]}, "`checks[0].ok` must be true or false"),
]


@pytest.mark.parametrize(("entry", "problem"), UNVERIFIABLE)
async def test_evidence_that_cannot_be_verified_is_rejected_and_the_claim_stays(
    world: World, entry: Any, problem: str
) -> None:
    _, claim = await leaving(world)
    path = world.operation(claim["operation"]["id"], "complete")
    body = {"claim_epoch": 1, "members": [], "evidence": {world.allocations[0]: CLEAN, world.allocations[1]: entry}}
    rejected = check_problem(await world.controller.post(path, body), 422, "teardown_evidence_unverifiable")
    assert world.allocations[1] in rejected["detail"]
    assert problem in rejected["detail"]
    assert "`checks`" in rejected["way_out"]
    assert not await certificates(world)
    await world.complete(claim, members=[], evidence=dict.fromkeys(world.allocations[:2], CLEAN))
    assert len(await certificates(world)) == 2


@pytest.mark.parametrize("verb", ["remove", "replace"])
async def test_a_member_leaves_its_machine_only_with_evidence_that_can_be_verified(world: World, verb: str) -> None:
    instance = await world.several(world.allocations[1])
    old = next(m for m in instance["members"] if m["component_key"] == "worker")
    spare = await world.more_machines(1)
    if verb == "remove":
        await add(world, instance, *spare)
        await world.done(await world.claim())
    body = {"allocation_id": spare[0]} if verb == "replace" else {}
    await world.boss.ok(world.of(instance, "members", old["id"], verb), body)
    claim = await world.claim()
    path = world.operation(claim["operation"]["id"], "complete")
    empty = {"claim_epoch": claim["claim_epoch"], "evidence": {old["allocation_id"]: {}}}
    check_problem(await world.controller.post(path, empty), 422, "teardown_evidence_unverifiable")
    await world.done(claim, evidence={old["allocation_id"]: CLEAN})


async def test_a_removed_and_a_replaced_member_leave_a_certificate_of_their_machine(world: World) -> None:
    instance = await world.several(world.allocations[1])
    old = next(m for m in instance["members"] if m["component_key"] == "worker")
    spare = await world.more_machines(2)
    path = world.of(instance, "members", old["id"], "replace")
    replaced = (await world.boss.ok(path, {"allocation_id": spare[0]}))["operation"]
    await world.done(await world.claim(), evidence={old["allocation_id"]: CLEAN})
    (one,) = await certificates(world, operation_id=replaced["id"])
    assert (one["allocation_id"], one["statement"]["members"][0]["id"]) == (old["allocation_id"], old["id"])
    added = {"component_key": "worker", "allocation_ids": [spare[1]]}
    member = (await world.boss.ok(world.of(instance, "members"), added))["operations"][0]["member_id"]
    await world.done(await world.claim())
    removed = (await world.boss.ok(world.of(instance, "members", member, "remove")))["operation"]
    await world.done(await world.claim(), evidence={spare[1]: CLEAN})
    (one,) = await certificates(world, allocation_id=spare[1])
    assert one["operation_id"] == removed["id"]


async def test_what_was_given_up_has_no_certificate_and_other_projects_see_none(world: World) -> None:
    instance, claim = await leaving(world)
    await world.boss.ok(world.operation(claim["operation"]["id"], "abandon"), {"reason": "the rack burned"})
    assert await certificates(world, instance_id=instance["id"]) == []
    path = f"/v1/projects/{world.red}/departure-certificates"
    check_problem(await world.blue_controller.get(path), 404, "not_found")


async def test_a_certificate_comes_with_every_way_in_taken_back_and_tells_until_the_machine_refuses_them(
    world: World,
) -> None:
    node, machine, _ = await add_node(world, "left-behind")
    allocation = await hold(world, world.red, node, machine)
    instance = (await world.deploy(allocation))["instance"]
    await world.complete(await world.claim())
    await world.decommission(instance["id"])
    claim = await world.claim()
    asked = {"claim_epoch": 1, "allocation_id": allocation, "ssh_public_key": HOST_KEY}
    await world.controller.ok(world.operation(claim["operation"]["id"], "access-grants"), asked)
    await world.complete(claim, members=[], evidence={allocation: CLEAN})

    async def access() -> Any:
        (one,) = await certificates(world, allocation_id=allocation)
        return one["access"]

    assert await access() == {"open_grants": 0, "grants_not_yet_refused": 1}
    await apply_trust(node, machine)
    assert await access() == {"open_grants": 0, "grants_not_yet_refused": 0}
