"""What one claim reads, with 10,000 projects and 100,000 operations that have ended. Collected only on PostgreSQL.

The caller is one service account with a delegation in each project. Every statement of the claim is explained with the
values it was sent with, and the rows that its scans touched are counted: those it used and those it passed over.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event, text

from core.tests.support import postgres
from core.tests.support.fixtures import World, machine_token
from core.tests.support.store_rows import one

PROJECTS, ENDED, MOST_ROWS = 10_000, 100_000, 20
# What the claimed instance looks like is read for the answer, after the operation was found: it grows with the instance.
ANSWER = ("members", "app_versions", "instances", "event_heads", "audit_heads", "audit", "events", "seen_requests")


def _fill(world: World) -> None:
    """Projects of two tenants; each has a delegation to the controller and ten operations that ended."""
    platform = world.platform
    with platform.db.engine.begin() as tx:
        tenants = "insert into tenants select 'ten_other', 'other', 'Other', 1"
        projects = (
            "insert into projects (id, tenant_id, slug, name, created_at)"
            " select 'prj_' || n, case when n % 2 = 0 then :tenant else 'ten_other' end, 'p' || n, 'P', 1"
            " from generate_series(1, :projects) n"
        )
        lent = (
            "insert into delegations (id, tenant_id, project_id, grantor_id, grantee_id, permissions, reason,"
            " expires_at, created_at) select 'dlg_' || n, :tenant, 'prj_' || n, :boss, :account,"
            " '[\"apps.operation.work\"]', 'r', 9e15, 1 from generate_series(1, :projects) n"
        )
        lent_here = (
            "insert into delegations (id, tenant_id, project_id, grantor_id, grantee_id, permissions, reason,"
            " expires_at, created_at) values ('dlg_blue', :tenant, :blue, :boss, :account,"
            " '[\"apps.operation.work\"]', 'r', 9e15, 1)"
        )
        others = (
            "insert into principals (id, kind, name, tenant_id, project_id, created_at)"
            " select 'sa_' || n, 'service_account', 's', :tenant, 'prj_' || n, 1 from generate_series(1, :projects) n"
        )
        bound = (
            "insert into role_bindings (id, principal_id, role, scope_kind, scope_id, tenant_id, created_at)"
            " select 'rb_' || n, 'sa_' || n, 'app_operator', 'project', 'prj_' || n, :tenant, 1"
            " from generate_series(1, :projects) n"
        )
        signed_in = (
            "insert into sessions (token_hash, id, principal_id, expires_at, created_at)"
            " select 'h' || n, 'ses_' || n, 'sa_' || n, 9e15, 1 from generate_series(1, :projects) n"
        )
        values = {"tenant": world.tenant, "projects": PROJECTS, "boss": world.boss_id, "account": world.controller_id}
        values["blue"] = world.blue
        for statement in (tenants, projects, lent, lent_here, others, bound, signed_in):
            tx.execute(text(statement), values)
        (row,) = tx.execute(text("select * from operations limit 1")).mappings().all()
        own = {"id": "'op_' || n", "target_id": "'inst_' || n", "lock_key": "'inst_' || n", "status": "'succeeded'"}
        own |= {"scope_id": f"'prj_' || (n % {PROJECTS} + 1)", "finished_at": "n"}
        columns = ", ".join(str(name) for name in row)
        picked = ", ".join(own.get(str(name), f"o.{name}") for name in row)
        tx.execute(
            text(
                f"insert into operations ({columns}) select {picked}"
                f" from generate_series(1, {ENDED}) n, (select * from operations limit 1) o"
            )
        )
        tx.execute(text("update operations set status = 'queued', claimed_by = null where id = :id"), {"id": row["id"]})
    _vacuum(world)


def _vacuum(world: World) -> None:
    """No dead rows, and statistics that are true."""
    with postgres.connect(_database(world)) as connection:
        connection.execute("vacuum analyze")


def _database(world: World) -> str:
    return one(world.platform, "select current_database()")


@contextlib.contextmanager
def _listened(world: World) -> Iterator[list[tuple[str, Any]]]:
    """Every statement of reads and writes, with its values: the caller is authenticated by a read."""
    sent: list[tuple[str, Any]] = []

    def sending(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    engines = (world.platform.db._read_engine, world.platform.db._write_engine)  # pyright: ignore[reportPrivateUsage]
    for engine in engines:
        event.listen(engine, "before_cursor_execute", sending)
    try:
        yield sent
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", sending)


def _rows_read(plan: dict[str, Any]) -> int:
    """Of the scans: what they returned and what they passed over, as often as they ran."""
    inner = sum(_rows_read(part) for part in plan.get("Plans", []))
    if "Relation Name" not in plan or plan["Node Type"] == "ModifyTable":
        return inner
    passed = sum(plan.get(name, 0) for name in ("Rows Removed by Filter", "Rows Removed by Index Recheck"))
    return inner + round((plan["Actual Rows"] + passed) * plan["Actual Loops"])


def _explained(world: World, sent: list[tuple[str, Any]]) -> list[tuple[int, str]]:
    """In a transaction of its own that is rolled back, in the order in which they were sent."""
    found = []
    with postgres.connect(_database(world)) as connection, connection.transaction(force_rollback=True):
        for statement, parameters in sent:
            explained = connection.execute(
                f"explain (analyze, format json) {statement}".encode(), parameters
            ).fetchone()
            assert explained is not None
            found.append((_rows_read(explained[0][0]["Plan"]), statement))
    return found


@pytest.mark.timeout(1800)
async def test_a_claim_reads_few_rows_however_many_projects_and_ended_operations_there_are(world: World) -> None:
    body = world.deploy_body(world.blue_allocation)
    accepted = await world.boss.ok(f"/v1/projects/{world.blue}/instances", body)
    _fill(world)
    controller = await machine_token(world.api, world.controller_key, world.controller_id, world.now())
    body = {"app_slug": "echo", "holder": "controller-a"}
    with _listened(world) as sent:
        claim = await controller.ok("/v1/operations/claim", body)
    assert claim["operation"]["id"] == accepted["operation"]["id"]
    with world.platform.db.engine.begin() as tx:  # as it was, so that each statement finds what it found
        tx.execute(
            text(
                "update operations set status = 'queued', claim_epoch = 0, lease_expires_at = null, claimed_by = null,"
                " claimant_id = null where id = :id"
            ),
            {"id": accepted["operation"]["id"]},
        )
        tx.execute(text("update instances set state = 'requested'"))
    _vacuum(world)
    searching = [(one, values) for one, values in sent if one.startswith("SELECT") and not _for_the_answer(one)]
    explained = _explained(world, searching)
    assert sum(rows for rows, _ in explained) <= MOST_ROWS, "\n".join(f"{rows}: {one[:300]}" for rows, one in explained)
    assert any("JOIN sessions" in one for _, one in explained), "the caller was not seen to be authenticated"
    assert any("FOR NO KEY UPDATE OF operations SKIP LOCKED" in one for _, one in explained), "nothing was searched"


def _for_the_answer(statement: str) -> bool:
    words = statement.split("FROM ", 1)[-1].split()
    return words[0].rstrip(",") in ANSWER
