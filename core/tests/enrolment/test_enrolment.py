"""Machines: how one joins with a token that works once, what it is told to trust, how it is held and given back."""

import asyncio
from pathlib import Path

import pytest
from gpuaas_core.background.housekeeping import tidy
from joserfc.jwk import OKPKey

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import (
    MovableClock,
    World,
    add_node,
    applied,
    apply_trust,
    asleep,
    enrol_body,
    invite,
    join,
    machine_token,
    poll,
)
from core.tests.support.promises import promised
from core.tests.support.store_rows import PASSING, dump, one, rows, store_files

TOLD = PASSING | {"events", "audit", "event_heads"}  # where the tenant is told of it


def _key() -> OKPKey:
    return OKPKey.generate_key("Ed25519")


async def test_of_twenty_machines_with_one_token_exactly_one_joins(world: World) -> None:
    token = await invite(world, "spare")
    bodies = [enrol_body(token, f"machine-{number}", _key()) for number in range(20)]
    answers = await asyncio.gather(*(world.api.post("/v1/enrol", body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 19
    assert {a.json()["code"] for a in answers if a.status_code == 401} == {"enrolment_token_invalid"}
    assert one(world.platform, "select count(*) from nodes where name = 'spare'") == 1
    assert one(world.platform, "select count(*) from principals where name = 'spare'") == 1


async def test_a_machine_whose_answer_was_lost_may_ask_again(world: World) -> None:
    body = enrol_body(await invite(world, "spare"), "spare", _key())
    answers = await asyncio.gather(*(world.api.post("/v1/enrol", body) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["node_id"] for answer in answers}) == 1
    assert one(world.platform, "select count(*) from nodes where name = 'spare'") == 1
    assert one(world.platform, "select count(*) from events where type = 'capacity.node.enrolled'") == 4


@pytest.mark.parametrize("other", ["key", "machine"])
async def test_a_used_token_is_worth_nothing_to_another_machine(world: World, other: str) -> None:
    token, key = await invite(world, "spare"), _key()
    await world.api.ok("/v1/enrol", enrol_body(token, "spare", key))
    before = dump(world.platform, without=TOLD)
    stolen = enrol_body(token, "spare", _key()) if other == "key" else enrol_body(token, "thief", key)
    check_problem(await world.api.post("/v1/enrol", stolen), 401, "enrolment_token_invalid")
    assert dump(world.platform, without=TOLD) == before
    audit = "select reason from audit where outcome = 'denied' and tenant_id = :tenant"
    (told,) = rows(world.platform, audit, tenant=world.tenant)
    assert "used by another machine" in told["reason"]
    event = "select count(*) from events where type = 'capacity.enrolment.refused' and tenant_id = :tenant"
    assert one(world.platform, event, tenant=world.tenant) == 1


async def test_a_token_lives_ten_minutes_also_for_the_machine_that_used_it(world: World, clock: MovableClock) -> None:
    fresh = enrol_body(await invite(world, "fresh"), "fresh", _key())
    used = enrol_body(await invite(world, "used"), "used", _key())
    await world.api.ok("/v1/enrol", used)
    clock.forward(599)
    await world.api.ok("/v1/enrol", used)
    clock.forward(2)
    for body in (fresh, used):
        check_problem(await world.api.post("/v1/enrol", body), 401, "enrolment_token_invalid")


async def test_a_token_that_was_made_up_or_mixed_is_refused(world: World) -> None:
    first, second = await invite(world, "first"), await invite(world, "second")
    mixed = first.split(".")[0] + "." + second.split(".")[1]
    for token in (mixed, first[:-1], first + "A", first.split(".")[0] + "." + "A" * 43, "." + "A" * 43):
        body = enrol_body(token, "spare", _key())
        check_problem(await world.api.post("/v1/enrol", body), 401, "enrolment_token_invalid")
    assert one(world.platform, "select count(*) from nodes") == 3


async def test_a_name_belongs_to_one_machine(world: World) -> None:
    path, body = f"/v1/tenants/{world.tenant}/enrolments", {"node_name": "node-0"}
    check_problem(await world.boss.post(path, body), 409, "node_name_taken")
    early, late = await invite(world, "twin"), await invite(world, "twin")
    await world.api.ok("/v1/enrol", enrol_body(early, "one", _key()))
    check_problem(await world.api.post("/v1/enrol", enrol_body(late, "two", _key())), 409, "node_name_taken")


async def test_the_token_is_nowhere_in_the_store(world: World, store_folder: Path) -> None:
    key = "asked-for-with-this-key"
    path, body = f"/v1/tenants/{world.tenant}/enrolments", {"node_name": "spare"}
    asked = await world.boss.ok(path, body, key=key)
    again = await world.boss.post(path, body, key=key)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["token"] == asked["token"], "the caller may see it again; the store does not know it"
    await world.api.ok("/v1/enrol", enrol_body(asked["token"], "spare", _key()))
    secret = asked["token"].split(".")[1].encode()
    files = store_files(store_folder)
    assert any(asked["id"].encode() in file.read_bytes() for file in files), "looked in the wrong place"
    assert not [file.name for file in files if secret in file.read_bytes()]
    (remembered,) = rows(world.platform, "select body from seen_requests where key = :key", key=key)
    assert secret.decode() not in remembered["body"]


async def test_a_machine_is_ready_only_after_it_trusts(world: World) -> None:
    node, machine, _ = await join(world, "spare")
    assert (await world.boss.get(f"/v1/nodes/{node}")).json()["state"] == "enrolling"
    path = f"/v1/projects/{world.red}/allocations"
    check_problem(await world.boss.post(path, {"node_id": node}), 409, "node_not_ready")
    await apply_trust(node, machine)
    assert (await world.boss.get(f"/v1/nodes/{node}")).json()["state"] == "ready"
    assert (await world.boss.post(path, {"node_id": node})).status_code == 201


async def test_a_silent_machine_becomes_unknown_and_ready_when_it_speaks(world: World, clock: MovableClock) -> None:
    def look() -> None:
        tidy(world.platform, world.platform.clock())

    path = f"/v1/nodes/{world.nodes[2]}"
    clock.forward(5)  # the clock also runs by itself; test_partition.py looks at the very second
    look()
    assert (await world.boss.get(path)).json()["state"] == "ready"
    clock.forward(15)
    look()
    look()
    assert (await world.boss.get(path)).json()["state"] == "unknown"
    told = rows(world.platform, "select subject, tenant_id from events where type = 'capacity.node.unknown'")
    assert sorted(row["subject"] for row in told) == sorted(world.nodes)
    assert {row["tenant_id"] for row in told} == {world.tenant}
    facts = {"hostname": "node-2", "cpus": 8, "memory_mb": 16000}
    said = await poll(world.nodes[2], world.machine, facts=facts, boot_id="second")
    assert said.json()["renew_identity"], "another boot"
    node = (await world.boss.get(path)).json()
    assert (node["state"], node["facts"]["cpus"]) == ("ready", 8)


async def test_trust_is_told_when_it_changes_and_not_before(world: World) -> None:
    node, machine, _ = await add_node(world, "spare")
    assert (await poll(node, machine, 1, 1, machine_id="spare")).status_code == 204
    waiting = asyncio.create_task(poll(node, machine, 1, 1, machine_id="spare", wait_s=20))
    await asleep(world.platform, f"node:{node}")
    held = await world.boss.ok(f"/v1/projects/{world.red}/allocations", {"node_id": node})
    trust = (await asyncio.wait_for(waiting, promised(1.5))).json()["trust"]
    assert trust["generation"] == 2
    assert trust["principals"] == {"root": [held["id"]]}
    assert trust["user_ca_public_keys"][0].startswith("ssh-ed25519 ")
    assert trust["user_ca_public_keys"] != [trust["host_ca_public_key"]]


async def test_an_allocation_is_active_only_when_the_machine_says_so(world: World) -> None:
    node, machine, _ = await add_node(world, "spare")
    held = await world.boss.ok(f"/v1/projects/{world.red}/allocations", {"node_id": node})
    path = f"/v1/projects/{world.red}/allocations/{held['id']}"
    for generation in (0, 1):
        await applied(node, machine, generation)
        assert (await world.boss.get(path)).json()["state"] == "requested"
    await applied(node, machine, 2)
    assert (await world.boss.get(path)).json()["state"] == "active"


async def test_a_machine_cannot_agree_to_what_it_was_not_told_yet(world: World) -> None:
    node, machine, _ = await add_node(world, "spare")
    await applied(node, machine, 10**30)
    held = await world.boss.ok(f"/v1/projects/{world.red}/allocations", {"node_id": node})
    assert (await world.boss.get(f"/v1/nodes/{node}")).json()["trust_applied"] == 1
    assert held["state"] == "requested"


async def test_a_machine_is_held_once_also_when_many_ask_at_once(world: World) -> None:
    node, _, _ = await add_node(world, "spare")
    asked = [
        world.boss.post(f"/v1/projects/{project}/allocations", {"node_id": node})
        for project in (world.red, world.blue) * 6
    ]
    answers = await asyncio.gather(*asked)
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 11
    assert {a.json()["code"] for a in answers if a.status_code == 409} == {"node_taken"}
    assert one(world.platform, "select count(*) from allocations where node_id = :n", n=node) == 1
    assert one(world.platform, "select trust_generation from nodes where id = :n", n=node) == 2, (
        "a refusal left a trace"
    )


async def test_a_machine_given_back_is_free_only_when_it_has_forgotten(world: World) -> None:
    path = f"/v1/projects/{world.blue}/allocations"
    released = await world.boss.ok(f"{path}/{world.blue_allocation}/release")
    assert released["state"] == "releasing"
    check_problem(await world.boss.post(f"{path}/{world.blue_allocation}/release"), 409, "wrong_state")
    check_problem(await world.boss.post(path, {"node_id": world.nodes[2]}), 409, "node_taken")
    trust = await apply_trust(world.nodes[2], world.machine)
    assert trust["principals"] == {"root": []}
    assert (await world.boss.get(f"{path}/{world.blue_allocation}")).json()["state"] == "released"
    assert (await world.boss.post(path, {"node_id": world.nodes[2]})).status_code == 201


async def test_a_machine_of_another_tenant_cannot_be_held(world: World) -> None:
    check_problem(
        await world.boss.post(f"/v1/projects/{world.red}/allocations", {"node_id": "node_" + "0" * 26}),
        404,
        "not_found",
    )


async def test_a_machine_signs_in_with_the_key_it_made_itself(world: World) -> None:
    node, _, key = await join(world, "spare")
    again = await machine_token(world.api, key, node, world.now())
    me = (await again.get("/v1/whoami")).json()
    assert (me["principal"]["kind"], me["projects"]) == ("node", [])
