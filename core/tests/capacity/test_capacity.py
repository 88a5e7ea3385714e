"""Machines over their life, and who gets them: cordon to retire, silence, picking, quotas, leases, the tenant's view."""

import asyncio
from typing import Any

import pytest
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.doctor.examine import examine
from gpuaas_core.doctor.findings import Patient
from joserfc.jwk import OKPKey
from sqlalchemy import text

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import (
    MANIFEST,
    Api,
    MovableClock,
    World,
    add_node,
    add_user,
    apply_trust,
    assertion,
    enrol_body,
    hold,
    poll,
)
from core.tests.support.store_rows import one, rows

SKU = {
    "name": "h100-8x",
    "gpu_model": "H100",
    "gpu_count": 8,
    "cpus": 96,
    "memory_mb": 1_000_000,
    "price_micros_per_hour": 23_500_000,
    "currency": "EUR",
}


def look(world: World) -> None:
    tidy(world.platform, world.platform.clock())


def healthy(world: World) -> bool:
    patient = Patient(world.platform.db.read_now, world.platform.checkpoints, world.platform.clock())
    return not [one for one in examine(patient) if one.violations]


async def node(world: World, node_id: str) -> Any:
    return (await world.boss.get(f"/v1/nodes/{node_id}")).json()


async def decide(world: World, node_id: str, action: str, reason: str = "a test") -> Any:
    return await world.boss.ok(f"/v1/nodes/{node_id}/{action}", {"reason": reason})


async def beat(node_id: str, machine: Api) -> Any:
    facts = {"hostname": "spare", "cpus": 4, "memory_mb": 8000}
    return await poll(node_id, machine, facts=facts)


async def several(world: World, number: int, **more: Any) -> dict[str, Api]:
    """Machines of the tenant that are ready and free, by id."""
    found: dict[str, Api] = {}
    for position in range(number):
        made, machine, _ = await added(world, f"free-{position:02d}", **more)
        found[made] = machine
    return found


async def added(world: World, name: str, **more: Any) -> tuple[str, Api, OKPKey]:
    if not more:
        return await add_node(world, name)
    key, said = OKPKey.generate_key("Ed25519"), {"node_name": name} | more
    token = (await world.boss.ok(f"/v1/tenants/{world.tenant}/enrolments", said))["token"]
    joined = await world.api.ok("/v1/enrol", enrol_body(token, name, key))
    machine = await signed_in(world, key, joined["node_id"])
    await apply_trust(joined["node_id"], machine)
    return joined["node_id"], machine, key


async def signed_in(world: World, key: OKPKey, node_id: str) -> Api:
    answer = await ask_token(world, key, node_id)
    return world.api.as_(answer.json()["access_token"])


async def ask_token(world: World, key: OKPKey, node_id: str) -> Any:
    form = {
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": assertion(key, node_id, now=world.now()),
    }
    return await world.api.http.post("/v1/token", data=form)


async def want(world: World, project: str, **more: Any) -> Any:
    return await world.boss.post(f"/v1/projects/{project}/allocation-requests", {"want": more})


# The life of a machine


async def test_a_cordoned_machine_keeps_what_it_has_and_takes_nothing_new(world: World) -> None:
    free, _, _ = await add_node(world, "free")
    held = world.nodes[0]
    for machine in (free, held):
        assert (await decide(world, machine, "cordon"))["state"] == "cordoned"
    path = f"/v1/projects/{world.red}/allocations"
    check_problem(await world.boss.post(path, {"node_id": free}), 409, "node_not_ready")
    assert (await world.running())["state"] == "running", "what is held stays usable"
    assert (await decide(world, free, "uncordon"))["state"] == "ready"
    assert (await world.boss.post(path, {"node_id": free})).status_code == 201


