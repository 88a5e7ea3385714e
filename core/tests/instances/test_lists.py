"""Lists ask once, not per item: a page of 50 takes as many statements as a page of 5. They show what the views show."""

from typing import Any

import pytest
from gpuaas_core.instances import reads, views
from gpuaas_core.instances.schemas import InstanceView, MemberView
from gpuaas_core.instances.tables import instances, members
from gpuaas_core.kit.db import metadata
from gpuaas_core.operations.tables import operations
from sqlalchemy import Connection, Table, select, update

from core.tests.support.fixtures import World
from core.tests.tenancy.test_visible_projects import counted

CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT")


def copied(tx: Connection, table: Table, row_id: str, **changes: Any) -> None:
    row = dict(tx.execute(select(table).where(table.c.id == row_id)).one()._mapping)
    tx.execute(table.insert().values(**(row | changes)))


async def failed_deploy(world: World) -> dict[str, Any]:
    accepted = await world.deploy()
    await world.fail(await world.claim())
    return accepted


async def fill(world: World, accepted: dict[str, Any], count: int) -> None:
    """So many more instances like the first, each with its members and its failed deploy."""
    first, operation = accepted["instance"], accepted["operation"]["id"]

    def add(tx: Connection) -> None:
        for number in range(count):
            instance_id, operation_id = f"inst_copy{number:03d}", f"op_copy{number:03d}"
            copied(tx, instances, first["id"], id=instance_id, name=f"copy-{number}", last_operation_id=operation_id)
            copied(tx, operations, operation, id=operation_id, target_id=instance_id, lock_key=instance_id)
            for place, member in enumerate(first["members"]):
                new = {"id": f"mem_copy{number:03d}{place}", "instance_id": instance_id}
                copied(tx, members, member["id"], **new, last_operation_id=operation_id)

    world.platform.db.write_now(add)


async def asked(world: World, path: str, limit: int) -> list[str]:
    with counted(world.platform) as seen:
        answer = await world.boss.get(f"/v1/projects/{world.red}/{path}limit={limit}")
    assert answer.status_code == 200
    assert len(answer.json()["items"]) == limit
    return [statement for statement, _ in seen if not statement.startswith(CONTROL)]


@pytest.mark.parametrize("path", ["operations?", "instances?", "instances?members=0&", "instances?members=1&"])
async def test_a_long_page_takes_as_many_statements_as_a_short_one(world: World, path: str) -> None:
    await fill(world, await failed_deploy(world), 55)
    await asked(world, path, 5)  # reads the app's manifest, once per process
    short, long = await asked(world, path, 5), await asked(world, path, 50)
    assert len(long) == len(short), long


async def test_the_items_of_a_page_are_as_each_is_by_itself(world: World) -> None:
    accepted = await failed_deploy(world)
    await fill(world, accepted, 3)
    for noun in ("instances", "operations"):
        page = (await world.boss.get(f"/v1/projects/{world.red}/{noun}")).json()["items"]
        assert len(page) == 4
        for item in page:
            assert (await world.boss.get(f"/v1/projects/{world.red}/{noun}/{item['id']}")).json() == item
    page = (await world.boss.get(f"/v1/projects/{world.red}/operations")).json()["items"]
    retry = {item["id"]: item["available_actions"][0] for item in page}
    assert all(action == {"action": "retry", "allowed": True, "reason": ""} for action in retry.values())


async def test_a_member_in_a_list_and_in_its_instance_is_as_it_is_by_itself(world: World) -> None:
    """The list is encoded without the model, so every member is compared with its own page, idle and at work."""
    accepted = await failed_deploy(world)
    for _ in ("failed", "queued again"):
        path = f"/v1/projects/{world.red}/instances/{accepted['instance']['id']}"
        page = (await world.boss.get(f"{path}/members")).json()["items"]
        assert len(page) == 2
        assert (await world.boss.get(path)).json()["members"] == page
        for item in page:
            shown = (await world.boss.get(f"{path}/members/{item['id']}")).json()
            assert shown == item
            assert list(shown) == list(item)
        await world.boss.post(f"/v1/projects/{world.red}/operations/{accepted['operation']['id']}/retry")


ODD = {"text": 'é "quoted" \\ \u2028 \n', "large": 10**30, "small": 1e-7, "float": 1e16, "nested": [{"x": None}]}


async def test_a_read_and_a_list_show_the_same_as_the_views(world: World) -> None:
    """Reads encode rows without building the views of the published schema, so both are compared here."""
    instance = await world.several(world.allocations[1])
    condition = {"type": "Ready", "status": "True", "reason": "é", "message": "", "observed_generation": None}
    changes = {"inputs": ODD, "access": ODD, "adapter_detail": ODD}
    conditions = [condition | {"last_transition_at": 1_700_000_000_123}]

    def change(tx: Connection) -> None:
        tx.execute(update(instances).values(**changes, conditions=conditions))
        tx.execute(update(members).where(members.c.component_key == "head").values(adapter_detail=ODD))
        tx.execute(update(metadata.tables["nodes"]).values(facts=ODD))

    world.platform.db.write_now(change)
    for _ in range(3):  # the statements are prepared when they are sent for the second time
        await compare(world, instance["id"])
    await world.boss.ok(world.of(instance, "restart"))
    await compare(world, instance["id"])
    await world.claim()
    await compare(world, instance["id"])


async def compare(world: World, instance_id: str) -> None:
    def views_of(tx: Connection) -> tuple[InstanceView, list[MemberView]]:
        row = reads.instance_row(tx, world.red, instance_id)
        view = views.instance_view(tx, row)
        return view, [views.member_view(tx, row, one) for one in reads.members_of(tx, instance_id)]

    view, members_of = world.platform.db.read_now(views_of)
    path = f"/v1/projects/{world.red}/instances/{instance_id}"
    read, listed = await world.boss.get(path), await world.boss.get(f"{path}/members")
    assert (read.text, read.headers["etag"]) == (view.model_dump_json(), view.etag)
    items = listed.json()["items"]
    assert items == [one.model_dump(mode="json") for one in members_of]
    assert [list(one) for one in items] == [list(MemberView.model_fields)] * len(items)
