"""Which projects a caller sees: chosen by the store as the evaluator would, at a cost that the platform's size does not change."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from gpuaas_core.authz.evaluate import BREAK_GLASS, DELEGATION, PLATFORM, Binding, Grant, Principal, Scope
from gpuaas_core.authz.permissions import ROLES
from gpuaas_core.authz.rules import decide, deny_rules
from gpuaas_core.http.call import Platform
from gpuaas_core.tenancy import visibility
from gpuaas_core.tenancy.tables import projects, tenants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, select

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import World

TENANTS = ["ten_x1", "ten_x2", "ten_x3"]
PROJECTS = {f"prj_x{number}": TENANTS[number // 3] for number in range(9)}
READ = "tenancy.project.read"
CUSTOM = [None, frozenset({READ}), frozenset({"apps.instance.read"})]
PLACES: list[Any] = [PLATFORM, *(("tenant", one) for one in TENANTS), *(("project", one) for one in PROJECTS)]
RULES: list[Any] = [
    [READ],
    ["tenancy.*"],
    ["tenancy.project.*"],
    ["apps.*"],
    ["tenancy.project.create"],
    [],
    "broken",
    None,
]


class Undone(Exception):
    pass


@contextlib.contextmanager
def counted(platform: Platform) -> Iterator[list[tuple[str, int]]]:
    """Every statement that the store is asked, with the rows it gave (SQLite's driver counts none)."""
    asked: list[tuple[str, int]] = []

    def seen(_connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        asked.append((statement, cursor.rowcount))

    engines = (platform.db.engine, platform.db._read_engine)  # pyright: ignore[reportPrivateUsage]
    for engine in engines:
        event.listen(engine, "after_cursor_execute", seen)
    try:
        yield asked
    finally:
        for engine in engines:
            event.remove(engine, "after_cursor_execute", seen)


def add_projects(world: World, count: int, tenant_id: str, first: str = "many") -> list[str]:
    made = [f"prj_{first}{number:05d}" for number in range(count)]
    rows = [
        {"id": one, "tenant_id": tenant_id, "slug": f"{first}-{one[-5:]}", "name": one, "created_at": 1} for one in made
    ]
    world.platform.db.write_now(lambda tx: tx.execute(projects.insert(), rows))
    return made


def add_tenant(world: World, tenant_id: str) -> str:
    row = {"id": tenant_id, "slug": tenant_id.replace("_", "-"), "name": tenant_id, "created_at": 1}
    world.platform.db.write_now(lambda tx: tx.execute(tenants.insert().values(**row)))
    return tenant_id


# --- the store chooses what the evaluator would

bindings = st.builds(
    Binding, st.sampled_from([*ROLES, "of their own"]), st.sampled_from(PLACES), custom=st.sampled_from(CUSTOM)
)
homes = st.sampled_from([None, *PROJECTS])


def people(grants: Any) -> Any:
    return st.builds(
        Principal,
        st.sampled_from(["usr_1", "usr_2", "usr_3"]),
        st.just("user"),
        st.just("x"),
        project_id=homes,
        bindings=st.lists(bindings, max_size=4).map(tuple),
        grants=grants,
    )


lenders = st.lists(people(st.just(())), min_size=1, max_size=3, unique_by=lambda one: one.id)


def loans(who: list[Principal]) -> Any:
    return st.builds(
        Grant,
        st.just("dlg_1"),
        st.sampled_from([DELEGATION, BREAK_GLASS]),
        st.sampled_from(PLACES[1:]),
        st.sampled_from([frozenset({READ}), frozenset({"apps.instance.read"})]),
        st.sampled_from(who),
    )


callers = people(lenders.flatmap(lambda who: st.lists(loans(who), max_size=5)).map(tuple))
denials = st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(RULES)), max_size=3)


def _settle(tx: Connection, rules: list[Any]) -> None:
    tx.execute(tenants.insert(), [{"id": one, "slug": one, "name": one, "created_at": 1} for one in TENANTS])
    rows = [{"id": p, "tenant_id": t, "slug": p, "name": p, "created_at": 1} for p, t in PROJECTS.items()]
    tx.execute(projects.insert(), rows)
    for number, ((kind, where), keys) in enumerate(rules):
        rule = {"id": f"deny_{number}", "scope_kind": kind, "scope_id": where, "permissions": keys}
        tx.execute(deny_rules.insert().values(**rule, reason="", created_by="usr_1", created_at=1))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(caller=callers, rules=denials)
