"""A change that is refused across a project or tenant boundary: 404 to the caller, a row for the tenant it was aimed at."""

import copy
from typing import Any

import pytest
from gpuaas_core.http import strangers

from core.tests.authz.test_boundaries import _other_tenant  # pyright: ignore[reportPrivateUsage]
from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import Api, MovableClock, World, add_user
from core.tests.support.store_rows import dump, rows


async def _stranger(world: World) -> tuple[Api, str]:
    api = await _other_tenant(world)
    return api, (await api.get("/v1/whoami")).json()["principal"]["id"]


async def _trail(world: World, correlation_id: str) -> list[dict[str, Any]]:
    """As the tenant's own administrator finds it."""
    path = f"/v1/tenants/{world.tenant}/audit?correlation_id={correlation_id}"
    return (await world.boss.get(path)).json()["items"]


def _row(found: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = found
    return row


async def test_it_is_found_by_its_correlation_id_in_the_tenant_it_was_aimed_at(world: World) -> None:
    mallory, mallory_id = await _stranger(world)
    instance = await world.running()
    refused = check_problem(await mallory.post(world.of(instance, "decommission")), 404, "not_found")
    row = _row(await _trail(world, refused["correlation_id"]))
    told = {
        name: row[name] for name in ("actor_id", "actor_kind", "permission", "outcome", "project_id", "resource_id")
    }
    assert told == {
        "actor_id": mallory_id,
        "actor_kind": "user",
        "permission": "apps.instance.decommission",
        "outcome": "denied",
        "project_id": world.red,
        "resource_id": instance["id"],
    }
    assert row["reason"] == strangers.REASON
    shown = (await world.boss.get(f"/v1/triage/{refused['correlation_id']}")).json()
    assert any(entry["kind"] == "decision" for entry in shown["timeline"])
    assert (await world.boss.get(f"/v1/tenants/{world.tenant}/audit/verify")).json()["ok"]


async def test_the_caller_learns_nothing_of_it(world: World) -> None:
    mallory, _ = await _stranger(world)
    there = check_problem(await mallory.post(f"/v1/projects/{world.red}/service-accounts", {}), 404, "not_found")
    nowhere = check_problem(await mallory.post("/v1/projects/prj_none/service-accounts", {}), 404, "not_found")
    assert there["detail"] == nowhere["detail"]
    assert await _trail(world, there["correlation_id"])
    for id_ in (there["correlation_id"], nowhere["correlation_id"]):
        check_problem(await mallory.get(f"/v1/triage/{id_}"), 404, "not_found")


async def test_it_says_nothing_of_the_callers_own_tenant(world: World) -> None:
    mallory, _ = await _stranger(world)
    me = (await mallory.get("/v1/whoami")).json()
    refused = await mallory.post(f"/v1/tenants/{world.tenant}/projects", {"slug": "mine", "name": "Mine"})
    found = str(await _trail(world, refused.json()["correlation_id"]))
    for secret in (me["principal"]["name"], me["principal"]["email"], me["principal"]["tenant_id"]):
        assert secret not in found


async def test_a_read_leaves_no_row(world: World) -> None:
    mallory, _ = await _stranger(world)
    before = dump(world.platform)
    check_problem(await mallory.get(f"/v1/projects/{world.red}"), 404, "not_found")
    check_problem(await mallory.get(f"/v1/tenants/{world.tenant}/audit"), 404, "not_found")
    assert dump(world.platform) == before


async def test_another_project_of_the_same_tenant_is_across_a_boundary_too(world: World) -> None:
    instance = await world.running()
    refused = await world.blue_controller.post(world.of(instance, "observation", "access-grants"), {})
    row = _row(await _trail(world, refused.json()["correlation_id"]))
    assert (row["permission"], row["actor_kind"], row["project_id"]) == (
        "apps.access.grant",
        "service_account",
        world.red,
    )


async def test_a_foreign_thing_below_ones_own_project_is_told_to_its_owner(world: World) -> None:
    instance = await world.running()
    blue_admin, _ = await add_user(world, "blue-lead@acme.example", "project_admin", project=world.blue)
    path = f"/v1/projects/{world.blue}/instances/{instance['id']}/decommission"
    refused = check_problem(await blue_admin.post(path), 404, "not_found")
    row = _row(await _trail(world, refused["correlation_id"]))
    assert (row["project_id"], row["resource_id"]) == (world.red, instance["id"])
    mallory, _ = await _stranger(world)
    theirs = (await mallory.get("/v1/projects")).json()["items"]
    if not theirs:
        tenant = (await mallory.get("/v1/whoami")).json()["principal"]["tenant_id"]
        theirs = [await mallory.ok(f"/v1/tenants/{tenant}/projects", {"slug": "own", "name": "Own"})]
    path = f"/v1/projects/{theirs[0]['id']}/instances/{instance['id']}/decommission"
    refused = check_problem(await mallory.post(path), 404, "not_found")
    row = _row(await _trail(world, refused["correlation_id"]))
    assert (row["outcome"], row["project_id"], row["resource_id"]) == ("denied", world.red, instance["id"])
    check_problem(await mallory.get(f"/v1/triage/{refused['correlation_id']}"), 404, "not_found")


async def test_what_does_not_exist_leaves_no_row(world: World) -> None:
    before = dump(world.platform)
    path = f"/v1/projects/{world.red}/instances/inst_01m7mvhm8ddn65y6yt7jraxbs9/decommission"
    check_problem(await world.boss.post(path), 404, "not_found")
    assert dump(world.platform) == before


async def test_a_stranger_cannot_flood_a_trail(world: World, clock: MovableClock) -> None:
    """One row a minute for the same caller, permission and target; the next one says how many there were."""
    mallory, mallory_id = await _stranger(world)
    mine = "select count(*) as n from audit where actor_id = :me and tenant_id = :tenant"
    path = f"/v1/projects/{world.red}/service-accounts"
    for number in range(30):
        await mallory.post(f"{path}/sa_{number}/delete")
    assert rows(world.platform, mine, me=mallory_id, tenant=world.tenant)[0]["n"] == 1
    clock.forward(61)
    refused = (await mallory.post(f"{path}/sa_1/delete")).json()
    assert "29 more" in _row(await _trail(world, refused["correlation_id"]))["reason"]


@pytest.mark.parametrize("people", [1, 3])
async def test_a_tenant_with_many_accounts_floods_no_other_tenants_trail(world: World, people: int) -> None:
    mallory, _ = await _stranger(world)
    tenant = (await mallory.get("/v1/whoami")).json()["principal"]["tenant_id"]
    callers = [mallory]
    for number in range(people - 1):
        name = f"friend{number}@evil.example"
        callers.append((await add_user(_at(world, tenant), name, None, by=mallory))[0])
    keys = ("service-accounts", "delegations", "instances", "allocations", "entitlements", "credentials")
    for caller in callers:
        for key in keys:
            for project in (world.red, world.blue):
                await caller.post(f"/v1/projects/{project}/{key}", {})
    query = "select count(*) as n from audit where tenant_id = :tenant and reason like :why"
    written = rows(world.platform, query, tenant=world.tenant, why=f"{strangers.REASON}%")[0]["n"]
    assert 0 < written <= strangers.MOST_PER_TENANT


def _at(world: World, tenant: str) -> World:
    other = copy.copy(world)
    other.tenant = tenant
    return other


async def test_a_refusal_inside_a_read_is_audited(world: World) -> None:
    """A plan is a read; what it is refused for is the same right as of the act."""
    instance = await world.several(world.allocations[1], *await world.more_machines(1))
    member = next(one for one in instance["members"] if one["component_key"] == "worker")
    keys = ["tenancy.project.read", "apps.instance.read", "apps.member.remove"]
    await world.boss.ok(f"/v1/tenants/{world.tenant}/roles", {"name": "remover", "permissions": keys})
    ruth, _ = await add_user(world, "ruth@acme.example", "remover", project=world.red)
    body = {"host_is_gone": True, "validate_only": True, "reason": "burnt"}
    refused = await ruth.post(world.of(instance, "members", member["id"], "remove"), body)
    problem = check_problem(refused, 403, "permission_denied")
    row = _row(await _trail(world, problem["correlation_id"]))
    assert (row["outcome"], row["permission"]) == ("denied", "apps.member.remove")
