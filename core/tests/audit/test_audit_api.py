"""The audit trail over HTTP: verified, searched, and closed to those without the key."""

from typing import Any

import pytest
from gpuaas_core.audit import anchoring
from gpuaas_core.audit.tables import audit as audit_table
from sqlalchemy import update

from core.tests.support.audit_trail import run, verified
from core.tests.support.fixtures import World
from core.tests.support.store_rows import one


async def test_everything_people_do_is_chained_denials_too(world: World) -> None:
    await world.running()
    refused = await world.viewer.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[1]))
    assert refused.status_code == 403
    verdict = (await world.boss.get(f"/v1/tenants/{world.tenant}/audit/verify")).json()
    assert verdict["ok"], verdict
    assert verdict["rows"] == one(world.platform, "select count(*) from audit where tenant_id = :t", t=world.tenant)
    assert verdict["anchored_at"] is None
    assert "none is covered by a checkpoint yet" in verdict["sentence"]
    assert set(anchoring.anchor_due(world.platform, everything=True)) == {world.tenant, "platform"}
    verdict = (await world.admin.get(f"/v1/tenants/{world.tenant}/audit/verify")).json()
    assert verdict["ok"]
    assert verdict["anchored"] == verdict["rows"]
    assert verdict["anchored_at"].endswith("Z")
    assert verified(world.platform, "platform").ok


async def test_a_broken_trail_is_an_answer_with_a_sentence(world: World) -> None:
    change = update(audit_table).where(audit_table.c.tenant_id == world.tenant, audit_table.c.sequence == 3)
    world.platform.db.write_now(lambda tx: run(tx, change.values(reason="nothing happened")))
    answer = await world.boss.get(f"/v1/tenants/{world.tenant}/audit/verify")
    assert answer.status_code == 200
    assert answer.json()["ok"] is False
    assert answer.json()["broken"]["sequence"] == 3
    assert answer.json()["broken"]["way_out"]


async def test_the_trail_can_be_searched(world: World) -> None:
    await world.running()
    await world.viewer.post(f"/v1/projects/{world.red}/instances", headers={"X-Correlation-Id": "ticket-4711"})

    async def found(query: str) -> list[dict[str, Any]]:
        answer = await world.boss.get(f"/v1/tenants/{world.tenant}/audit?limit=1000&{query}")
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    everything = await found("")
    (denial,) = await found("outcome=denied")
    assert denial["correlation_id"] == "ticket-4711"
    assert await found("correlation_id=ticket-4711") == [denial]
    assert await found(f"actor={world.viewer_id}") == [denial]
    of_red = await found(f"project={world.red}")
    assert of_red == [row for row in everything if row["project_id"] == world.red] != everything
    apps = await found("permission=apps.")
    assert apps == [row for row in everything if row["permission"].startswith("apps.")] != []
    assert await found("permission=app_") == [], "an underscore is an underscore"
    assert await found(f"permission=apps.&outcome=denied&actor={world.boss_id}") == []


@pytest.mark.parametrize("query", ["actor=%00", "permission=%25", "outcome=maybe", "project=a b", "actor=" + "x" * 200])
async def test_a_senseless_search_is_refused(world: World, query: str) -> None:
    answer = await world.boss.get(f"/v1/tenants/{world.tenant}/audit?{query}")
    assert answer.status_code == 422, answer.text


async def test_verifying_needs_its_own_permission(world: World) -> None:
    for caller, status in ((world.viewer, 404), (world.controller, 404), (world.machine, 404)):
        answer = await caller.get(f"/v1/tenants/{world.tenant}/audit/verify")
        assert answer.status_code == status, answer.text