async def test_what_people_decided_outlives_silence(world: World, clock: MovableClock) -> None:
    made, machine, _ = await add_node(world, "free")
    await decide(world, made, "cordon")
    clock.forward(60)
    look(world)
    assert (await node(world, made))["state"] == "unknown"
    clock.forward(700)
    look(world)
    seen = await node(world, made)
    assert (seen["state"], seen["standing"], seen["standing_reason"]) == ("lost", "cordoned", "a test")
    assert (await decide(world, made, "drain"))["state"] == "lost", "people may decide while it is silent"
    assert (await beat(made, machine)).status_code == 200
    assert (await node(world, made))["state"] == "draining"
    told = rows(world.platform, "select type from events where subject = :node order by sequence", node=made)
    states = [row["type"].rsplit(".", 1)[1] for row in told]
    assert states == ["enrolled", "ready", "cordoned", "unknown", "lost", "draining", "draining"]


async def test_a_machine_is_lost_when_its_allocation_says_so(world: World, clock: MovableClock) -> None:
    """Ten minutes by default; an allocation may be less patient, or more."""
    quick, slow, usual = [await add_node(world, f"free-{number}") for number in range(3)]
    path = f"/v1/projects/{world.red}/allocations"
    await world.boss.ok(path, {"node_id": quick[0], "lost_after_s": 90})
    await world.boss.ok(path, {"node_id": slow[0], "lost_after_s": 3600})
    for seconds, states in ((100, "lost unknown unknown"), (550, "lost unknown lost"), (3600, "lost lost lost")):
        clock.forward(seconds)
        look(world)
        look(world)
        found = [(await node(world, one[0]))["state"] for one in (quick, slow, usual)]
        assert " ".join(found) == states


async def test_a_machine_retires_empty_and_its_identity_is_closed(world: World) -> None:
    made, machine, key = await add_node(world, "free")
    allocation = await hold(world, world.red, made, machine)
    check_problem(await world.boss.post(f"/v1/nodes/{made}/retire", {}), 409, "wrong_state")
    await decide(world, made, "drain")
    refused = await world.boss.post(f"/v1/nodes/{made}/retire", {})
    check_problem(refused, 409, "node_held")
    offered = {one["action"]: one for one in (await node(world, made))["available_actions"]}
    assert offered["retire"] == {"action": "retire", "allowed": False, "reason": refused.json()["detail"]}
    assert offered["uncordon"] == {"action": "uncordon", "allowed": True, "reason": ""}
    assert not offered["cordon"]["allowed"]
    assert offered["cordon"]["reason"].endswith("Possible: readmit, retire, uncordon."), "only what people can ask for"
    await world.boss.ok(f"/v1/projects/{world.red}/allocations/{allocation}/release")
    check_problem(await world.boss.post(f"/v1/nodes/{made}/retire", {}), 409, "node_held")
    await apply_trust(made, machine)
    assert (await decide(world, made, "retire"))["state"] == "retired"
    assert (await beat(made, machine)).status_code == 401
    assert (await ask_token(world, key, made)).status_code in (400, 401)
    for action in ("cordon", "uncordon", "drain", "retire"):
        check_problem(await world.boss.post(f"/v1/nodes/{made}/{action}", {}), 409, "wrong_state")
    again, _, _ = await add_node(world, "free")
    assert again != made, "its name is free for another machine"
    assert healthy(world)


async def test_a_lost_machine_retires_with_what_it_never_gave_back(world: World, clock: MovableClock) -> None:
    made, machine, _ = await add_node(world, "free")
    allocation = await hold(world, world.red, made, machine)
    used = (await world.boss.get(f"/v1/projects/{world.red}/quota")).json()["used_allocations"]
    clock.forward(60)
    look(world)
    check_problem(await world.boss.post(f"/v1/nodes/{made}/retire", {}), 409, "node_held")
    path = f"/v1/projects/{world.red}/allocations/{allocation}"
    assert (await world.boss.ok(f"{path}/release"))["state"] == "releasing"
    await decide(world, made, "retire")
    assert (await world.boss.get(path)).json()["state"] == "released"
    assert (await world.boss.get(f"/v1/projects/{world.red}/quota")).json()["used_allocations"] == used - 1
    assert (await beat(made, machine)).status_code == 401
    assert healthy(world)


