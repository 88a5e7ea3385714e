"""A member whose machine is gone: fenced first, removed without it, with a record that it was not cleaned."""

from typing import Any

import pytest

from core.tests.instances.test_instances import check_problem
from core.tests.instances.test_members import add, holds, wide, worker
from core.tests.support.fixtures import HOST_KEY, World
from core.tests.support.store_rows import dump, rows

NOT_CLEANED = {"cleaned": False, "checks": [{"check": "host", "ok": False, "detail": "not reached"}]}

WHY = {"host_is_gone": True, "reason": "it burned"}


async def silent(world: World, member: Any, state: str = "unknown") -> None:
    with world.platform.db.engine.begin() as tx:
        tx.exec_driver_sql(f"update nodes set state = '{state}' where id = '{member['node_id']}'")


async def two_workers(world: World) -> tuple[Any, Any, list[str]]:
    """An instance with two workers, the first on a machine that fell silent; a machine to spare."""
    instance, spare = await wide(world)
    await add(world, instance, spare[0])
    await world.done(await world.claim())
    instance = await world.instance(instance["id"])
    await silent(world, worker(instance))
    return instance, worker(instance), spare[1:]


async def access(world: World, claim: Any, allocation_id: str) -> Any:
    body = {"claim_epoch": claim["claim_epoch"], "allocation_id": allocation_id, "ssh_public_key": HOST_KEY}
    return await world.controller.post(world.operation(claim["operation"]["id"], "access-grants"), body)


async def test_a_member_on_a_dead_machine_is_fenced_and_leaves_a_record_instead_of_a_clean_machine(
    world: World,
) -> None:
    instance, dead, _ = await two_workers(world)
    asked = await world.boss.ok(world.of(instance, "members", dead["id"], "remove"), WHY)
    assert asked["operation"]["params"] == {"host_is_gone": True, "reason": "it burned"}
    claim = await world.claim()
    check_problem(await access(world, claim, dead["allocation_id"]), 409, "host_fenced")
    task = {"claim_epoch": 1, "allocation_id": dead["allocation_id"], "kind": "collect_evidence", "arguments": {}}
    asked_task = await world.controller.post(world.operation(claim["operation"]["id"], "tasks"), task)
    check_problem(asked_task, 409, "host_fenced")
    head = next(m for m in instance["members"] if m["component_key"] == "head")
    assert (await access(world, claim, head["allocation_id"])).status_code < 300, "the others must be told"
    unproven = {"claim_epoch": 1, "members": [{"member_id": dead["id"], "state": "removed"}]}
    refused = await world.controller.post(world.operation(claim["operation"]["id"], "complete"), unproven)
    check_problem(refused, 422, "teardown_evidence_missing")
    await world.done(claim, evidence={dead["allocation_id"]: NOT_CLEANED})
    (orphan,) = (await world.boss.get(f"/v1/projects/{world.red}/orphans")).json()["items"]
    assert (orphan["member_id"], orphan["node_id"], orphan["reason"]) == (dead["id"], dead["node_id"], "it burned")
    assert dead["allocation_id"] not in holds(world)
    again = {"component_key": "worker", "allocation_ids": [dead["allocation_id"]]}
    check_problem(await world.boss.post(world.of(instance, "members"), again), 409, "machine_not_clean")
    told = rows(world.platform, "select type from events where type = 'apps.member.fenced'")
    assert len(told) == 1


async def test_access_that_was_still_open_ends_with_the_fence(world: World) -> None:
    instance, dead, _ = await two_workers(world)
    await world.boss.ok(world.of(instance, "members", dead["id"], "restart"))
    claim = await world.claim()
    assert (await access(world, claim, dead["allocation_id"])).status_code < 300
    await world.fail(claim, "host_unreachable")
    await world.boss.ok(world.of(instance, "members", dead["id"], "remove"), WHY)
    left = rows(world.platform, "select revoke_reason from access_grants where revoked_at is null")
    assert left == []


