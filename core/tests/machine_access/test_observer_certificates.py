"""Certificates to observe: one hour, no event, one audit row per machine, account and day, and never waited for."""

from typing import Any

from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.background.trust_maintenance import keep
from gpuaas_core.capacity.holds import hold, holders_of
from gpuaas_core.capacity.rows import Holder

from core.tests.support.fixtures import HOST_KEY, MovableClock, World
from core.tests.support.store_rows import one, rows

DAY_S = 24 * 3600


async def observe(world: World, instance: Any) -> dict[str, Any]:
    body = {"allocation_id": instance["members"][0]["allocation_id"], "ssh_public_key": HOST_KEY}
    return await world.controller.ok(world.of(instance, "observation", "access-grants"), body)


def audited(world: World) -> int:
    found = "select count(*) as n from audit where permission = 'apps.access.grant' and actor_id = :who"
    return one(world.platform, found, who=world.controller_id)


async def test_observing_all_day_leaves_one_audit_row_and_no_event(world: World) -> None:
    instance = await world.running()
    before, events = audited(world), rows(world.platform, "select id from events")
    grants = [await observe(world, instance) for _ in range(3)]
    assert {grant["expires_in_s"] for grant in grants} == {3600}
    assert len({grant["certificate"] for grant in grants}) == 3
    assert audited(world) == before + 1
    assert rows(world.platform, "select id from events") == events
    yesterday = f"update access_grants set created_at = created_at - {DAY_S * 1000}"
    world.platform.db.write_now(lambda tx: tx.exec_driver_sql(yesterday))
    await observe(world, instance)
    assert audited(world) == before + 2


async def test_grants_are_deleted_thirty_days_after_they_ended(world: World, clock: MovableClock) -> None:
    instance = await world.running()
    await observe(world, instance)
    counted = "select count(*) as n from access_grants"
    there = one(world.platform, counted)
    clock.forward(30 * DAY_S)
    tidy(world.platform, world.platform.clock())
    assert one(world.platform, counted) == there
    clock.forward(3600 + 1)
    tidy(world.platform, world.platform.clock())
    assert one(world.platform, counted) == 0


async def test_a_rotation_revokes_certificates_to_observe_instead_of_waiting(world: World) -> None:
    instance = await world.running()
    grant = await observe(world, instance)
    await world.boss.ok(f"/v1/tenants/{world.tenant}/ssh-authorities/rotate", {"purpose": "host"})
    keep(world.platform)
    why = one(world.platform, "select revoke_reason from access_grants where id = :g", g=grant["id"])
    assert why == "an SSH authority is rotated"
    assert (await observe(world, instance))["host_ca_public_keys"] != grant["host_ca_public_keys"]


async def test_an_allocation_has_one_holder(world: World) -> None:
    instance = await world.running()
    allocation = instance["members"][0]["allocation_id"]
    db = world.platform.db
    assert not db.write_now(lambda tx: hold(tx, [allocation], Holder("survey", "srv_1")))
    held = db.read_now(lambda tx: holders_of(tx, [allocation]))
    assert held == {allocation: Holder("instance", instance["id"])}
    owner = one(
        world.platform, "select owner_kind || '/' || owner_id as o from allocations where id = :a", a=allocation
    )
    assert owner == f"project/{world.red}"
