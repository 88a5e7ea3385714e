"""An instance that one service account operates: no other controller touches it, and there is always a way out."""

from typing import Any

import pytest

from core.tests.http.test_bad_input import check_problem
from core.tests.instances.test_observations import enter, look
from core.tests.support.fixtures import World


async def operated(world: World) -> Any:
    """Running, and operated by the second controller."""
    made = (await world.deploy(operator_id=world.second_id))["instance"]
    assert made["operator_id"] == world.second_id
    claim = await world.claim(by=world.second)
    body = {"claim_epoch": claim["claim_epoch"]}
    body |= {"members": [{"member_id": m["id"], "state": "ready"} for m in claim["instance"]["members"]]}
    await world.second.ok(world.operation(claim["operation"]["id"], "complete"), body)
    return await world.instance(made["id"])


async def test_only_its_operator_is_given_its_operations(world: World) -> None:
    accepted = await world.deploy(operator_id=world.second_id)
    assert await world.claim() is None
    other = await world.deploy(world.allocations[1], "second")
    assert (await world.claim())["operation"]["id"] == other["operation"]["id"], (
        "work without a named operator goes to any controller"
    )
    assert (await world.claim(by=world.second))["operation"]["id"] == accepted["operation"]["id"]


async def test_a_lease_that_is_over_goes_to_no_other_account(world: World, clock: Any) -> None:
    await world.deploy(operator_id=world.second_id)
    assert (await world.claim(by=world.second))["claim_epoch"] == 1
    clock.forward(31)
    assert await world.claim("controller-b") is None
    assert (await world.claim("controller-b", by=world.second))["claim_epoch"] == 2


async def test_only_its_operator_looks_at_it_between_operations(world: World) -> None:
    instance = await operated(world)
    for asked in (look(world, instance), enter(world, instance, world.allocations[0])):
        refused = check_problem(await asked, 403, "observer_not_controller")
        assert "another service account" in refused["detail"]
    assert (await look(world, instance, by=world.second)).status_code == 200


@pytest.mark.parametrize("way_out", ["disable", "delete"])
async def test_an_operator_that_is_gone_blocks_no_way_out(world: World, way_out: str) -> None:
    instance = await operated(world)
    await world.decommission(instance["id"])
    assert await world.claim() is None
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.second_id}/{way_out}")
    assert (await world.claim())["operation"]["kind"] == "decommission"


async def refused(world: World, account: str, words: str) -> None:
    for more in ({}, {"validate_only": True}):
        body = world.deploy_body(world.allocations[0], operator_id=account, **more)
        problem = check_problem(
            await world.boss.post(f"/v1/projects/{world.red}/instances", body), 422, "operator_unusable"
        )
        assert words in problem["detail"]
        assert "service-account list" in problem["way_out"]


async def test_an_account_that_cannot_operate_is_refused_at_the_deploy(world: World) -> None:
    accounts = f"/v1/projects/{world.red}/service-accounts"
    await refused(world, world.boss_id, "is not a service account of this project")
    await refused(world, "sa_01k9vnknown000000000000000", "is not a service account of this project")
    (elsewhere,) = (await world.boss.get(f"/v1/projects/{world.blue}/service-accounts")).json()["items"]
    await refused(world, elsewhere["id"], "is not a service account of this project")
    key = (await world.boss.get(f"{accounts}/{world.second_id}/keys")).json()["items"][0]
    reads = {"name": "reads-only", "public_jwk": key["public_jwk"], "roles": ["project_viewer"]}
    await refused(world, (await world.boss.ok(accounts, reads))["id"], "may not work on operations")
    await world.boss.ok(f"{accounts}/{world.second_id}/disable")
    await refused(world, world.second_id, "is disabled")