def test_the_store_chooses_exactly_the_projects_that_the_evaluator_allows(
    platform: Platform, caller: Principal, rules: list[Any]
) -> None:
    def compare(tx: Connection) -> None:
        _settle(tx, rules)
        every = tx.execute(select(projects).order_by(projects.c.id)).all()
        chosen = {row.id for row in visibility.projects_seen(tx, caller).all(tx)}
        places = {p.id: ((("project", p.id), ("tenant", p.tenant_id), PLATFORM), p.tenant_id) for p in every}
        allowed = {
            one
            for one, (chain, tenant) in places.items()
            if decide(tx, caller, READ, Scope(chain, tenant_id=tenant, project_id=one)).allowed
        }
        assert chosen == allowed
        raise Undone

    with pytest.raises(Undone):
        platform.db.write_now(compare)


# --- the cost


@pytest.mark.parametrize("path", ["/v1/whoami", "/v1/projects", "/v1/projects?limit=1"])
async def test_projects_of_other_tenants_cost_a_caller_nothing(world: World, path: str) -> None:
    with counted(world.platform) as before:
        small = await world.viewer.get(path)
    add_projects(world, 400, add_tenant(world, "ten_other"))
    with counted(world.platform) as after:
        large = await world.viewer.get(path)
    assert after == before
    assert large.json() == small.json()


@pytest.mark.parametrize("path", ["/v1/whoami", "/v1/projects"])
async def test_more_projects_of_ones_own_cost_no_more_statements(world: World, path: str) -> None:
    with counted(world.platform) as before:
        await world.boss.get(path)
    add_projects(world, 400, world.tenant)
    with counted(world.platform) as after:
        await world.boss.get(path)
    assert len(after) == len(before) < 12


async def test_many_loans_cost_no_more_statements(world: World) -> None:
    me = (await world.blue_controller.get("/v1/whoami")).json()["principal"]["id"]
    body = {"grantee_id": me, "permissions": [READ], "expires_in_s": 600, "reason": "to see it"}
    await world.boss.ok(f"/v1/projects/{world.red}/delegations", body)
    with counted(world.platform) as before:
        await world.blue_controller.get("/v1/projects")
    for project in add_projects(world, 10, world.tenant):
        await world.boss.ok(f"/v1/projects/{project}/delegations", body)
    with counted(world.platform) as after:
        seen = (await world.blue_controller.get("/v1/projects")).json()["items"]
    assert len(seen) == 12
    assert len(after) == len(before)


# --- what is shown


async def test_whoami_lists_a_hundred_projects_and_says_that_there_are_more(world: World) -> None:
    few = (await world.boss.get("/v1/whoami")).json()
    assert (few["more_projects"], len(few["projects"])) == (False, 2)
    add_projects(world, 98, world.tenant)
    full = (await world.boss.get("/v1/whoami")).json()
    assert (full["more_projects"], len(full["projects"])) == (False, 100)
    add_projects(world, 50, world.tenant, "more")
    many = (await world.boss.get("/v1/whoami")).json()
    assert (many["more_projects"], len(many["projects"])) == (True, 100)
    assert [tenant["id"] for tenant in many["tenants"]] == [world.tenant]


async def test_every_project_is_on_one_page_of_the_list_with_the_callers_roles(world: World) -> None:
    made = add_projects(world, 25, world.tenant)
    found, cursor = [], ""
    while cursor is not None:
        page = (await world.boss.get(f"/v1/projects?limit=10&cursor={cursor}")).json()
        found += page["items"]
        cursor = page["next_cursor"]
    assert [one["id"] for one in found] == sorted([*made, world.red, world.blue])
    assert all(one["roles"] == ["tenant_admin"] for one in found)
    (mine,) = (await world.viewer.get("/v1/projects")).json()["items"]
    assert mine["roles"] == ["project_viewer"]
    check_problem(await world.boss.get("/v1/projects?cursor=nonsense"), 400, "cursor_invalid")


async def test_the_list_can_be_of_one_tenant(world: World) -> None:
    assert len((await world.boss.get(f"/v1/projects?tenant_id={world.tenant}")).json()["items"]) == 2
    assert (await world.boss.get(f"/v1/projects?tenant_id={add_tenant(world, 'ten_other')}")).json()["items"] == []


async def test_a_denied_project_is_not_on_any_page(world: World) -> None:
    rule = {"permissions": [READ], "reason": "closed", "project_id": world.red}
    await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules", rule)
    assert [one["id"] for one in (await world.boss.get("/v1/projects")).json()["items"]] == [world.blue]
    assert [one["id"] for one in (await world.boss.get("/v1/whoami")).json()["projects"]] == [world.blue]