async def test_a_token_used_by_a_machine_that_retired_brings_nothing_back(world: World) -> None:
    token = (await world.boss.ok(f"/v1/tenants/{world.tenant}/enrolments", {"node_name": "free"}))["token"]
    body = enrol_body(token, "free", OKPKey.generate_key("Ed25519"))
    joined = await world.api.ok("/v1/enrol", body)
    await decide(world, joined["node_id"], "retire")
    check_problem(await world.api.post("/v1/enrol", body), 401, "enrolment_token_invalid")


# What there is to hold


async def test_regions_and_skus_are_the_platforms_and_everybody_sees_them(world: World) -> None:
    for path, body in (("/v1/skus", SKU), ("/v1/regions", {"name": "eu-west", "title": "Europe, west"})):
        check_problem(await world.boss.post(path, body), 403, "permission_denied")
        await world.admin.ok(path, body)
        check_problem(await world.admin.post(path, body), 409, "name_taken")
        for caller in (world.viewer, world.controller, world.boss):
            (seen,) = (await caller.get(path)).json()["items"]
            assert body.items() <= seen.items()


async def test_what_no_machine_has_can_be_taken_away_again(world: World) -> None:
    pools = f"/v1/tenants/{world.tenant}/pools"
    await world.admin.ok("/v1/skus", SKU)
    await world.admin.ok("/v1/regions", {"name": "eu-west", "title": "Europe, west"})
    await world.boss.ok(pools, {"name": "night", "title": "Night shift"})
    made, _, _ = await added(world, "free", sku=SKU["name"], region="eu-west", pool="night")
    offers = {
        "/v1/skus": (world.admin, SKU["name"]),
        "/v1/regions": (world.admin, "eu-west"),
        pools: (world.boss, "night"),
    }
    for path, (who, name) in offers.items():
        assert (await world.viewer.post(f"{path}/delete", {"name": name})).status_code in (403, 404)
        check_problem(await who.post(f"{path}/delete", {"name": "nothing"}), 404, "not_found")
        assert "free" in check_problem(await who.post(f"{path}/delete", {"name": name}), 409, "still_used")["detail"]
    await decide(world, made, "drain")
    await decide(world, made, "retire")
    await world.boss.ok(f"/v1/tenants/{world.tenant}/enrolments", {"node_name": "late", "pool": "night"})
    check_problem(await world.boss.post(f"{pools}/delete", {"name": "night"}), 409, "still_used")
    world.platform.db.write_now(lambda tx: tx.execute(text("update enrolments set expires_at = 0")))
    for path, (who, name) in offers.items():
        assert (await who.ok(f"{path}/delete", {"name": name}))["name"] == name
        assert (await who.get(path)).json()["items"] == []
    assert healthy(world)


async def test_machines_are_picked_by_kind_in_order_of_name(world: World) -> None:
    await world.boss.ok(f"/v1/tenants/{world.tenant}/pools", {"name": "night", "title": "Night shift"})
    await several(world, 3, sku="h100-8x", region="eu-west", pool="night")
    other, _, _ = await added(world, "aaa", sku="h100-8x", region="us-east")
    got = (await want(world, world.red, sku="h100-8x", region="eu-west", count=2)).json()["items"]
    assert [one["node_name"] for one in got] == ["free-00", "free-01"]
    assert {one["state"] for one in got} == {"requested"}
    short = await want(world, world.red, pool="night", count=2)
    check_problem(short, 409, "capacity_short")
    assert short.json()["capacity"] == {"wanted": 2, "free": 1}
    await world.boss.ok(f"/v1/nodes/{other}/pool", {"pool": "night"})
    got = (await want(world, world.red, pool="night", count=2)).json()["items"]
    assert [one["node_name"] for one in got] == ["aaa", "free-02"]
    check_problem(await want(world, world.red, pool="nowhere"), 404, "not_found")
    check_problem(await world.boss.post(f"/v1/nodes/{other}/pool", {"pool": "nowhere"}), 404, "not_found")


