"""Delegated grants: what is lent works across projects, is recorded with both names, and ends with the lender's right."""

import random
from typing import Any

import pytest
from gpuaas_core.authz.evaluate import DELEGATION, PLATFORM, Binding, Deny, Grant, Principal, Scope, covers, evaluate
from gpuaas_core.authz.permissions import PERMISSIONS, ROLES, UNLENDABLE

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import Api, MovableClock, World, add_user
from core.tests.support.store_rows import one, rows

LENT = ["tenancy.project.read", "apps.instance.read", "apps.operation.retry"]
DAY_S = 24 * 3600


async def lend(world: World, grantee: str, permissions: list[str], *, by: Api | None = None, **more: Any) -> Any:
    body = {"grantee_id": grantee, "permissions": permissions, "reason": "shared runtime", "expires_in_s": DAY_S}
    return await (by or world.boss).ok(f"/v1/projects/{world.red}/delegations", body | more)


async def _blue_id(world: World) -> str:
    return (await world.blue_controller.get("/v1/whoami")).json()["principal"]["id"]


def _red(world: World, noun: str) -> str:
    return f"/v1/projects/{world.red}/{noun}"


async def test_a_service_account_of_another_project_does_what_is_lent_and_no_more(world: World) -> None:
    check_problem(await world.blue_controller.get(_red(world, "instances")), 404, "not_found")
    made = await lend(world, await _blue_id(world), LENT)
    assert (made["state"], made["effective"]) == ("active", sorted(LENT))
    assert (await world.blue_controller.get(_red(world, "instances"))).status_code == 200
    refused = await world.blue_controller.get(_red(world, "events"))
    check_problem(refused, 403, "permission_denied")
    seen = (await world.blue_controller.get("/v1/projects")).json()["items"]
    assert {project["id"] for project in seen} == {world.red, world.blue}
    check_problem(await world.blue_controller.get(f"/v1/tenants/{world.tenant}"), 404, "not_found")


async def test_every_call_through_it_names_actor_and_grantor(world: World) -> None:
    blue = await _blue_id(world)
    made = await lend(world, blue, LENT)
    accepted = await world.deploy()
    await world.fail(await world.claim())
    retry = world.operation(accepted["operation"]["id"], "retry")
    await world.blue_controller.ok(retry, headers={"X-Correlation-Id": "by-delegation"})
    await world.blue_controller.get(_red(world, "instances"), headers={"X-Correlation-Id": "looked-by-loan"})
    await world.blue_controller.get(_red(world, "events"), headers={"X-Correlation-Id": "refused-by-loan"})
    for correlation, outcome in (
        ("by-delegation", "allowed"),
        ("looked-by-loan", "allowed"),
        ("refused-by-loan", "denied"),
    ):
        (row,) = rows(world.platform, "select * from audit where correlation_id = :c", c=correlation)
        assert (row["actor_id"], row["on_behalf_of"], row["via"]) == (blue, world.boss_id, made["id"])
        assert row["outcome"] == outcome
    shown = (await world.boss.get(f"/v1/tenants/{world.tenant}/audit?correlation_id=by-delegation")).json()["items"]
    assert (shown[0]["via"], shown[0]["on_behalf_of"]) == (made["id"], world.boss_id)
    assert (await world.boss.get(f"/v1/tenants/{world.tenant}/audit/verify")).json()["ok"]


async def test_what_one_does_by_ones_own_right_names_no_grantor(world: World) -> None:
    await lend(world, world.controller_id, ["apps.operation.retry"])
    accepted = await world.deploy()
    await world.claim()
    row = rows(world.platform, "select via, on_behalf_of from audit where actor_id = :a", a=world.controller_id)
    assert accepted
    assert all(one["via"] is None and one["on_behalf_of"] is None for one in row)


@pytest.mark.parametrize("loss", ["binding", "disabled", "denied"])
async def test_a_grantor_who_loses_the_right_has_lent_nothing_any_more(world: World, loss: str) -> None:
    lead, lead_id = await add_user(world, "lead@acme.example", "project_admin", project=world.red)
    made = await lend(world, await _blue_id(world), LENT, by=lead)
    assert (await world.blue_controller.get(_red(world, "instances"))).status_code == 200
    if loss == "binding":
        binding = one(world.platform, "select id from role_bindings where principal_id = :p", p=lead_id)
        await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings/{binding}/remove")
    elif loss == "disabled":
        await world.boss.ok(f"/v1/tenants/{world.tenant}/users/{lead_id}/disable")
    else:
        rule = {"permissions": ["apps.instance.read"], "reason": "not now", "project_id": world.red}
        await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules", rule)
    answer = await world.blue_controller.get(_red(world, "instances"))
    assert answer.status_code == (403 if loss == "denied" else 404)
    (listed,) = (await world.boss.get(_red(world, "delegations"))).json()["items"]
    assert (listed["id"], listed["state"]) == (made["id"], "active")
    assert "apps.instance.read" not in listed["effective"]


