"""Every life is its table; and whatever people and controllers do in whatever order, the platform follows the model."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import postgres
import pytest
from gpuaas_core.access.context import Context
from gpuaas_core.access.evaluate import Principal
from gpuaas_core.capacity.states import ALLOCATION, NODE
from gpuaas_core.instances import claims, reads, recovery, schemas, service
from gpuaas_core.instances.states import INSTANCE, LIVE, MEMBER, OPERATION, REPORTED
from gpuaas_core.instances.tables import allocation_holds, instances, operations
from gpuaas_core.kit.lifecycle import Lifecycle, WrongMoment
from gpuaas_core.kit.problems import Problem
from gpuaas_core.ledger.correlation import Correlation
from gpuaas_core.ledger.tables import event_heads, events
from gpuaas_core.tenancy.reads import project_scope
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import and_, func, select
from world import MovableClock, Store, World, copy_store, open_platform

LIVES = {life.noun: life for life in (INSTANCE, MEMBER, OPERATION, ALLOCATION, NODE)}
FINAL = {
    "instance": {"deleted"},
    "member": {"removed"},
    "operation": {"succeeded", "failed", "canceled", "superseded", "needs_attention"},
    "allocation": {"released"},
    "node": {"retired"},
}


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_every_action_in_every_state_does_what_the_table_says(life: Lifecycle) -> None:
    actions = {action for row in life.moves.values() for action in row} | {"fly"}
    for state, row in life.moves.items():
        for action in actions:
            if action in row:
                assert life.after(state, action) == row[action]
                assert life.allows(state, action)
                continue
            with pytest.raises(WrongMoment) as refusal:
                life.after(state, action)
            assert not life.allows(state, action)
            assert refusal.value.status == 409
            assert state in refusal.value.detail
            assert all(possible in refusal.value.detail for possible in row or ["nothing, this state is final"])


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_the_end_is_the_end_and_can_be_reached(life: Lifecycle) -> None:
    assert {state for state in life.moves if life.terminal(state)} == FINAL[life.noun]
    for state in life.moves:
        reached, before = {state}, set()
        while reached != before:
            before, reached = reached, reached | {to for at in reached for to in life.moves[at].values()}
        assert reached & FINAL[life.noun], f"a {life.noun} that is {state} stays so for ever"
    first = next(iter(life.moves))
    reachable, before = {first}, set()
    while reachable != before:
        before, reachable = reachable, reachable | {to for at in reachable for to in life.moves[at].values()}
    assert reachable == set(life.moves), f"states of a {life.noun} nobody can reach"


def test_an_instance_can_be_torn_down_from_every_state_but_the_last_two() -> None:
    assert {state for state in INSTANCE.moves if not INSTANCE.allows(state, "delete")} == {"deleting", "deleted"}


def test_what_a_controller_reports_of_a_member_stands_for_a_known_action() -> None:
    for state, action in REPORTED.items():
        assert any(row.get(action) == state for row in MEMBER.moves.values())


def test_a_state_without_a_row_is_noticed_at_once() -> None:
    with pytest.raises(ValueError, match="flying"):
        Lifecycle("kite", {"folded": {"throw": "flying"}})


LIES = st.sampled_from(["", "", "", "stale", "other"])  # a report is honest, of a former epoch, or by somebody else


class Model:
    """What the platform promises of one instance and its operations, said again in the plainest words."""

    def __init__(self) -> None:
        self.instance = "none"
        self.ops: list[dict[str, Any]] = []

    @property
    def op(self) -> dict[str, Any]:
        return self.ops[-1]

    def queue(self, kind: str) -> None:
        fresh = {"status": "queued", "epoch": 0, "attempts": 0, "furthest": 0, "holder": None, "until": 0, "from": 0}
        self.ops.append(fresh | {"kind": kind, "cancel": False})

    def free_for(self, holder: str, now: int) -> bool:
        op = self.op
        if op["status"] == "queued":
            return op["from"] <= now
        return op["status"] == "running" and (op["until"] <= now or op["holder"] == holder)

    def claim(self, holder: str, now: int) -> bool:
        if not self.ops or not self.free_for(holder, now):
            return False
        op = self.op
        if op["attempts"] == 8:
            op["status"] = "needs_attention"
            self.instance = "deleting" if op["kind"] == "decommission" else "failed"
            return False
        op |= {"status": "running", "epoch": op["epoch"] + 1, "attempts": op["attempts"] + 1}
        op |= {"holder": holder, "until": now + 30_000}
        self.instance = "deleting" if op["kind"] == "decommission" else "provisioning"
        return True

    def end(self, how: str) -> None:
        self.op["status"] = how
        if self.op["kind"] == "deploy":
            self.instance = "running" if how == "succeeded" else "failed"
        elif how == "succeeded":
            self.instance = "deleted"


class Life(RuleBasedStateMachine):
    """Drives the services and the model side by side. `world` and `open_transaction` are set by the test below."""

    world: World
    transaction: Callable[[], Any]

    def __init__(self) -> None:
        super().__init__()
        self.model, self.now = Model(), 1_800_000_000_000
        self._opened = self.transaction()
        self.tx = self._opened.__enter__()
        self.before = self._told()
        self.instance_id = ""

    def teardown(self) -> None:
        self._opened.__exit__(None, None, None)

    def do(self, fn: Callable[[Context], Any], who: str = "boss") -> Any:
        """One act in one transaction, as the edge does it; the code of the problem when it was refused."""
        scope = project_scope(self.tx, self.world.red)
        caller = Principal(who, "user", who)
        ctx = Context(self.tx, caller, scope, "test", Correlation("cor-model", "0" * 32), self.now)
        try:
            with self.tx.begin_nested():
                result = fn(ctx)
                ctx.flush()
                return result
        except Problem as problem:
            return problem.code

    @initialize()
    def begin(self) -> None:
        self.deploy()

    @rule()
    def deploy(self) -> None:
        body = schemas.CreateInstance.model_validate(self.world.deploy_body(self.world.allocations[0]))
        result = self.do(lambda ctx: service.deploy(ctx, self.world.red, body))
        if self.model.instance not in ("none", "deleted"):
            assert result == "name_taken"
            return
        self.instance_id = result.instance.id
        self.model = Model()
        self.model.instance = "requested"
        self.model.queue("deploy")

    @rule(holder=st.sampled_from(["a", "b"]))
    def claim(self, holder: str) -> None:
        body = schemas.Claim(app_slug="echo", holder=holder)
        got = self.do(lambda ctx: claims.claim(ctx, self.world.red, body), who=holder)
        if self.model.claim(holder, self.now):
            assert got.claim_epoch == self.model.op["epoch"]
            assert got.operation.kind == self.model.op["kind"]
        else:
            assert got is None

    @rule(times=st.integers(2, 9))
    def crash_loop(self, times: int) -> None:
        """A controller that dies and comes back without getting a step further."""
        for _ in range(times):
            self.claim("a")

    def _report(self, verb: Callable[..., Any], kind: Any, lie: str, **content: Any) -> bool:
        """Sends a report; true when it was taken, which must be exactly when it is honest and the claim is held."""
        op = self.model.op
        who = {"a": "b", "b": "a", None: "a"}[op["holder"]] if lie == "other" else op["holder"] or "a"
        epoch = op["epoch"] - 1 if lie == "stale" else op["epoch"]
        body = kind(claim_epoch=max(1, epoch), **content)
        held = op["status"] == "running" and who == op["holder"] and body.claim_epoch == op["epoch"]
        result = self.do(lambda ctx: verb(ctx, self.world.red, self._operation_id(), body), who=who)
        assert (not isinstance(result, str)) == held, result
        assert held or result == "stale_claim"
        return held

    def _operation_id(self) -> str:
        newest = select(instances.c.last_operation_id).where(instances.c.id == self.instance_id)
        return self.tx.execute(newest).scalar_one()

    @rule(step=st.integers(0, 3), lie=LIES)
    def progress(self, step: int, lie: str) -> None:
        if self._report(claims.progress, schemas.Progress, lie, phase="p", step=step, of=3, message="m"):
            op = self.model.op
            op["until"] = self.now + 30_000
            if step > op["furthest"]:
                op |= {"furthest": step, "attempts": 1}

    @rule(lie=LIES)
    def heartbeat(self, lie: str) -> None:
        if self._report(claims.heartbeat, schemas.ClaimReport, lie):
            self.model.op["until"] = self.now + 30_000

    @rule(lie=LIES)
    def complete(self, lie: str) -> None:
        members = reads.members_of(self.tx, self.instance_id)
        if self.model.op["kind"] == "deploy":
            content: Any = {"members": [schemas.MemberReport(member_id=m.id, state="ready") for m in members]}
        else:
            content = {"evidence": {member.allocation_id: {"clean": True} for member in members}}
        if self._report(claims.complete, schemas.Complete, lie, **content):
            self.model.end("succeeded")

    @rule(lie=LIES, code=st.sampled_from(["canceled", "it_broke"]))
    def fail(self, lie: str, code: str) -> None:
        error = schemas.OperationError(code=code, message="m", way_out="w")
        if self._report(claims.fail, schemas.Fail, lie, error=error):
            self.model.end("canceled" if code == "canceled" and self.model.op["cancel"] else "failed")

    @rule(lie=LIES, delay=st.sampled_from([0, 40]))
    def release(self, lie: str, delay: int) -> None:
        if self._report(claims.release, schemas.ReleaseClaim, lie, retry_in_s=delay):
            self.model.op.update({"status": "queued", "from": self.now + delay * 1000, "holder": None})

    @rule()
    def cancel(self) -> None:
        result = self.do(lambda ctx: recovery.cancel(ctx, self.world.red, self._operation_id()))
        op = self.model.op
        if op["status"] not in LIVE:
            assert result == "not_cancelable"
        elif op["status"] == "queued" and op["epoch"] == 0:
            self.model.end("canceled")
        else:
            op["cancel"] = True

    @rule()
    def retry(self) -> None:
        result = self.do(lambda ctx: recovery.retry(ctx, self.world.red, self._operation_id()))
        op = self.model.op
        if op["status"] not in ("failed", "canceled", "needs_attention"):
            assert result == "not_retryable"
            return
        assert result.operation.retry_of is not None
        self.model.queue(op["kind"])
        self.model.instance = "requested" if op["kind"] == "deploy" else "deleting"

    @rule()
    def decommission(self) -> None:
        result = self.do(lambda ctx: service.decommission(ctx, self.world.red, self.instance_id))
        if self.model.instance in ("deleting", "deleted"):
            assert result == "wrong_state"
            return
        if self.model.op["status"] in LIVE:
            self.model.op["status"] = "superseded"
            self.model.op["epoch"] += 1
        self.model.queue("decommission")
        self.model.instance = "deleting"

    @rule(seconds=st.sampled_from([1, 29, 30, 60]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * 1000

    @precondition(lambda self: self.instance_id)
    @invariant()
    def the_platform_is_where_the_model_is(self) -> None:
        state = self.tx.execute(select(instances.c.state).where(instances.c.id == self.instance_id)).scalar_one()
        assert state == self.model.instance
        queued = and_(events.c.subject == operations.c.id, events.c.type == "apps.operation.queued")
        query = select(operations).join(events, queued).where(operations.c.instance_id == self.instance_id)
        found = self.tx.execute(query.order_by(events.c.sequence)).all()
        assert [row.status for row in found] == [op["status"] for op in self.model.ops]
        assert [row.claim_epoch for row in found] == [op["epoch"] for op in self.model.ops]
        assert [row.attempts for row in found] == [op["attempts"] for op in self.model.ops]
        assert sum(row.status in LIVE for row in found) <= 1
        held = self.tx.execute(select(allocation_holds.c.instance_id)).scalars().all()
        assert held == ([] if state == "deleted" else [self.instance_id])

    @invariant()
    def the_events_are_dense(self) -> None:
        told = self._told()
        assert told["count"] == told["head"] == told["last"]
        assert told["count"] >= self.before["count"]
        self.before = told

    def _told(self) -> dict[str, int]:
        mine = events.c.tenant_id == self.world.tenant
        count, last = self.tx.execute(select(func.count(), func.max(events.c.sequence)).where(mine)).one()
        head = select(event_heads.c.sequence).where(event_heads.c.tenant_id == self.world.tenant)
        return {"count": count, "last": last, "head": self.tx.execute(head).scalar_one()}


def test_whatever_happens_in_whatever_order_the_platform_follows_the_model(store: Store, tmp_path: Path) -> None:
    copy_store(store, tmp_path)
    with open_platform(tmp_path, MovableClock()) as platform:

        @contextmanager
        def rolled_back() -> Iterator[Any]:
            with platform.db.engine.connect() as tx:
                yield tx
                tx.rollback()

        class Here(Life):
            world = store.world
            transaction = staticmethod(rolled_back)

        few = settings(
            max_examples=20 if postgres.CHOSEN else 60,  # the model is the same; each look costs a round trip there
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        run_state_machine_as_test(Here, settings=few)
