"""A machine's identity: keys that follow each other, copies that are noticed, and ways back for the honest."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.identity import node_keys
from joserfc import jwt
from joserfc.jwk import OKPKey

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import (
    Api,
    MovableClock,
    World,
    add_node,
    apply_trust,
    enrol_body,
    hold,
    invite,
    machine_token,
    poll,
)
from core.tests.support.served import Served, calling
from core.tests.support.served import served as served
from core.tests.support.store_rows import one, rows

DAY_S = 24 * 3600


def new_key() -> OKPKey:
    return OKPKey.generate_key("Ed25519")


def proof(world: World, key: OKPKey, node: str, **more: Any) -> str:
    now = world.now()
    claims = {"iss": node, "sub": node, "aud": "gpuaas", "iat": now, "exp": now + 45, "jti": secrets.token_hex(8)}
    head = {"alg": "Ed25519", "kid": node_keys.thumbprint(key.as_dict(private=False))}
    return jwt.encode(head, claims | more, key, algorithms=["Ed25519"])


async def sign_in(world: World, key: OKPKey, node: str, **more: Any) -> Any:
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    form = {"grant_type": "client_credentials", "client_assertion_type": kind}
    return await world.api.http.post("/v1/token", data=form | {"client_assertion": proof(world, key, node, **more)})


async def renew(world: World, key: OKPKey, node: str, following: OKPKey, **more: Any) -> Any:
    body = {"client_assertion": proof(world, key, node), "public_jwk": following.as_dict(private=False)}
    return await world.api.post("/v1/renew-identity", body | more)


async def state(world: World, node: str) -> str:
    seen = await world.boss.get(f"/v1/nodes/{node}")
    return seen.json()["state"]


async def beat(machine: Api, node: str, name: str, boot: str = "") -> Any:
    facts = {"hostname": name, "cpus": 4, "memory_mb": 8000, "machine_id": name}
    said = await poll(node, machine, 1, facts=facts, machine_id=name, boot_id=boot)
    return {"renew_identity": False} | (said.json() if said.content else {})


async def copied(world: World, name: str = "spare") -> tuple[str, OKPKey, OKPKey]:
    """A node whose former key still lives somewhere: the node, the former key, the one in use."""
    node, _, former = await add_node(world, name)
    current = new_key()
    assert (await renew(world, former, node, current)).status_code == 200
    assert (await sign_in(world, current, node)).status_code == 200
    return node, former, current


async def suspended(world: World, name: str = "spare") -> tuple[str, OKPKey, OKPKey]:
    node, former, current = await copied(world, name)
    challenge = (await sign_in(world, former, node)).json()["challenge"]
    check_problem(await sign_in(world, former, node, challenge=challenge), 401, "identity_cloned")
    return node, former, current


def test_of_twenty_hosts_with_one_token_exactly_one_joins_a_served_core(served: Served, world: World) -> None:
    admin = {"Authorization": f"Bearer {world.boss.token}", "Idempotency-Key": secrets.token_hex(16)}
    path = f"{served.url}/v1/tenants/{world.tenant}/enrolments"
    token = httpx2.post(path, headers=admin, json={"node_name": "wanted"}).json()["token"]
    bodies = [enrol_body(token, f"host-{number}", new_key()) for number in range(20)]

    def enrol(body: Any) -> Any:
        return httpx2.post(f"{served.url}/v1/enrol", json=body, timeout=30)

    with ThreadPoolExecutor(20) as hosts:
        answers = list(hosts.map(enrol, bodies))
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 19
    refused = [answer.json() for answer in answers if answer.status_code == 401]
    assert {(one["code"], one["detail"]) for one in refused} == {
        ("enrolment_token_invalid", "The enrolment token was used by another machine.")
    }
    events = httpx2.get(f"{served.url}/v1/tenants/{world.tenant}/events?limit=500", headers=admin).json()["items"]
    assert sum(event["type"] == "capacity.enrolment.refused" for event in events) == 19
    audit = httpx2.get(f"{served.url}/v1/tenants/{world.tenant}/audit?limit=500", headers=admin).json()["items"]
    assert sum(row["outcome"] == "denied" and "another machine" in row["reason"] for row in audit) == 19


async def test_the_next_key_retires_the_former_one_when_it_is_used_and_not_before(world: World) -> None:
    node, machine, former = await add_node(world, "spare")
    following = new_key()
    told = (await renew(world, former, node, following)).json()
    assert (told["generation"], told["expires_in"]) == (2, DAY_S)
    assert (await sign_in(world, former, node)).status_code == 200, "the next key was only announced"
    assert (await poll(node, machine)).status_code == 200
    assert (await sign_in(world, following, node)).status_code == 200
    check_problem(await sign_in(world, former, node), 401, "identity_superseded")
    check_problem(await poll(node, machine), 401, "token_expired")
    assert await state(world, node) == "ready", "a late message suspended an honest machine"


async def test_a_renewal_may_be_repeated_and_names_one_next_key(world: World) -> None:
    node, _, key = await add_node(world, "spare")
    following = new_key()
    for _ in range(3):
        assert (await renew(world, key, node, following)).json()["generation"] == 2
    keys = one(world.platform, "select count(*) from principal_keys where principal_id = :n", n=node)
    assert keys == 2


async def test_two_different_next_keys_are_two_machines(world: World) -> None:
    node, _, key = await add_node(world, "spare")
    assert (await renew(world, key, node, new_key())).status_code == 200
    check_problem(await renew(world, key, node, new_key()), 401, "identity_cloned")
    assert await state(world, node) == "suspended"


async def test_a_former_key_that_answers_the_challenge_suspends_the_node(world: World) -> None:
    node, _, current = await suspended(world)
    view = (await world.boss.get(f"/v1/nodes/{node}")).json()
    assert view["state"] == "suspended"
    assert "copy" in view["standing_reason"]
    told = rows(
        world.platform, "select data from events where type = 'capacity.node.suspended' and subject = :n", n=node
    )
    assert len(told) == 1
    audit = "select reason from audit where outcome = 'denied' and resource_id = :n and tenant_id = :t"
    assert len(rows(world.platform, audit, n=node, t=world.tenant)) == 2, "both times the former key was shown"
    check_problem(await sign_in(world, current, node), 401, "identity_closed")
    check_problem(await renew(world, current, node, new_key()), 401, "identity_closed")


async def test_a_challenge_of_another_node_or_a_guess_suspends_no_node(world: World) -> None:
    node, former, _ = await copied(world)
    other, other_former, _ = await copied(world, "other")
    strange = (await sign_in(world, other_former, other)).json()["challenge"]
    for wrong in (strange, "", "A" * 43, None, 7, [strange]):
        check_problem(await sign_in(world, former, node, challenge=wrong), 401, "identity_superseded")
    assert await state(world, node) == await state(world, other) == "ready"


async def test_a_suspended_machine_is_neither_held_nor_heard_nor_entered(world: World) -> None:
    node, machine, former = await add_node(world, "spare")
    held = await hold(world, world.red, node, machine)
    await world.deploy(held)
    claim = await world.claim()
    current = new_key()
    await renew(world, former, node, current)
    token = (await sign_in(world, current, node)).json()["access_token"]
    challenge = (await sign_in(world, former, node)).json()["challenge"]
    await sign_in(world, former, node, challenge=challenge)
    check_problem(await poll(node, world.api.as_(token)), 401, "unauthenticated")
    line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJmD0Q4vWcPCGb2V5K2OFt4TqQ0z7gDbS9xMbyzSCr4w"
    ask = {"claim_epoch": claim["claim_epoch"], "allocation_id": held, "ssh_public_key": line}
    path = world.operation(claim["operation"]["id"], "access-grants")
    check_problem(await world.controller.post(path, ask), 409, "node_suspended")
    free, _, _ = await suspended(world, "free")
    wanted = await world.boss.post(f"/v1/projects/{world.red}/allocations", {"node_id": free})
    check_problem(wanted, 409, "node_not_ready")


async def test_a_readmitted_machine_is_the_node_it_was_and_its_copies_are_nothing(world: World) -> None:
    node, machine, former = await add_node(world, "spare")
    held = await hold(world, world.red, node, machine)
    await world.boss.ok(f"/v1/nodes/{node}/cordon", {"reason": "fan"})
    current, fresh = new_key(), new_key()
    await renew(world, former, node, current)
    await sign_in(world, current, node)
    challenge = (await sign_in(world, former, node)).json()["challenge"]
    await sign_in(world, former, node, challenge=challenge)
    check_problem(await world.boss.post(f"/v1/nodes/{node}/readmit", {}), 422, "invalid_request")
    token = (await world.boss.ok(f"/v1/nodes/{node}/readmit", {"reason": "the copy is off"}))["token"]
    joined = await world.api.ok("/v1/enrol", enrol_body(token, "spare", fresh))
    assert joined["node_id"] == node
    assert joined["trust"]["principals"] == {"root": [held]}
    back = world.api.as_((await sign_in(world, fresh, node)).json()["access_token"])
    assert await state(world, node) == "enrolling"
    await apply_trust(node, back)
    assert await state(world, node) == "cordoned", "what people decided outlives it"
    for closed in (former, current):
        check_problem(await sign_in(world, closed, node), 401, "identity_closed")
        check_problem(await sign_in(world, closed, node, challenge=challenge), 401, "identity_closed")
    assert await state(world, node) == "cordoned", "a closed key of the copy suspended it again"
    assert (await world.boss.get(f"/v1/projects/{world.red}/allocations/{held}")).json()["state"] == "active"


async def test_a_readmitted_machine_brings_a_new_key_and_ends_its_other_invitations(world: World) -> None:
    node, former, current = await suspended(world)
    path, body = f"/v1/nodes/{node}/readmit", {"reason": "the copy is off"}
    tokens = [(await world.boss.ok(path, body))["token"] for _ in range(2)]
    for known in (former, current):
        answer = await world.api.post("/v1/enrol", enrol_body(tokens[0], "spare", known))
        check_problem(answer, 409, "public_key_taken")
    fresh = enrol_body(tokens[0], "spare", new_key())
    assert [(await world.api.ok("/v1/enrol", fresh))["node_id"] for _ in range(2)] == [node, node], "a lost answer"
    late = await world.api.post("/v1/enrol", enrol_body(tokens[1], "spare", new_key()))
    check_problem(late, 401, "enrolment_token_invalid")


async def test_a_suspended_machine_can_be_retired_with_what_it_was_giving_back(world: World) -> None:
    node, machine, former = await add_node(world, "spare")
    held = await hold(world, world.red, node, machine)
    current = new_key()
    await renew(world, former, node, current)
    await sign_in(world, current, node)
    challenge = (await sign_in(world, former, node)).json()["challenge"]
    await sign_in(world, former, node, challenge=challenge)
    check_problem(await world.boss.post(f"/v1/nodes/{node}/retire"), 409, "node_held")
    await world.boss.ok(f"/v1/projects/{world.red}/allocations/{held}/release")
    assert (await world.boss.ok(f"/v1/nodes/{node}/retire"))["state"] == "retired"
    check_problem(await world.boss.post(f"/v1/nodes/{node}/readmit", {"reason": "no"}), 409, "wrong_state")


@pytest.mark.parametrize("days", [2, 7, 40])
async def test_a_host_that_was_off_for_days_comes_back_by_itself(world: World, clock: MovableClock, days: int) -> None:
    node, _, key = await add_node(world, "spare")
    clock.forward(days * DAY_S)
    tidy(world.platform, world.platform.clock())
    check_problem(await sign_in(world, key, node), 401, "identity_expired")
    following = new_key()
    assert (await renew(world, key, node, following)).status_code == 200
    back = world.api.as_((await sign_in(world, following, node)).json()["access_token"])
    await beat(back, node, "spare")
    assert one(world.platform, "select state from nodes where id = :n", n=node) == "ready"
    check_problem(await sign_in(world, key, node), 401, "identity_superseded")


async def test_a_host_that_was_off_between_the_two_steps_comes_back_with_either_key(
    world: World, clock: MovableClock
) -> None:
    made = {name: await add_node(world, name) for name in ("before", "after")}
    following, third = new_key(), new_key()
    for node, _, key in made.values():
        await renew(world, key, node, following)
    clock.forward(7 * DAY_S)
    steps = {"before": (made["before"][2], following), "after": (following, third)}
    for name, (first, last) in steps.items():
        node = made[name][0]
        assert (await renew(world, first, node, last)).status_code == 200
        assert (await sign_in(world, last, node)).status_code == 200


async def test_renewal_is_asked_for_at_two_thirds_of_a_life_and_of_another_boot_or_machine(
    world: World, clock: MovableClock
) -> None:
    node, machine, key = await add_node(world, "spare")
    assert (await beat(machine, node, "spare"))["renew_identity"] is False
    assert (await beat(machine, node, "spare", "second boot"))["renew_identity"] is True
    assert (await beat(machine, node, "elsewhere"))["renew_identity"] is True
    clock.forward(DAY_S * 2 // 3 + 1)
    machine = await machine_token(world.api, key, node, world.now())
    assert (await beat(machine, node, "spare"))["renew_identity"] is True
    following = new_key()
    await renew(world, key, node, following, machine_id="spare", boot_id="third boot")
    assert (await beat(machine, node, "spare"))["renew_identity"] is True, "the next key waits to be used"
    machine = await machine_token(world.api, following, node, world.now())
    assert (await beat(machine, node, "spare", "third boot"))["renew_identity"] is False


async def test_a_machine_renews_only_itself_and_only_with_a_key_of_its_own(world: World) -> None:
    node, _, key = await add_node(world, "spare")
    _, _, stranger = await add_node(world, "stranger")
    check_problem(await renew(world, stranger, node, new_key()), 401, "identity_unknown")
    check_problem(await renew(world, key, world.controller_id, new_key()), 401, "assertion_refused")
    check_problem(await renew(world, key, node, key), 409, "public_key_taken")
    used = {"client_assertion": proof(world, key, node), "public_jwk": new_key().as_dict(private=False)}
    assert (await world.api.post("/v1/renew-identity", used)).status_code == 200
    check_problem(await world.api.post("/v1/renew-identity", used), 401, "assertion_refused")


async def test_the_same_machine_under_a_new_name_replaces_what_it_was(world: World) -> None:
    node, machine, key = await add_node(world, "spare")
    body = enrol_body(await invite(world, "renamed"), "spare", new_key())
    new = (await world.api.ok("/v1/enrol", body))["node_id"]
    assert new != node
    former = (await world.boss.get(f"/v1/nodes/{node}")).json()
    assert (former["state"], former["standing_reason"]) == ("retired", "replaced by renamed")
    check_problem(await poll(node, machine), 401, "unauthenticated")
    check_problem(await sign_in(world, key, node), 401, "identity_closed")


async def test_a_held_machine_is_not_replaced_but_readmitted(world: World) -> None:
    node, machine, key = await add_node(world, "spare")
    await hold(world, world.red, node, machine)
    token = await invite(world, "renamed")
    check_problem(await world.api.post("/v1/enrol", enrol_body(token, "spare", new_key())), 409, "machine_held")
    assert (await sign_in(world, key, node)).status_code == 200, "a refused enrolment closed the identity"
    again = (await world.boss.ok(f"/v1/nodes/{node}/readmit", {"reason": "new disk"}))["token"]
    assert (await world.api.ok("/v1/enrol", enrol_body(again, "spare", new_key())))["node_id"] == node


async def test_a_machine_made_from_the_same_image_is_another_machine(world: World) -> None:
    node, _, _ = await add_node(world, "spare")
    body = enrol_body(await invite(world, "twin"), "spare", new_key())
    body["ssh_host_public_key"] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKwBr6nGdSNdGMhmMKLbTfuqkWZPGDDcPlFQBiXoUg5r"
    await world.api.ok("/v1/enrol", body)
    assert await state(world, node) == "ready"


async def test_retired_keys_are_forgotten_after_ninety_days_and_good_ones_never(
    world: World, clock: MovableClock
) -> None:
    node, former, current = await copied(world)
    clock.forward(91 * DAY_S)
    world.platform.db.write_now(lambda tx: node_keys.forget_old_keys(tx, world.platform.clock()))
    check_problem(await sign_in(world, former, node), 401, "identity_unknown")
    check_problem(await sign_in(world, current, node), 401, "identity_expired")


async def test_first_use_of_the_next_key_leaves_no_session_of_the_former_one_behind(
    served: Served, world: World, clock: MovableClock
) -> None:
    """Both keys sign in at the same moment, many times: once the next one was used, no token of the former one lives."""
    clock.offset = 0  # the served core has the time of day
    async with calling(served, world) as there:
        for number in range(6):
            node, _, key = await add_node(there, f"racer-{number}")
            following = new_key()
            await renew(there, key, node, following)
            tokens = _at_once(served, lambda k, n=node: proof(there, k, n), [key, key, following, key, key])
            assert tokens[2], "the next key was refused"
            for token in (tokens[0], tokens[1], tokens[3], tokens[4]):
                if token:
                    check_problem(await poll(node, there.api.as_(token)), 401, "token_expired")
            assert await state(there, node) == "ready"


def _at_once(served: Served, sign: Callable[[OKPKey], str], keys: list[OKPKey]) -> list[str | None]:
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    form = {"grant_type": "client_credentials", "client_assertion_type": kind}

    def ask(key: OKPKey) -> str | None:
        answer = httpx2.post(f"{served.url}/v1/token", data=form | {"client_assertion": sign(key)}, timeout=30)
        return answer.json().get("access_token")

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(ask, keys))