async def test_a_revoked_or_expired_delegation_opens_nothing_from_the_next_request_on(
    world: World, clock: MovableClock
) -> None:
    blue = await _blue_id(world)
    first = await lend(world, blue, LENT)
    await world.boss.ok(_red(world, f"delegations/{first['id']}/revoke"))
    again = await world.boss.ok(_red(world, f"delegations/{first['id']}/revoke"))
    assert (again["state"], again["effective"], again["revoked_by"]) == ("revoked", [], world.boss_id)
    check_problem(await world.blue_controller.get(_red(world, "instances")), 404, "not_found")
    await lend(world, blue, LENT, expires_in_s=60)
    assert (await world.blue_controller.get(_red(world, "instances"))).status_code == 200
    clock.forward(61)
    check_problem(await world.blue_controller.get(_red(world, "instances")), 404, "not_found")
    told = rows(world.platform, "select type from events where type like 'tenancy.delegation.%' order by sequence")
    assert [event["type"].rsplit(".", 1)[1] for event in told] == ["created", "revoked", "created"]


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"permissions": ["iam.service_account.create"]}, 422, "permission_not_lendable"),
        ({"permissions": ["platform.break_glass.open"]}, 422, "permission_not_lendable"),
        ({"permissions": ["iam.delegation.create"]}, 422, "permission_not_lendable"),
        ({"permissions": ["made.up.key"]}, 422, "permission_unknown"),
        ({"permissions": ["apps.operation.work"]}, 403, "grant_exceeds_own"),
        ({"expires_in_s": 90 * DAY_S + 1}, 422, "invalid_request"),
        ({"grantee_id": "sa_" + "0" * 26}, 404, "not_found"),
        ({"grantee_id": "viewer"}, 404, "not_found"),
    ],
    ids=str,
)
async def test_what_cannot_be_lent_is_refused(world: World, changes: dict[str, Any], status: int, code: str) -> None:
    lead, _ = await add_user(world, "lead@acme.example", "project_admin", project=world.red)
    body = {"grantee_id": await _blue_id(world), "permissions": LENT, "reason": "why not", "expires_in_s": DAY_S}
    if changes.get("grantee_id") == "viewer":
        changes = {"grantee_id": world.viewer_id}
    check_problem(await lead.post(_red(world, "delegations"), body | changes), status, code)
    assert rows(world.platform, "select id from delegations") == []


async def test_a_loan_is_not_lent_on(world: World) -> None:
    """Even if an account has both a loan and the right to lend in its own project."""
    await lend(world, world.controller_id, ["apps.operation.retry"])
    role = {"principal_id": world.controller_id, "role": "project_admin", "project_id": world.red}
    await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings", role)
    rule = rows(world.platform, "select id from role_bindings where principal_id = :p", p=world.controller_id)
    assert len(rule) == 2
    body = {"grantee_id": world.second_id, "permissions": ["catalog.entitlement.create"], "reason": "on and on"}
    refused = await world.controller.post(_red(world, "delegations"), body | {"expires_in_s": DAY_S})
    check_problem(refused, 403, "grant_exceeds_own")


async def test_explain_says_on_whose_behalf(world: World) -> None:
    blue = await _blue_id(world)
    made = await lend(world, blue, LENT)
    query = f"?permission=apps.instance.read&principal_id={blue}"
    told = (await world.boss.get(_red(world, f"explain{query}"))).json()
    assert (told["allowed"], told["decided_by"]) == (True, "delegation")
    assert world.boss_id in told["reason"]
    assert [(rule["kind"], rule["id"]) for rule in told["matched"]] == [("delegation", made["id"])]
    myself = f"/v1/whoami/explain?permission=apps.instance.read&project_id={world.red}"
    assert (await world.blue_controller.get(myself)).json()["decided_by"] == "delegation"


TENANT, RED, BLUE = ("tenant", "t1"), ("project", "red"), ("project", "blue")
SCOPES = [
    Scope(),
    Scope((TENANT, PLATFORM), tenant_id="t1"),
    Scope((RED, TENANT, PLATFORM), tenant_id="t1", project_id="red"),
    Scope((BLUE, TENANT, PLATFORM), tenant_id="t1", project_id="blue"),
]


def test_in_many_worlds_a_loan_never_gives_more_than_its_lender_has() -> None:
    keys, places = sorted(PERMISSIONS), [PLATFORM, TENANT, RED, BLUE]
    lent = 0
    for seed in range(5000):
        dice = random.Random(seed)
        scope, key = dice.choice(SCOPES), dice.choice(keys)

        def bindings(dice: random.Random = dice) -> tuple[Binding, ...]:
            some = range(dice.randrange(3))
            return tuple(Binding(dice.choice(list(ROLES)), dice.choice(places), f"b{n}") for n in some)

        lender = Principal("l", "user", "L", bindings=bindings())
        loan = Grant("g", DELEGATION, dice.choice([RED, BLUE]), frozenset([*dice.sample(keys, 8), key]), lender)
        me = Principal("p", "service_account", "P", project_id="blue", bindings=bindings(), grants=(loan,))
        bare = Principal("p", "service_account", "P", project_id="blue", bindings=me.bindings)
        denies = [Deny("d", dice.choice(places), [dice.choice(keys)])] if dice.random() < 0.3 else []
        with_loan, without = evaluate(me, key, scope, denies), evaluate(bare, key, scope, denies)
        assert without.allowed <= with_loan.allowed
        if with_loan.allowed and not without.allowed:
            lent += 1
            assert loan.place in scope.chain, "a loan reached further than it was given for"
            assert evaluate(lender, key, scope, denies).allowed or with_loan.decided_by == "everybody"
            assert not any(rule.place in scope.chain and covers(rule, key) for rule in denies)
            assert with_loan.via == loan
    assert lent > 100, "green because nothing was lent"


def test_deciding_who_may_do_what_is_never_lent() -> None:
    assert {key for key in PERMISSIONS if key.startswith(("iam.", "platform."))} <= UNLENDABLE
