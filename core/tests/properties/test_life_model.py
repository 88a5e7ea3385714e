"""Whatever people and controllers do in whatever order, the platform follows the model."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.authz.context import Context
from gpuaas_core.authz.evaluate import Principal
from gpuaas_core.capacity.tables import allocation_holds
from gpuaas_core.counters.tables import event_heads
from gpuaas_core.events.tables import events
from gpuaas_core.http.call import Platform
from gpuaas_core.instances import membership, outcomes, reads, schemas, service
from gpuaas_core.instances.tables import instances, members
from gpuaas_core.kit.correlation import Correlation
from gpuaas_core.kit.problems import Problem
from gpuaas_core.operations import claims, recovery, reports, watchdog
from gpuaas_core.operations import schemas as operation_schemas
from gpuaas_core.operations.states import LIVE
from gpuaas_core.operations.tables import operations
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

from core.tests.instances.test_instances import publish
from core.tests.support import postgres
from core.tests.support.fixtures import CLEAN, MovableClock, Store, World, caller, copy_store, open_platform
from core.tests.support.life_model import MEMBER_WAYS, WAYS, Model
from core.tests.support.repeats import times

# On PostgreSQL each look costs a round trip, and the model is the same; more by flag.
EXAMPLES = times(usual=40, soak=400) if postgres.CHOSEN else times(usual=400, soak=4000)
LIES = st.sampled_from(["", "", "", "stale", "other"])  # a report is honest, of a former epoch, or by another account


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
        try:
            self.the_events_are_dense()
        finally:
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

    @initialize(runs=st.booleans())
    def begin(self, runs: bool) -> None:
        self.deploy()
        if runs:
            self.claim("a")
            self.complete("", 0)

    @rule()
    def deploy(self) -> None:
        body = self.world.deploy_body(self.world.allocations[0], topology="multi_node", version="1.0.0")
        body["placement_intent"]["worker"] = [self.world.allocations[1]]
        wanted = schemas.CreateInstance.model_validate(body)
        result = self.do(lambda ctx: service.deploy(ctx, self.world.red, wanted))
        if self.model.instance not in ("none", "deleted"):
            assert result == "name_taken"
            return
        dirty = self.model.dirty
        if dirty & set(self.world.allocations[:2]):
            assert result == "machine_not_clean"
            return
        self.instance_id = result.instance.id
        self.model = Model()
        self.model.dirty = dirty
        self.model.queue("deploy", self.now)
        self.model.instance = "requested"

    @rule(holder=st.sampled_from(["a", "b"]))
    def claim(self, holder: str) -> None:
        body = operation_schemas.Claim(app_slug="echo", holder=holder)
        got = self.do(lambda ctx: claims.claim(ctx, self.world.red, body), who=holder)
        op = self._claimed(holder)
        if op is None:
            assert got is None
            return
        assert (got.claim_epoch, got.operation.kind) == (op["epoch"], op["kind"])

    def _claimed(self, holder: str) -> dict[str, Any] | None:
        """The model's claim, with operations in the platform's order: by id, which says only roughly who was first."""
        ids = self._ids()
        kept = self.model.ops
        self.model.ops = [kept[number] for number in sorted(range(len(kept)), key=lambda number: ids[number])]
        try:
            return self.model.claim(holder, self.now)
        finally:
            self.model.ops = kept

    @rule(times=st.integers(2, 9))
    def crash_loop(self, times: int) -> None:
        """A controller that dies and comes back without getting a step further."""
        for _ in range(times):
            self.claim("a")

    def _ids(self) -> list[str]:
        """Ids of the operations in the order they were asked for."""
        queued = and_(events.c.subject == operations.c.id, events.c.type == "apps.operation.queued")
        query = select(operations.c.id).join(events, queued).where(operations.c.lock_key == self.instance_id)
        return list(self.tx.execute(query.order_by(events.c.sequence)).scalars())

    def _pick(self, which: int) -> tuple[dict[str, Any], str]:
        """Of the work under way if there is some, otherwise the newest of all."""
        live = [number for number, op in enumerate(self.model.ops) if op["status"] in LIVE]
        number = live[which % len(live)] if live else len(self.model.ops) - 1
        return self.model.ops[number], self._ids()[number]

    def _report(self, verb: Callable[..., Any], kind: Any, lie: str, which: int, **content: Any) -> Any:
        """Sends a report; gives the model's operation when it was taken: when it is honest and the claim is held."""
        op, operation_id = self._pick(which)
        who = {"a": "b", "b": "a", None: "a"}[op["holder"]] if lie == "other" else op["holder"] or "a"
        epoch = op["epoch"] - 1 if lie == "stale" else op["epoch"]
        body = kind(claim_epoch=max(1, epoch), **content)
        held = op["status"] == "running" and who == op["holder"] and body.claim_epoch == op["epoch"]
        result = self.do(lambda ctx: verb(ctx, self.world.red, operation_id, body), who=who)
        assert (not isinstance(result, str)) == held, result
        assert held or result == "stale_claim"
        return op if held else None

    @rule(step=st.integers(0, 3), lie=LIES, which=st.integers(0, 2))
    def progress(self, step: int, lie: str, which: int) -> None:
        if op := self._report(reports.progress, schemas.Progress, lie, which, phase="p", step=step, of=3, message="m"):
            op |= {"until": self.now + 30_000, "stuck": op["stuck"] and op["deadline"] <= self.now}
            if step > op["furthest"] or not op.get("phase"):
                op["progressed"] = self.now
            op["phase"] = "p"
            if step > op["furthest"]:
                op |= {"furthest": step, "attempts": 1}

    @rule(lie=LIES, which=st.integers(0, 2))
    def heartbeat(self, lie: str, which: int) -> None:
        if op := self._report(claims.heartbeat, operation_schemas.ClaimReport, lie, which):
            op["until"] = self.now + 30_000

    @rule(lie=LIES, which=st.integers(0, 2))
    def complete(self, lie: str, which: int) -> None:
        op, _ = self._pick(which)
        members = reads.members_of(self.tx, self.instance_id)
        content: Any = {"evidence": {member.allocation_id: CLEAN for member in members}}
        if op["kind"] == "deploy":
            content = {"members": [schemas.MemberReport(member_id=m.id, state="ready") for m in members]}
        if op := self._report(reports.complete, schemas.Complete, lie, which, **content):
            self.model.end(op, "succeeded")
            if op["kind"] == "deploy":
                self.model.workers = {m.id: "ready" for m in members if m.component_key == "worker"}

    @rule(lie=LIES, which=st.integers(0, 2), code=st.sampled_from(["canceled", "it_broke"]))
    def fail(self, lie: str, which: int, code: str) -> None:
        error = operation_schemas.OperationError(code=code, message="m", way_out="w")
        if op := self._report(reports.fail, schemas.Fail, lie, which, error=error):
            self.model.end(op, "canceled" if code == "canceled" and op["cancel"] else "failed")

    @rule(lie=LIES, which=st.integers(0, 2), delay=st.sampled_from([0, 40]))
    def release(self, lie: str, which: int, delay: int) -> None:
        if op := self._report(claims.return_claim, operation_schemas.ReturnClaim, lie, which, retry_in_s=delay):
            op |= {"status": "queued", "from": self.now + delay * 1000, "holder": None, "stuck": False}

    @rule(which=st.integers(0, 2))
    def cancel(self, which: int) -> None:
        op, operation_id = self._pick(which)
        result = self.do(lambda ctx: recovery.cancel(ctx, self.world.red, operation_id))
        if op["status"] not in LIVE or op["cancel"]:
            assert result == "not_cancelable"
        elif op["status"] == "queued" and op["epoch"] == 0:
            self.model.end(op, "canceled")
        else:
            op["cancel"] = True

    @rule(which=st.integers(0, 2))
    def release_claim(self, which: int) -> None:
        op, operation_id = self._pick(which)
        result = self.do(lambda ctx: recovery.release_claim(ctx, self.world.red, operation_id, None))
        if op["status"] != "running":
            assert result == "wrong_state"
            return
        op |= {"status": "queued", "epoch": op["epoch"] + 1, "holder": None, "from": self.now, "stuck": False}

    @rule(which=st.integers(0, 2))
    def abandon(self, which: int) -> None:
        op, operation_id = self._pick(which)
        there = {m.id: m.allocation_id for m in reads.members_of(self.tx, self.instance_id)}
        result = self.do(lambda ctx: recovery.abandon(ctx, self.world.red, operation_id, "a good reason"))
        newest = self.model.ops[self.model.last[op["member"]]] is op
        half_gone = newest and op["status"] in ("failed", "canceled", "needs_attention") and self._going(op)
        if op["status"] not in LIVE and not half_gone:
            assert result == "wrong_state"
            return
        if op["status"] in LIVE:
            op |= {"status": "needs_attention", "epoch": op["epoch"] + 1, "stuck": False}
        if op["kind"] == "decommission":
            self.model.dirty |= set(there.values())
            self.model.workers = dict.fromkeys(self.model.workers, "removed")
            self.model.instance = "deleted"
        elif op["kind"] == "remove_member":
            self.model.workers[op["member"]] = "removed"
            self.model.dirty.add(there[op["member"]])
        else:
            self.model.break_target(op)

    def _going(self, op: dict[str, Any]) -> bool:
        if op["kind"] == "decommission":
            return self.model.instance == "deleting"
        return op["kind"] == "remove_member" and self.model.workers[op["member"]] == "failed"

    @rule(which=st.integers(0, 3))
    def retry(self, which: int) -> None:
        """Of the instance, or of one of the members that were worked on."""
        targets = sorted(self.model.last)
        member = targets[which % len(targets)]
        number = self.model.last[member]
        op, operation_id = self.model.ops[number], self._ids()[number]
        result = self.do(lambda ctx: recovery.retry(ctx, self.world.red, operation_id))
        again = op["status"] in ("failed", "canceled", "needs_attention")
        if member:
            state = self.model.workers[member]
            again = again and (state == "failed" or state == MEMBER_WAYS[op["kind"]][0])
            again = again or (
                op["status"] == "canceled" and op["kind"] == "remove_member" and state in ("ready", "drained")
            )
            if again and self.model.instance != "running":
                assert result == "wrong_state"
                return
        else:
            fits = {"deleting"} if op["kind"] == "decommission" else {"failed", WAYS[op["kind"]][0]}
            again = again and self.model.instance in fits
        if again and self.model.blocked(member):
            assert result == "operation_live"
            return
        if not again:
            assert result == "not_retryable"
            return
        assert result.operation.retry_of == operation_id
        self.model.queue(op["kind"], self.now, member)
        if member:
            fresh = op["kind"] == "add_member"
            self.model.workers[member] = "pending" if fresh else MEMBER_WAYS[op["kind"]][1]
        else:
            self.model.instance = "requested" if op["kind"] == "deploy" else WAYS[op["kind"]][1]

    @rule()
    def decommission(self) -> None:
        result = self.do(lambda ctx: service.decommission(ctx, self.world.red, self.instance_id))
        if self.model.instance in ("deleting", "deleted"):
            assert result == "wrong_state"
            return
        for op in self.model.live:
            op |= {"status": "superseded", "epoch": op["epoch"] + 1, "stuck": False}
        self.model.queue("decommission", self.now)
        self.model.instance = "deleting"
        gone = ("removed",)
        self.model.workers = {m: s if s in gone else "removing" for m, s in self.model.workers.items()}

    @rule(kind=st.sampled_from(["stop", "start", "restart", "rotate_keys"]))
    def change(self, kind: str) -> None:
        result = self.do(lambda ctx: service.ask(ctx, self.world.red, self.instance_id, kind))
        if self.model.instance != WAYS[kind][0]:
            assert result == "wrong_state"
        elif self.model.live:
            assert result == "operation_live"
        else:
            self.model.queue(kind, self.now)
            self.model.instance = WAYS[kind][1]

    @rule()
    def upgrade(self) -> None:
        wanted = schemas.UpgradeInstance(version="2.0.0")
        result = self.do(lambda ctx: service.upgrade(ctx, self.world.red, self.instance_id, wanted))
        if self.model.instance != "running":
            assert result == "wrong_state"
        elif self.model.live:
            assert result == "operation_live"
        elif any(op["kind"] == "upgrade" and op["status"] == "succeeded" for op in self.model.ops):
            assert result == "version_unchanged"
        else:
            self.model.queue("upgrade", self.now)
            self.model.instance = "upgrading"

    @rule(count=st.integers(1, 2))
    def add(self, count: int) -> None:
        """A batch on the spare machines, unless they are in use already or not clean."""
        spare = self.world.spare[:count]
        used = set(self.tx.execute(select(allocation_holds.c.allocation_id)).scalars())
        body = schemas.AddMembers(component_key="worker", allocation_ids=spare)
        result = self.do(lambda ctx: membership.add(ctx, self.world.red, self.instance_id, body))
        if self.model.instance != "running":
            assert result == "wrong_state"
            return
        if used & set(spare):
            assert result == "allocation_in_use"
            return
        if self.model.dirty & set(spare):
            assert result == "machine_not_clean"
            return
        for one in result.operations:
            self.model.workers[str(one.member_id)] = "pending"
            self.model.queue("add_member", self.now, str(one.member_id))

    @rule(which=st.integers(0, 3), kind=st.sampled_from(sorted(set(MEMBER_WAYS) - {"add_member"})))
    def operate(self, which: int, kind: str) -> None:
        if not self.model.workers:
            return
        member = sorted(self.model.workers)[which % len(self.model.workers)]
        result = self.do(lambda ctx: membership.ask(ctx, self.world.red, self.instance_id, member, kind, {}))
        state, wanted = self.model.workers[member], MEMBER_WAYS[kind][0]
        fits = state in ("ready", "drained", "failed") if kind == "remove_member" else state == wanted
        fits = fits or (kind, state) == ("drain_member", "draining")  # its drain is under way: that one is named
        staying = [one for one in self.model.workers.values() if one not in ("removing", "removed")]
        if not fits or self.model.instance != "running":
            assert result == "wrong_state"
        elif self.model.blocked(member):
            assert result == "operation_live"
        elif kind == "remove_member" and len(staying) < 2:
            assert result == "member_needed"
        else:
            self.model.queue(kind, self.now, member)
            self.model.workers[member] = MEMBER_WAYS[kind][1]

    @rule(which=st.integers(0, 3))
    def tombstone(self, which: int) -> None:
        if not self.model.workers:
            return
        member = sorted(self.model.workers)[which % len(self.model.workers)]
        there = {m.id: m.allocation_id for m in reads.members_of(self.tx, self.instance_id)}
        args = (self.world.red, self.instance_id, member, "a good reason")
        result = self.do(lambda ctx: outcomes.tombstone(ctx, *args))
        if self.model.workers[member] != "failed" or self.model.instance == "deleting":
            assert result == "wrong_state"
        elif self.model.blocked(member):
            assert result == "operation_live"
        else:
            self.model.workers[member] = "removed"
            self.model.dirty.add(there[member])

    @rule(seconds=st.sampled_from([1, 29, 30, 60, 700, 4000]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * 1000

    @rule()
    def housekeeping(self) -> None:
        self.do(lambda ctx: watchdog.check_live(ctx), who="platform")
        self.model.look(self.now)

    @precondition(lambda self: self.instance_id)
    @invariant()
    def the_platform_is_where_the_model_is(self) -> None:
        state = self.tx.execute(select(instances.c.state).where(instances.c.id == self.instance_id)).scalar_one()
        assert state == self.model.instance
        queued = and_(events.c.subject == operations.c.id, events.c.type == "apps.operation.queued")
        query = select(operations).join(events, queued).where(operations.c.lock_key == self.instance_id)
        found = self.tx.execute(query.order_by(events.c.sequence)).all()
        assert [row.kind for row in found] == [op["kind"] for op in self.model.ops]
        assert [row.status for row in found] == [op["status"] for op in self.model.ops]
        assert [row.claim_epoch for row in found] == [op["epoch"] for op in self.model.ops]
        assert [row.attempts for row in found] == [op["attempts"] for op in self.model.ops]
        assert all(row.stuck_reason is None for row in found if row.status not in LIVE)
        targets = [row.target_id for row in found if row.status in LIVE]
        assert len(targets) == len(set(targets)), "two operations of one target at once"
        assert len(targets) <= 1 or self.instance_id not in targets, "an operation of the instance beside others"
        rows = self.tx.execute(select(members).where(members.c.instance_id == self.instance_id)).all()
        workers = {row.id: row.state for row in rows if row.id in self.model.workers}
        assert workers == self.model.workers
        held = self.tx.execute(select(allocation_holds.c.allocation_id)).scalars().all()
        assert set(held) == {row.allocation_id for row in rows if row.state != "removed"}

    def the_events_are_dense(self) -> None:
        told = self._told()
        assert told["count"] == told["head"] == told["last"]
        assert told["count"] >= self.before["count"]

    def _told(self) -> dict[str, int]:
        mine = events.c.tenant_id == self.world.tenant
        count, last = self.tx.execute(select(func.count(), func.max(events.c.sequence)).where(mine)).one()
        head = select(event_heads.c.sequence).where(event_heads.c.tenant_id == self.world.tenant)
        return {"count": count, "last": last, "head": self.tx.execute(head).scalar_one()}


def furnish(platform: Platform, store: Store) -> World:
    """Two machines to grow on and a version to upgrade to."""

    async def more() -> World:
        async with caller(platform) as api:
            world = store.world.through(api.http)
            world.platform = platform
            world.spare = await world.more_machines(2)
            await publish(world, "2.0.0")
            return world

    return asyncio.run(more())


@pytest.mark.timeout(2700)
def test_whatever_happens_in_whatever_order_the_platform_follows_the_model(store: Store, tmp_path: Path) -> None:
    copy_store(store, tmp_path)
    with open_platform(tmp_path, MovableClock(store.made)) as platform:

        @contextmanager
        def rolled_back() -> Iterator[Any]:
            with platform.db.engine.connect() as tx:
                yield tx
                tx.rollback()

        class Here(Life):
            world = furnish(platform, store)
            transaction = staticmethod(rolled_back)

        few = settings(
            max_examples=EXAMPLES,
            stateful_step_count=8,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        run_state_machine_as_test(Here, settings=few)