async def test_the_old_member_of_a_replacement_can_be_on_a_dead_machine(world: World) -> None:
    instance, dead, spare = await two_workers(world)
    path = world.of(instance, "members", dead["id"], "replace")
    await world.boss.ok(path, {"allocation_id": spare[0], **WHY})
    claim = await world.claim()
    check_problem(await access(world, claim, dead["allocation_id"]), 409, "host_fenced")
    assert (await access(world, claim, spare[0])).status_code < 300
    await world.done(claim, evidence={dead["allocation_id"]: NOT_CLEANED})
    (orphan,) = (await world.boss.get(f"/v1/projects/{world.red}/orphans")).json()["items"]
    assert orphan["member_id"] == dead["id"]
    after = await world.instance(instance["id"])
    assert {m["state"] for m in after["members"]} == {"ready"}
    assert spare[0] in {m["allocation_id"] for m in after["members"]}


@pytest.mark.parametrize("state", ["ready", "cordoned", "draining"])
async def test_a_machine_that_reports_is_not_gone_whatever_a_person_says(world: World, state: str) -> None:
    instance, dead, spare = await two_workers(world)
    await silent(world, dead, state)
    before = dump(world.platform)
    path = world.of(instance, "members", dead["id"])
    check_problem(await world.boss.post(f"{path}/remove", WHY), 409, "machine_reports")
    check_problem(await world.boss.post(f"{path}/remove", WHY | {"validate_only": True}), 409, "machine_reports")
    check_problem(await world.boss.post(f"{path}/replace", WHY | {"allocation_id": spare[0]}), 409, "machine_reports")
    assert dump(world.platform) == before


async def test_giving_a_machine_up_needs_a_reason_and_the_right_to_do_without_evidence(world: World) -> None:
    instance, dead, _ = await two_workers(world)
    path = world.of(instance, "members", dead["id"], "remove")
    assert (await world.boss.post(path, {"host_is_gone": True})).status_code == 422
    assert (await world.boss.post(path, {"host_is_gone": True, "reason": " "})).status_code == 422
    deny = {"permissions": ["apps.operation.abandon"], "reason": "evidence or nothing"}
    await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules", deny)
    refused = check_problem(await world.boss.post(path, WHY), 403, "permission_denied")
    assert refused["permission"] == "apps.operation.abandon"
    plan = await world.boss.ok(path, {"validate_only": True})
    assert "fenced" not in plan["plan"]["summary"]


async def test_while_a_machine_is_fenced_nothing_else_goes_on_beside_it(world: World) -> None:
    instance, dead, spare = await two_workers(world)
    other = worker(instance, 1)
    drain = await world.boss.ok(world.of(instance, "members", other["id"], "drain"))
    blocked = check_problem(
        await world.boss.post(world.of(instance, "members", dead["id"], "remove"), WHY), 409, "operation_live"
    )
    assert blocked["operation_id"] == drain["operation"]["id"]
    await world.done(await world.claim())
    fencing = await world.boss.ok(world.of(instance, "members", dead["id"], "remove"), WHY)
    adding = {"component_key": "worker", "allocation_ids": [spare[0]]}
    for path, body in (
        (world.of(instance, "members", other["id"], "undrain"), {}),
        (world.of(instance, "members"), adding),
        (world.of(instance, "restart"), {}),
    ):
        blocked = check_problem(await world.boss.post(path, body), 409, "operation_live")
        assert blocked["operation_id"] == fencing["operation"]["id"]


async def test_an_instance_that_failed_because_of_a_dead_machine_gets_rid_of_it_and_tries_again(world: World) -> None:
    instance, dead, _ = await two_workers(world)
    await world.boss.ok(world.of(instance, "rotate-keys"))
    failed = await world.claim()
    await world.fail(failed, "host_unreachable")
    path = world.of(instance, "members", dead["id"], "remove")
    check_problem(await world.boss.post(path), 409, "wrong_state")
    await world.boss.ok(path, WHY)
    first = await world.claim()
    await world.fail(first, "it_broke")
    again = await world.boss.ok(world.operation(first["operation"]["id"], "retry"))
    assert again["operation"]["params"] == {"host_is_gone": True, "reason": "it burned"}
    await world.done(await world.claim(), evidence={dead["allocation_id"]: NOT_CLEANED})
    await world.boss.ok(world.operation(failed["operation"]["id"], "retry"))
    await world.done(await world.claim())
    assert (await world.instance(instance["id"]))["state"] == "running"
