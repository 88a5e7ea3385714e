"""What it costs to admit a request: how many statements, and how many rows for an account with many delegations."""

import pytest
from gpuaas_core.authz.evaluate import Scope
from gpuaas_core.iam.tables import delegations
from gpuaas_core.identity.sessions import authenticate, lend
from gpuaas_core.tenancy.reads import project_with_rules
from sqlalchemy import Connection

from core.tests.support.fixtures import World
from core.tests.tenancy.test_visible_projects import add_projects, counted

ADMITS = ("sessions", "role_bindings", "projects", "deny_rules", "delegations", "break_glass")
CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT")


def _admitting(asked: list[tuple[str, int]]) -> list[str]:
    statements = [statement for statement, _ in asked if not statement.startswith(CONTROL)]
    return [s for s in statements if any(f"FROM {name}" in s or f"JOIN {name}" in s for name in ADMITS)]


@pytest.mark.parametrize("caller", ["boss", "controller"])
async def test_a_request_is_admitted_with_two_statements(world: World, caller: str) -> None:
    deployed = await world.deploy()
    path = f"/v1/projects/{world.red}/instances/{deployed['instance']['id']}"
    with counted(world.platform) as asked:
        assert (await getattr(world, caller).get(path)).status_code == 200
    assert len(_admitting(asked)) == 2


async def test_a_write_reads_only_the_deny_rules_a_second_time(world: World) -> None:
    body = {"name": "watchers", "permissions": ["apps.instance.read"]}
    with counted(world.platform) as asked:
        await world.boss.ok(f"/v1/tenants/{world.tenant}/roles", body)
    read = [s for s in _admitting(asked) if s.lstrip().startswith("SELECT")]
    assert len(read) == 3
    assert "FROM deny_rules" in read[2]


async def test_in_a_project_only_the_delegations_into_it_are_read(world: World) -> None:
    many = add_projects(world, 40, world.tenant)
    row = {"tenant_id": world.tenant, "grantor_id": world.boss_id, "grantee_id": world.controller_id}
    row |= {"permissions": ["apps.instance.read"], "reason": "a test", "created_at": 1}
    later = world.platform.clock() + 60_000
    made = [row | {"id": f"dlg_{place}", "project_id": place, "expires_at": later} for place in many]
    world.platform.db.write_now(lambda tx: tx.execute(delegations.insert(), made))

    def grants(tx: Connection) -> tuple[list[str], int]:
        now = world.platform.clock()
        caller = authenticate(tx, str(world.controller.token), now)
        scope, _ = project_with_rules(tx, many[7])
        everywhere = lend(tx, caller, now, Scope())
        return [grant.id for grant in lend(tx, caller, now, scope).grants], len(everywhere.grants)

    assert world.platform.db.read_now(grants) == ([f"dlg_{many[7]}"], 40)
    assert (await world.controller.get(f"/v1/projects/{many[7]}/instances")).status_code == 200