async def test_what_is_not_ready_or_not_allowed_is_never_picked(world: World) -> None:
    made = list(await several(world, 3, region="eu-west"))
    await added(world, "usa", region="us-east")
    await decide(world, made[0], "cordon")
    rule = {"rules": {"regions": {"deny": ["us-east"]}}}
    path = f"/v1/projects/{world.red}/policies/europe-only"
    assert (await world.boss.call("PUT", path, headers={"If-None-Match": "*"}, json=rule)).is_success
    check_problem(await want(world, world.red, region="us-east"), 403, "policy_denied")
    short = await want(world, world.red, count=3)
    check_problem(short, 409, "capacity_short")
    assert short.json()["capacity"]["free"] == 2
    got = (await want(world, world.red, count=2)).json()["items"]
    assert [one["node_name"] for one in got] == ["free-01", "free-02"]
    assert (await want(world, world.blue, region="us-east")).status_code == 201, "the other project may"


async def test_of_sixteen_who_want_the_last_three_machines_exactly_three_get_one(world: World) -> None:
    made = await several(world, 3)
    beats = [beat(one, machine) for one, machine in made.items()]
    projects = [world.red, world.blue] * 8
    answers = (await asyncio.gather(*(want(world, project) for project in projects), *beats))[:16]
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [409] * 13
    assert {a.json()["code"] for a in answers if a.status_code == 409} == {"capacity_short"}
    held = [a.json()["items"][0]["node_id"] for a in answers if a.status_code == 201]
    assert sorted(held) == sorted(made)
    assert healthy(world)


