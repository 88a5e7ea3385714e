"""Break-glass: announced, recorded request by request, short, and never more than its table says."""

from typing import Any

import pytest
from gpuaas_core.authz.permissions import BREAK_GLASS, NEEDS_APPROVAL
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.iam.bindings import bind
from gpuaas_core.iam.states import BREAK_GLASS as LIFE
from sqlalchemy import text

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import Api, MovableClock, World, add_user
from core.tests.support.store_rows import one, rows

ASKED = {"mode": "look", "reason": "deploys hang", "ticket": "OPS-17", "minutes": 30}


async def open_glass(world: World, by: Api | None = None, **more: Any) -> Any:
    return await (by or world.admin).ok("/v1/platform/break-glass", ASKED | {"tenant_id": world.tenant} | more)


async def second_admin(world: World) -> Api:
    api, user = await add_user(world, "second@acme.example", None)
    move = text("update principals set tenant_id = null where id = :id")
    world.platform.db.write_now(lambda tx: tx.execute(move, {"id": user}))
    world.platform.db.write_now(lambda tx: bind(tx, user, "platform_admin", "platform", "*", None, 1))
    return api


def _red(world: World, noun: str) -> str:
    return f"/v1/projects/{world.red}/{noun}"


def _told(world: World) -> list[str]:
    found = rows(
        world.platform,
        "select type from events where tenant_id = :t and type like 'tenancy.break_glass.%' order by sequence",
        t=world.tenant,
    )
    return [row["type"].rsplit(".", 1)[1] for row in found]


async def test_looking_begins_at_once_ends_on_time_and_the_tenant_knows_it_all(
    world: World, clock: MovableClock
) -> None:
    check_problem(await world.admin.get(_red(world, "instances")), 404, "not_found")
    glass = await open_glass(world)
    assert glass["state"] == "active"
    looked = {"X-Correlation-Id": "looked-through"}
    assert (await world.admin.get(_red(world, "instances"), headers=looked)).status_code == 200
    (row,) = rows(world.platform, "select * from audit where correlation_id = 'looked-through'")
    assert (row["tenant_id"], row["via"], row["on_behalf_of"]) == (world.tenant, glass["id"], None)
    assert glass["id"] in row["reason"]
    refused = await world.admin.post(_red(world, "instances"), world.deploy_body(world.allocations[0]))
    check_problem(refused, 403, "permission_denied")
    denied = one(
        world.platform, "select via from audit where outcome = 'denied' and actor_id = :a", a=glass["opened_by"]
    )
    assert denied == glass["id"]
    clock.forward(30 * 60 - 5)
    assert (await world.admin.get(_red(world, "instances"))).status_code == 200
    clock.forward(6)
    check_problem(await world.admin.get(_red(world, "instances")), 404, "not_found")
    assert _told(world) == ["opened"]
    for _ in range(2):
        tidy(world.platform, world.platform.clock())
    assert _told(world) == ["opened", "expired"]
    trail = rows(
        world.platform,
        "select permission, via from audit where tenant_id = :t and resource_id = :g order by sequence",
        t=world.tenant,
        g=glass["id"],
    )
    assert [(entry["permission"], entry["via"]) for entry in trail] == [
        ("platform.break_glass.open", None),
        ("platform.housekeeping", glass["id"]),
    ]
    (listed,) = (await world.boss.get(f"/v1/tenants/{world.tenant}/break-glass")).json()["items"]
    assert (listed["state"], listed["reason"], listed["ticket"]) == ("expired", "deploys hang", "OPS-17")
    assert (await world.boss.get(f"/v1/tenants/{world.tenant}/audit/verify")).json()["ok"]


async def test_acting_waits_for_a_second_administrator(world: World) -> None:
    accepted = await world.deploy()
    await world.fail(await world.claim())
    retry = world.operation(accepted["operation"]["id"], "retry")
    glass = await open_glass(world, mode="operate")
    assert glass["state"] == "awaiting_approval"
    check_problem(await world.admin.post(retry), 404, "not_found")
    approve = f"/v1/platform/break-glass/{glass['id']}/approve"
    check_problem(await world.admin.post(approve), 403, "second_person_needed")
    other = await second_admin(world)
    active = await other.ok(approve)
    assert (active["state"], active["approved_by"] != active["opened_by"]) == ("active", True)
    check_problem(await other.post(approve), 409, "wrong_state")
    check_problem(await other.post(retry), 404, "not_found")
    await world.admin.ok(retry, headers={"X-Correlation-Id": "acted-through"})
    (row,) = rows(world.platform, "select * from audit where correlation_id = 'acted-through'")
    assert (row["via"], row["outcome"]) == (glass["id"], "allowed")
    assert (await world.admin.ok(f"/v1/platform/break-glass/{glass['id']}/close"))["state"] == "closed"
    check_problem(await world.admin.get(_red(world, "instances")), 404, "not_found")
    assert _told(world) == ["requested", "opened", "closed"]


