"""The doctor finds what is wrong and nothing else: a planted violation per check, and healthy stores that stay clean."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.audit import anchoring
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.doctor.examine import INVARIANTS, examine
from gpuaas_core.doctor.findings import Patient, Violation
from gpuaas_core.doctor.store import NotReadable, reading
from gpuaas_core.http.call import Platform
from gpuaas_core.instances.states import INSTANCE, MEMBER
from gpuaas_core.main import app
from gpuaas_core.operations.states import OPERATION
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from core.tests.properties.test_life_model import Life, furnish
from core.tests.support.fixtures import HOST_KEY, MovableClock, Store, World, copy_store, open_platform
from core.tests.support.store_rows import dump

pytestmark = pytest.mark.sqlite_only


def _examined(platform: Platform, read: Any = None) -> dict[int, list[Violation]]:
    patient = Patient(read or platform.db.read_now, platform.checkpoints, platform.clock())
    return {one.invariant.number: one.violations for one in examine(patient) if one.violations}


async def _busy(world: World) -> dict[str, str]:
    """A store in which much has happened: one instance gone, one failed and retried, one under way, a certificate."""
    gone = await world.running()
    await world.decommission(gone["id"])
    await world.torn_down(await world.claim())
    accepted = await world.deploy(name="second")
    await world.fail(await world.claim())
    await world.boss.ok(world.operation(accepted["operation"]["id"], "retry"))
    claim = await world.claim()
    await world.progress(claim, 1)
    body = {"claim_epoch": 1, "allocation_id": world.allocations[0], "ssh_public_key": HOST_KEY}
    await world.controller.ok(world.operation(claim["operation"]["id"], "access-grants"), body)
    await world.viewer.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[1]))
    anchoring.anchor_due(world.platform, everything=True)
    return {
        "gone": gone["id"],
        "failed": accepted["operation"]["id"],
        "live": claim["operation"]["id"],
        "second": accepted["instance"]["id"],
        "tenant": world.tenant,
        "node": world.nodes[0],
        "allocation": world.allocations[0],
        "blue": world.blue,
        "free": world.allocations[1],
    }


async def test_a_healthy_store_is_clean_and_stays_as_it_was(world: World) -> None:
    assert _examined(world.platform) == {}
    await _busy(world)
    before = dump(world.platform, without=set())
    assert _examined(world.platform) == {}
    assert dump(world.platform, without=set()) == before


async def test_a_store_whose_controller_vanished_is_healthy(world: World, clock: MovableClock) -> None:
    """Once housekeeping has marked what stands still or ended what is lost; a core that does not do so is a finding."""
    await _busy(world)
    clock.forward(120)
    assert [one.sentence for one in _examined(world.platform)[9] if "not marked as stuck" in one.sentence]
    tidy(world.platform, clock())
    assert _examined(world.platform) == {}
    clock.forward(24 * 3600)
    tidy(world.platform, clock())
    assert _examined(world.platform) == {}


PLANTED: list[tuple[int, str, str]] = [
    (1, "delete from operations where id = :live", "was acknowledged"),
    (2, "update operations set finished_at = null where id = :failed", "its end time or its lease contradicts that"),
    (2, "update operations set lease_expires_at = 5 where id = :failed", "its end time or its lease contradicts that"),
    (2, "update operations set finished_at = 5 where id = :live", "its end time or its lease contradicts that"),
    (2, "update events set type = 'apps.operation.succeeded' where type = 'apps.operation.claimed'", "an end is final"),
    (3, "update operations set claimant_id = null where id = :live", "without a holder"),
    (3, "update operations set claim_epoch = 0 where id = :failed", "was issued already"),
    (3, "update events set data = json_set(data, '$.claim_epoch', 0) where type = 'apps.operation.claimed'", "after epoch"),
    (3, "update operations set target_id = :second, status = 'queued' where id = :failed", "in progress at once"),
    (4, "delete from events where tenant_id = :tenant and sequence = 12", "but the counter is"),
    (4, "update event_heads set sequence = sequence + 1 where tenant_id = :tenant", "but the counter is"),
    (4, "update event_heads set tenant_id = 'ten_other' where tenant_id = :tenant", "no counter"),
    (5, "delete from events where type = 'apps.operation.failed'", "failed 0 times"),
    (5, "update events set correlation_id = 'cor-unknown' where type = 'apps.operation.queued'", "has no audit row"),
    (6, "update audit set actor_id = 'usr_x' where tenant_id = :tenant and sequence = 9", "Row 9 was changed"),
    (6, "delete from audit where tenant_id = 'platform'", "platform: The trail ends at row 0"),
    (8, "insert into allocations (id, project_id, owner_kind, owner_id, node_id, name, state, integration_metadata,"
        " trust_generation, created_at, updated_at)"
        " select 'alloc_x', project_id, owner_kind, owner_id, node_id, name, state, integration_metadata,"
        " trust_generation, created_at, updated_at from allocations where id = :free", "at once"),
    (8, "update nodes set tenant_id = 'ten_other' where id = :node", "node of another tenant"),
    (8, "update allocation_holds set holder_id = :gone", "which is deleted"),
    (8, "update allocations set state = 'released' where id = :allocation", "is held for"),
    (8, "update allocations set project_id = :blue where id = :allocation", "different projects"),
    (8, "delete from allocation_holds", "without holding it"),
    (9, "update operations set lease_expires_at = null where id = :live", "no controller can take it over"),
    (9, "update operations set status = 'failed', finished_at = 5 where id = :live", "has no operation in progress"),
    (10, "update quotas set used_allocations = used_allocations - 1", "are counted"),
    (10, "update allocations set gpus = gpus + 1 where id = :free", "are counted"),
    (10, "update allocations set state = 'released' where id = :free", "are counted"),
    (10, "delete from quotas", "that are not counted"),
    (12, "update access_grants set expires_at = created_at + 900001", "longer than its purpose allows"),
    (12, "update access_grants set claim_epoch = 99", "that does not exist"),
    (12, "update access_grants set operation_id = 'op_x'", "that does not exist"),
    (12, "update ssh_authorities set state = 'retired' where purpose = 'user'", "still has its private key"),
    (12, "update nodes set host_authority = 2 where id = :node", "no client trusts"),
    (13, "update nodes set trust_applied = trust_generation + 1 where id = :node", "was issued"),
    (13, "update nodes set trust_applied = 0 where id = :node", "never reported the trust"),
    (14, "update instances set state = 'flying' where id = :second", "no state in the lifecycle of: instance"),
    (14, "update members set state = 'flying' where instance_id = :second", "no state in the lifecycle of: member"),
    (14, "update nodes set state = 'flying' where id = :node", "no state in the lifecycle of: node"),
    (14, "update allocations set state = 'flying' where id = :free", "no state in the lifecycle of: allocation"),
    (14, "update operations set status = 'flying' where id = :failed", "no state in the lifecycle of: operation"),
    (14, "update instances set state = 'running' where id = :second", "is in progress, but"),
    (14, "update members set state = 'ready' where instance_id = :gone", "teardown did not succeed"),
    (14, "update instances set last_operation_id = null where id = :gone", "teardown did not succeed"),
]  # fmt: skip


async def test_every_planted_violation_is_found(world: World, tmp_path: Path) -> None:
    """Each in a transaction of its own that is undone; constraints that would stop it are out of the way."""
    names = await _busy(world)
    db = sqlite3.connect(tmp_path / "core.db")
    for index in ("uq_allocations_live_node", "uq_operations_live_target", "uq_operations_live_lock"):
        db.execute(f"drop index {index}")
    db.commit()
    db.close()
    missed = []
    with world.platform.db.engine.connect() as tx:
        tx.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
        for number, statement, words in PLANTED:
            with tx.begin_nested() as planted:
                used = {name: value for name, value in names.items() if f":{name}" in statement}
                assert tx.execute(text(statement), used).rowcount > 0, statement
                found = _examined(world.platform, lambda fn: fn(tx))
                planted.rollback()
            sentences = [one.sentence for one in found.get(number, [])]
            if not any(words in sentence for sentence in sentences):
                missed.append((number, statement, found))
            assert all(one.rows and one.way_out.endswith(".") for ones in found.values() for one in ones), found
        tx.rollback()
    assert missed == []


def test_every_invariant_that_can_be_checked_has_a_planted_violation() -> None:
    assert [one.number for one in INVARIANTS] == list(range(1, 15))
    checkable = {one.number for one in INVARIANTS if one.check}
    assert {number for number, *_ in PLANTED} == checkable
    assert {one.number for one in INVARIANTS if one.not_yet} == {7, 11}


def test_the_states_the_checks_rely_on_exist() -> None:
    assert {"requested", "provisioning", "deleting", "deleted"} <= set(INSTANCE.moves)
    assert "removed" in MEMBER.moves
    assert "running" in OPERATION.moves


def test_whatever_happens_in_whatever_order_the_doctor_finds_nothing(store: Store, tmp_path: Path) -> None:
    copy_store(store, tmp_path)
    with open_platform(tmp_path, MovableClock(store.made)) as platform:

        @contextmanager
        def rolled_back() -> Iterator[Any]:
            with platform.db.engine.connect() as tx:
                yield tx
                tx.rollback()

        class Examined(Life):
            world = furnish(platform, store)
            transaction = staticmethod(rolled_back)

            def teardown(self) -> None:
                found = _examined(platform, lambda fn: fn(self.tx))
                super().teardown()
                assert found == {}

        few = settings(
            max_examples=25,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        run_state_machine_as_test(Examined, settings=few)


# --- The command


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`gpuaas-core` on the store of this test, in this process: starting Python each time takes seconds."""

    def run(*words: str) -> Done:
        monkeypatch.setenv("GPUAAS_CORE_DATA", str(tmp_path))
        capsys.readouterr()
        try:
            app(words, result_action="return_value")
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, *capsys.readouterr())

    return run