async def test_two_at_once_are_had_whole_or_not_at_all(world: World) -> None:
    await several(world, 5)
    answers = await asyncio.gather(*(want(world, world.red, count=2) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] * 2 + [409] * 6
    assert one(world.platform, "select count(*) from allocations where state = 'requested'") == 4
    assert healthy(world)


async def test_the_store_itself_refuses_a_machine_held_twice(world: World) -> None:
    (made,) = await several(world, 1)
    path = f"/v1/projects/{world.red}/allocations"
    asked = [world.boss.post(path, {"node_id": made}) for _ in range(8)]
    answers = await asyncio.gather(*asked, *(want(world, world.blue) for _ in range(8)))
    assert [answer.status_code for answer in answers].count(201) == 1
    assert {a.json()["code"] for a in answers if a.status_code == 409} <= {"node_taken", "capacity_short"}


# How much a project may hold


async def test_a_quota_is_never_exceeded_however_many_ask_at_once(world: World) -> None:
    made = list(await several(world, 8))
    quota = f"/v1/projects/{world.red}/quota"
    check_problem(await world.viewer.post(quota, {"max_allocations": 9, "max_gpus": 9}), 403, "permission_denied")
    await world.boss.ok(quota, {"max_allocations": 5, "max_gpus": None})
    by_node = [world.boss.post(f"/v1/projects/{world.red}/allocations", {"node_id": one}) for one in made[4:]]
    answers = await asyncio.gather(*(want(world, world.red) for _ in range(4)), *by_node)
    assert [answer.status_code for answer in answers].count(201) == 3, "two were held before"
    refused = [a for a in answers if a.status_code != 201]
    assert {a.json()["code"] for a in refused} <= {"quota_exceeded", "node_taken"}
    figures = next(a.json()["quota"] for a in refused if a.json()["code"] == "quota_exceeded")
    assert figures == {"bound": "allocations", "max": 5, "used": 5, "asked": 1}
    assert (await world.viewer.get(quota)).json()["used_allocations"] == 5
    assert (await want(world, world.blue)).status_code == 201, "another project has its own"
    assert healthy(world)


async def test_gpus_count_as_their_sku_promises_and_come_back_with_the_machine(world: World) -> None:
    await world.admin.ok("/v1/skus", SKU)
    made = await several(world, 2, sku="h100-8x")
    quota = f"/v1/projects/{world.blue}/quota"
    before = (await world.boss.get(quota)).json()["used_gpus"]
    await world.boss.ok(quota, {"max_allocations": None, "max_gpus": before + 8})
    short = await want(world, world.blue, sku="h100-8x", count=2)
    check_problem(short, 409, "quota_exceeded")
    assert short.json()["quota"] == {"bound": "gpus", "max": before + 8, "used": before, "asked": 16}
    assert one(world.platform, "select count(*) from allocations where state = 'requested'") == 0, "all or nothing"
    got = (await want(world, world.blue, sku="h100-8x")).json()["items"][0]
    assert got["gpus"] == 8
    check_problem(await want(world, world.blue, sku="h100-8x"), 409, "quota_exceeded")
    await world.boss.ok(f"/v1/projects/{world.blue}/allocations/{got['id']}/release")
    await apply_trust(got["node_id"], made[got["node_id"]])
    assert (await world.boss.get(quota)).json()["used_gpus"] == before
    assert (await want(world, world.blue, sku="h100-8x")).status_code == 201
    assert healthy(world)


async def test_a_quota_below_what_is_held_takes_nothing_away(world: World) -> None:
    await several(world, 1)
    quota = await world.boss.ok(f"/v1/projects/{world.red}/quota", {"max_allocations": 1, "max_gpus": 0})
    assert (quota["max_allocations"], quota["used_allocations"]) == (1, 2)
    check_problem(await want(world, world.red), 409, "quota_exceeded")
    assert (await world.running())["state"] == "running"


# Leases


async def test_a_lease_ends_by_itself_when_nothing_is_on_it(world: World, clock: MovableClock) -> None:
    made, machine, _ = await add_node(world, "free")
    path = f"/v1/projects/{world.red}/allocations"
    held = await world.boss.ok(path, {"node_id": made, "expires_in_s": 600})
    await apply_trust(made, machine)
    clock.forward(500)
    look(world)
    await world.boss.ok(f"{path}/{held['id']}/extend", {"expires_in_s": 600})
    clock.forward(500)
    look(world)
    assert (await world.boss.get(f"{path}/{held['id']}")).json()["state"] == "active"
    clock.forward(101)
    look(world)
    assert (await world.boss.get(f"{path}/{held['id']}")).json()["state"] == "releasing"
    check_problem(await world.boss.post(f"{path}/{held['id']}/extend", {"expires_in_s": 600}), 409, "wrong_state")
    trail = "select reason from audit where resource_id = :id and actor_id = 'platform'"
    assert one(world.platform, trail, id=held["id"]) == "its lease has ended"


async def test_a_lease_never_ends_under_an_instance_but_says_so(world: World, clock: MovableClock) -> None:
    held = f"/v1/projects/{world.red}/allocations/{world.allocations[0]}"
    await world.boss.ok(f"{held}/extend", {"expires_in_s": 60})
    running = await world.running()
    clock.forward(61)
    for _ in range(3):
        look(world)
    seen = (await world.boss.get(held)).json()
    assert (seen["state"], seen["in_use_by"]["instance_id"]) == ("active", running["id"])
    assert seen["overdue_since"]
    assert one(world.platform, "select count(*) from events where type = 'capacity.allocation.overdue'") == 1
    await world.decommission(running["id"])
    await world.torn_down(await world.claim())
    look(world)
    assert (await world.boss.get(held)).json()["state"] == "releasing"


# What an allocation is kept for


async def test_an_allocation_kept_for_one_scheduler_type_takes_no_other_app(world: World) -> None:
    """The types are what published apps declare; the platform has no list of its own."""
    made = await several(world, 2)
    path = f"/v1/projects/{world.red}/allocations"
    ids = list(made)
    unknown = await world.boss.post(path, {"node_id": ids[0], "scheduler_type": "ray"})
    check_problem(unknown, 422, "scheduler_type_unknown")
    assert "bare_metal" in unknown.json()["detail"]
    other = MANIFEST | {"app_slug": "other", "runtime_backend": "ray"}
    await world.admin.ok("/v1/apps", {"slug": "other", "name": "Other"})
    await world.admin.ok("/v1/apps/other/versions", {"version": "1.0.0", "manifest": other})
    await world.admin.ok("/v1/apps/other/versions/1.0.0/publish")
    held = {}
    for machine, kind in zip(ids, ("ray", "bare_metal"), strict=True):
        held[kind] = await world.boss.ok(path, {"node_id": machine, "scheduler_type": kind})
        await apply_trust(machine, made[machine])
    deploy = f"/v1/projects/{world.red}/instances"
    refused = await world.boss.post(deploy, world.deploy_body(held["ray"]["id"]))
    check_problem(refused, 409, "allocation_kept_for_other")
    assert (await world.boss.post(deploy, world.deploy_body(held["bare_metal"]["id"]))).status_code == 202


async def test_only_the_claims_holder_notes_something_about_its_own_allocations(world: World) -> None:
    await world.deploy()
    claim = await world.claim()
    path = world.operation(claim["operation"]["id"], "integration")
    body = {"claim_epoch": claim["claim_epoch"], "allocation_id": world.allocations[0], "integration": {"ref": [1]}}
    noted = await world.controller.ok(path, body)
    assert noted["integration_metadata"] == {"ref": [1]}
    check_problem(await world.controller.post(path, body | {"claim_epoch": 9}), 409, "stale_claim")
    check_problem(await world.second.post(path, body), 409, "stale_claim")
    for foreign in (world.allocations[1], world.blue_allocation, "alloc_x"):
        answer = await world.controller.post(path, body | {"allocation_id": foreign})
        check_problem(answer, 404, "allocation_not_of_operation")
    too_much = body | {"integration": {"ref": "x" * 4096}}
    check_problem(await world.controller.post(path, too_much), 422, "invalid_request")
    seen = (await world.viewer.get(f"/v1/projects/{world.red}/allocations/{world.allocations[0]}")).json()
    assert seen["integration_metadata"] == {"ref": [1]}


# The tenant's view


async def test_only_a_tenant_admin_sees_the_allocations_of_all_projects(world: World) -> None:
    path = f"/v1/tenants/{world.tenant}/allocations"
    seen = (await world.boss.get(path)).json()["items"]
    assert {one["id"] for one in seen} == {*world.allocations, world.blue_allocation}
    found = (await world.boss.get(path, params={"project_id": world.blue})).json()["items"]
    assert [one["id"] for one in found] == [world.blue_allocation]
    for field, value in (("region", "nowhere"), ("sku", "nothing"), ("state", "released"), ("project_id", "prj_x")):
        assert (await world.boss.get(path, params={field: value})).json()["items"] == []
    first = (await world.boss.get(path, params={"limit": 2, "region": "default"})).json()
    rest = (await world.boss.get(path, params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [len(first["items"]), len(rest["items"])] == [2, 1]
    assert (await world.viewer.get(path)).status_code in (403, 404)
    lead, _ = await add_user(world, "lead@acme.example", "project_admin", project=world.red)
    assert (await lead.get(path)).status_code in (403, 404)


@pytest.mark.parametrize("body", [{"want": {}, "node_id": "node_x"}, {}, {"want": {"count": 0}}, {"want": {"gpu": 1}}])
async def test_a_request_that_says_something_else_is_refused(world: World, body: Any) -> None:
    check_problem(await world.boss.post(f"/v1/projects/{world.red}/allocation-requests", body), 422, "invalid_request")