async def test_a_request_without_approval_lapses(world: World, clock: MovableClock) -> None:
    glass, other = await open_glass(world, mode="operate"), await second_admin(world)
    clock.forward(3601)
    approve = f"/v1/platform/break-glass/{glass['id']}/approve"
    check_problem(await other.post(approve), 409, "wrong_state")
    tidy(world.platform, world.platform.clock())
    check_problem(await other.post(approve), 409, "wrong_state")
    assert _told(world) == ["requested", "expired"]


async def test_it_opens_one_tenant_and_not_another(world: World) -> None:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    await open_glass(world, tenant_id=other)
    check_problem(await world.admin.get(_red(world, "instances")), 404, "not_found")


async def test_who_is_no_platform_administrator_any_more_looks_through_nothing(world: World) -> None:
    other = await second_admin(world)
    await open_glass(world, by=other)
    assert (await other.get(_red(world, "instances"))).status_code == 200
    lose = text("delete from role_bindings where principal_id = :p")
    me = (await other.get("/v1/whoami")).json()["principal"]["id"]
    world.platform.db.write_now(lambda tx: tx.execute(lose, {"p": me}))
    check_problem(await other.get(_red(world, "instances")), 404, "not_found")


async def test_explain_names_it_to_the_tenant(world: World) -> None:
    glass = await open_glass(world)
    query = f"?permission=apps.instance.read&principal_id={glass['opened_by']}"
    told = (await world.boss.get(_red(world, f"explain{query}"))).json()
    assert (told["allowed"], told["decided_by"]) == (True, "break_glass")
    assert glass["id"] in told["reason"]
    await world.admin.ok(f"/v1/platform/break-glass/{glass['id']}/close")
    check_problem(await world.boss.get(_red(world, f"explain{query}")), 404, "not_found")


@pytest.mark.parametrize(
    "changes", [{"minutes": 61}, {"minutes": 0}, {"mode": "tenant_admin"}, {"reason": ""}, {"ticket": ""}]
)
async def test_what_is_too_much_is_refused(world: World, changes: dict[str, Any]) -> None:
    refused = await world.admin.post("/v1/platform/break-glass", ASKED | {"tenant_id": world.tenant} | changes)
    check_problem(refused, 422, "invalid_request")


async def test_no_other_role_opens_one(world: World) -> None:
    body = ASKED | {"tenant_id": world.tenant}
    for caller in (world.boss, world.viewer, world.controller):
        check_problem(await caller.post("/v1/platform/break-glass", body), 403, "permission_denied")
    check_problem(await world.viewer.get(f"/v1/tenants/{world.tenant}/break-glass"), 404, "not_found")


def test_what_it_gives_holds_no_credential_and_only_what_waits_can_change_anything() -> None:
    for mode, keys in BREAK_GLASS.items():
        givers = [key for key in keys if "secret" in key or "credential" in key or key.endswith((".grant", ".rotate"))]
        assert givers == []
        assert not [key for key in keys if key.startswith("iam.") and key.rsplit(".", 1)[1] in ("create", "remove")]
        changing = [key for key in keys if key.rsplit(".", 1)[1] not in ("read", "verify", "explain")]
        assert bool(changing) == (mode in NEEDS_APPROVAL)


@pytest.mark.parametrize("state", LIFE.moves)
@pytest.mark.parametrize("action", ["approve", "close"])
async def test_every_state_and_action(world: World, state: str, action: str) -> None:
    glass, other = await open_glass(world, mode="operate"), await second_admin(world)
    put = text("update break_glass set state = :s where id = :g")
    world.platform.db.write_now(lambda tx: tx.execute(put, {"s": state, "g": glass["id"]}))
    answer = await other.post(f"/v1/platform/break-glass/{glass['id']}/{action}")
    if LIFE.allows(state, action):
        assert answer.json()["state"] == LIFE.after(state, action)
    else:
        check_problem(answer, 409, "wrong_state")