def test_the_doctor_says_what_holds_and_ends_well(store: Store, tmp_path: Path, run: Run) -> None:
    copy_store(store, tmp_path)
    done = run("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert "holds               Every acknowledged operation exists" in done.stdout
    assert "not applicable yet  Every second of a node has at most one payer" in done.stdout
    assert "All invariants hold." in done.stdout


def test_the_doctor_ends_with_1_and_names_the_rows(store: Store, tmp_path: Path, run: Run) -> None:
    copy_store(store, tmp_path)
    db = sqlite3.connect(tmp_path / "core.db")
    db.execute("update nodes set trust_applied = 99 where id = ?", (store.world.nodes[0],))
    db.commit()
    db.close()
    done = run("doctor", "-o", "json")
    assert done.returncode == 1
    (bad,) = [one for one in json.loads(done.stdout) if one["status"] == "violated"]
    assert bad["number"] == 13
    assert bad["violations"][0]["rows"] == [store.world.nodes[0]]
    assert bad["violations"][0]["way_out"]
    assert "1 of 14 invariants are violated" in run("doctor").stdout


def test_the_trail_is_verified_offline_with_and_without_the_master_key(store: Store, tmp_path: Path, run: Run) -> None:
    copy_store(store, tmp_path)
    with open_platform(tmp_path, MovableClock()) as platform:
        anchoring.anchor_due(platform, everything=True)
    public = run("audit", "key").stdout.strip()
    (tmp_path / "master.key").unlink()
    done = run("audit", "verify", "--public-key", public)
    assert done.returncode == 0, done.stderr
    assert f"ok      {store.world.tenant}:" in done.stdout
    assert "ok      platform:" in done.stdout
    db = sqlite3.connect(tmp_path / "core.db")
    db.execute("delete from audit where tenant_id = 'platform' and sequence = 2")
    db.commit()
    db.close()
    done = run("audit", "verify", "--public-key", public, "--tenant", "platform", "-o", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)[0]["broken"]["sequence"] == 2
    assert run("audit", "verify", "--public-key", public, "--tenant", store.world.tenant).returncode == 0
    assert run("audit", "verify", "--public-key", "rubbish").returncode == 2
    refused = run("audit", "verify")
    assert (refused.returncode, "No master key" in refused.stderr) == (2, True)


def test_looking_makes_nothing_new_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(NotReadable, match="No database"), reading(f"sqlite:///{empty}/core.db"):
        pass
    assert list(empty.iterdir()) == []
    copy_store(store, tmp_path)
    with reading(f"sqlite:///{tmp_path}/core.db") as read, pytest.raises(OperationalError, match="readonly"):
        read(lambda tx: tx.execute(text("delete from events")))


def test_a_store_of_another_schema_is_not_judged(store: Store, tmp_path: Path, run: Run) -> None:
    copy_store(store, tmp_path)
    db = sqlite3.connect(tmp_path / "core.db")
    db.execute("update alembic_version set version_num = '0001'")
    db.commit()
    db.close()
    done = run("doctor")
    assert done.returncode == 2
    assert "gpuaas-core migrate" in done.stderr


def test_after_a_restore_new_checkpoints_begin_and_the_trail_says_why(store: Store, tmp_path: Path, run: Run) -> None:
    copy_store(store, tmp_path)
    tenant, clock = store.world.tenant, MovableClock()
    with open_platform(tmp_path, clock) as platform:
        anchoring.anchor_due(platform, everything=True)
        change = "update event_heads set audit_anchored = 1, audit_sequence = 1, audit_hash ="
        change += " (select hash from audit where tenant_id = :t and sequence = 1) where tenant_id = :t"
        platform.db.write_now(
            lambda tx: [
                tx.execute(text("delete from audit where tenant_id = :t and sequence > 1"), {"t": tenant}).rowcount,
                tx.execute(text(change), {"t": tenant}).rowcount,
            ]
        )
    assert "the end was removed" in run("audit", "verify", "--tenant", tenant).stdout
    done = run("audit", "restart", tenant, "--reason", "restored the backup of Sunday")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "checkpoints").glob(f"{tenant}.*.aside"))) == 1
    with open_platform(tmp_path, clock) as platform:
        assert anchoring.anchor_due(platform, everything=True) == [tenant]
    done = run("audit", "verify", "--tenant", tenant)
    assert (done.returncode, "2 rows are intact" in done.stdout) == (0, True)
    db = sqlite3.connect(tmp_path / "core.db")
    assert db.execute("select reason from audit where tenant_id = ? and sequence = 2", (tenant,)).fetchall() == [
        ("restored the backup of Sunday",)
    ]
    db.close()
    assert run("audit", "restart", "ten_unknown", "--reason", "x").returncode == 2
