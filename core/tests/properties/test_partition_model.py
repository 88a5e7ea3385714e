"""Whatever is cut off, comes back, is given back, lost or enrolled again, in whatever order: no machine has two owners.

The store is one side of it. The other is the machine: it lets in whom the last applied trust names, not the present owner. So
the model keeps machines that are cut off, whose reports are lost or late, and compares what each lets in with whose it is.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.authz.context import Context
from gpuaas_core.authz.evaluate import Principal, Scope
from gpuaas_core.capacity import allocation_service, contacts, node_admin, node_reports, schemas, silence
from gpuaas_core.capacity.reads import node_row, node_scope
from gpuaas_core.capacity.states import SILENT, STANDINGS
from gpuaas_core.capacity.tables import allocations, node_contacts, nodes, quotas
from gpuaas_core.enrolment import schemas as enrolment_schemas
from gpuaas_core.enrolment import service as enrolment
from gpuaas_core.http.call import Platform
from gpuaas_core.kit.correlation import Correlation
from gpuaas_core.kit.problems import Problem
from gpuaas_core.machine_access.host_trust import trust_of
from gpuaas_core.tenancy.reads import project_scope, tenant_scope
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from joserfc.jwk import OKPKey
from sqlalchemy import select

from core.tests.support import postgres
from core.tests.support.fixtures import (
    MovableClock,
    Store,
    World,
    add_node,
    caller,
    copy_store,
    enrol_body,
    open_platform,
)
from core.tests.support.repeats import times

EXAMPLES = times(usual=15, soak=100) if postgres.CHOSEN else times(usual=60, soak=600)
HOSTS = 2
WHICH = st.integers(0, HOSTS - 1)


@dataclass
class Host:
    """The machine itself: what it was told, and whether its cable is in."""

    number: int
    node: str = ""
    lets_in: set[str] = field(default_factory=set)
    applied: int = 0
    acknowledged: int = 0  # of what it applied, the last that the platform confirmed
    connected: bool = True
    late: list[tuple[str, int, int]] = field(default_factory=list)  # polls on their way


class Partitions(RuleBasedStateMachine):
    """`world`, `platform` and `transaction` are set by the test below."""

    world: World
    platform: Platform
    transaction: Callable[[], Any]
    ready: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self._opened = self.transaction()
        self.tx = self._opened.__enter__()
        self.now = self.platform.clock()
        self.joined = 0
        self.kept: Any = None  # the backup
        self.doubted: set[str] = set()  # restored, and not yet heard of since
        known = enumerate(self.ready)
        self.hosts = [
            Host(n, node=one.id, applied=one.trust_applied, acknowledged=one.trust_applied) for n, one in known
        ]

    def teardown(self) -> None:
        self._opened.__exit__(None, None, None)

    def do(self, fn: Callable[[Context], Any], scope: Scope) -> Any:
        ctx = Context(self.tx, Principal("who", "user", "who"), scope, "test", Correlation("cor", "0" * 32), self.now)
        try:
            with self.tx.begin_nested():
                result = fn(ctx)
                ctx.flush()
                return result
        except Problem as problem:
            return problem.code

    # The machines

    @rule(which=WHICH)
    def cut(self, which: int) -> None:
        self.hosts[which].connected = False

    @rule(which=WHICH)
    def mend(self, which: int) -> None:
        self.hosts[which].connected = True

    @rule(which=WHICH)
    def join(self, which: int) -> None:
        """A machine whose node has retired (or that is new) enrols; what it lets in stays until it is told."""
        host = self.hosts[which]
        if host.node and self.state(host.node) != "retired":
            return
        self.joined += 1
        name, key = f"model-{which}-{self.joined}", OKPKey.generate_key("Ed25519")
        vault, tenant = self.platform.vault, tenant_scope(self.tx, self.world.tenant)
        wanted = enrolment_schemas.CreateEnrolment.model_validate({"node_name": name})
        invited = self.do(lambda ctx: enrolment.create_enrolment(ctx, vault, self.world.tenant, wanted), tenant)
        body = enrolment_schemas.Enrol.model_validate(
            enrol_body(enrolment.enrolment_token(vault, invited["id"]), name, key)
        )
        host.node = self.do(lambda ctx: enrolment.enrol(ctx, vault, body, "10.0.0.1"), Scope()).id
        host.applied = host.acknowledged = 0

    @rule(which=WHICH)
    def beat(self, which: int) -> None:
        host = self.hosts[which]
        if self.may_speak(host):
            self.heard(host, host.node, host.applied, host.acknowledged)
            host.acknowledged = host.applied

    def heard(self, host: Host, node: str, applied: int, acknowledged: int) -> None:
        """A poll arrives: it says what the machine has applied."""
        facts = schemas.Facts.model_validate({"hostname": "h", "cpus": 1, "memory_mb": 1})
        report = node_reports.Report(applied, acknowledged, facts, runs_tasks=False)
        before = self.state(host.node)
        contacts.write(self.tx, {node: (self.now, self.now)})
        self.do(lambda ctx: node_reports.record(ctx, node, report), node_scope(self.tx, node))
        if before in SILENT and self.state(host.node) in STANDINGS:
            kept = {one.id for one in self.live(host.node) if one.state != "releasing"}
            assert host.lets_in == kept, "taken back before it lets in exactly its owners"

    @rule(which=WHICH, report=st.sampled_from(["told", "told", "lost", "late"]))
    def poll(self, which: int, report: str) -> None:
        """As the agent does: say what it applied, apply what is newer, say so with the next poll."""
        host = self.hosts[which]
        if not self.may_speak(host):
            return
        self.beat(which)
        view = trust_of(self.tx, self.platform.vault, node_row(self.tx, host.node), self.platform.clock())
        if view.generation <= host.applied:
            return
        host.lets_in, host.applied = set(view.principals["root"]), view.generation
        if report == "told":
            self.beat(which)
        elif report == "late":
            host.late.append((host.node, host.applied, host.acknowledged))

    @rule(which=WHICH)
    def arrive(self, which: int) -> None:
        host = self.hosts[which]
        if host.late:
            node, applied, acknowledged = host.late.pop(0)
            if self.state(node) != "retired":
                self.heard(host, node, applied, acknowledged)

    # People, and time

    @rule(which=WHICH, project=st.sampled_from(["red", "blue"]), patience=st.sampled_from([None, 60, 3600]))
    def hold(self, which: int, project: str, patience: int | None) -> None:
        place = getattr(self.world, project)
        terms = {"node_id": self.hosts[which].node, "lost_after_s": patience, "expires_in_s": 3600}
        wanted = schemas.CreateAllocation.model_validate(terms)
        before = self.state(self.hosts[which].node)
        taken = self.live(self.hosts[which].node)
        got = self.do(
            lambda ctx: allocation_service.create_allocation(ctx, place, wanted), project_scope(self.tx, place)
        )
        assert isinstance(got, str) == (before != "ready" or bool(taken)), got

    @rule(project=st.sampled_from(["red", "blue"]))
    def request(self, project: str) -> None:
        place = getattr(self.world, project)
        wanted = schemas.RequestAllocations.model_validate({"want": {}, "expires_in_s": 120})
        self.do(lambda ctx: allocation_service.request_allocations(ctx, place, wanted), project_scope(self.tx, place))

    @rule(which=WHICH)
    def release(self, which: int) -> None:
        for one in self.live(self.hosts[which].node):
            scope = project_scope(self.tx, one.project_id)
            self.do(lambda ctx, one=one: allocation_service.release_allocation(ctx, one.project_id, one.id), scope)

    @rule(which=WHICH, action=st.sampled_from(["cordon", "uncordon", "drain"]))
    def decide(self, which: int, action: str) -> None:
        node = self.hosts[which].node
        self.do(lambda ctx: node_admin.decide(ctx, node, action, ""), node_scope(self.tx, node))

    @rule(which=WHICH)
    def retire(self, which: int) -> None:
        node = self.hosts[which].node
        self.do(lambda ctx: node_admin.retire(ctx, node, ""), node_scope(self.tx, node))

    @rule(seconds=st.sampled_from([5, 14, 20, 31, 61, 200, 601, 3601]), listening=st.booleans())
    def time_passes(self, seconds: int, listening: bool) -> None:
        """`listening`: those that can be heard have said so all the while."""
        self.now += seconds * 1000
        for host in self.hosts if listening else ():
            self.beat(host.number)
        self.do(lambda ctx: (allocation_service.end_leases(ctx), silence.lose_silent_nodes(ctx)), Scope())
        for host in self.hosts:
            node, patience = node_row(self.tx, host.node), 600
            for one in self.live(host.node):
                patience = one.lost_after_s or 600
            seen = select(node_contacts.c.last_seen_at).where(node_contacts.c.node_id == host.node)
            silent_s = (self.now - self.tx.execute(seen).scalar_one()) / 1000
            assert silent_s <= 15 or node.state in (*SILENT, "enrolling", "retired")
            assert node.state != "lost" or silent_s > patience or node.trust_applied < node.trust_generation
            assert node.state != "unknown" or silent_s <= patience

    @rule()
    def backup(self) -> None:
        """A point the store can be set back to; the machines cannot."""
        self.kept = self.tx.begin_nested(), [host.node for host in self.hosts]

    @rule()
    def restore(self) -> None:
        if self.kept is None:
            return
        (point, names), self.kept = self.kept, None
        point.rollback()
        for host, node in zip(self.hosts, names, strict=True):
            if host.node != node:  # enrolled since: the store does not know it any more
                host.node, host.applied, host.acknowledged, host.late = node, 0, 0, []
        self.do(lambda ctx: silence.doubt_all(ctx), Scope())
        self.doubted = {host.node for host in self.hosts}

    # What must always hold

    @invariant()
    def no_machine_has_two_owners(self) -> None:
        now = {row.id: row for row in self.tx.execute(select(nodes).where(nodes.c.name.like("model-%")))}
        held = list(self.tx.execute(select(allocations).where(allocations.c.state != "released")))
        assert len({one.node_id for one in held}) == len(held), "a machine is held twice"
        for host in self.hosts:
            node, owners = now[host.node], [one for one in held if one.node_id == host.node]
            stray = host.lets_in - {one.id for one in owners}
            if node.state in STANDINGS:
                self.doubted.discard(host.node)
            assert not (stray and owners) or host.node in self.doubted, "a second owner while the first is still let in"
            assert not (stray and node.state in STANDINGS), "the machine lets in an account that does not hold it"
            if host.node in self.doubted:
                continue
            if owners and owners[0].state == "active" and node.trust_applied == node.trust_generation:
                assert host.lets_in == {owners[0].id}, "an active allocation is let in"
        for row in self.tx.execute(select(quotas)):
            assert row.used_allocations == sum(one.project_id == row.project_id for one in held), "the quota miscounts"

    def may_speak(self, host: Host) -> bool:
        return host.connected and self.state(host.node) != "retired"

    def state(self, node: str) -> str:
        return node_row(self.tx, node).state

    def live(self, node: str) -> list[Any]:
        mine = select(allocations).where(allocations.c.node_id == node, allocations.c.state != "released")
        return list(self.tx.execute(mine))


def machines(platform: Platform, store: Store) -> list[Any]:
    async def more() -> list[str]:
        async with caller(platform) as api:
            world = store.world.through(api.http)
            world.platform = platform
            return [(await add_node(world, f"model-{number}"))[0] for number in range(HOSTS)]

    ids = asyncio.run(more())
    return platform.db.read_now(lambda tx: [node_row(tx, one) for one in ids])


@contextmanager
def modelled(store: Store, folder: Path) -> Iterator[type[Partitions]]:
    copy_store(store, folder)
    with open_platform(folder, MovableClock(store.made)) as opened:

        @contextmanager
        def rolled_back() -> Iterator[Any]:
            with opened.db.engine.connect() as tx:
                yield tx
                tx.rollback()

        class Here(Partitions):
            world, platform, transaction = store.world, opened, staticmethod(rolled_back)
            ready = machines(opened, store)

        yield Here


@pytest.mark.timeout(2700)
def test_whatever_is_cut_off_and_comes_back_no_machine_ever_has_two_owners(store: Store, tmp_path: Path) -> None:
    few = settings(
        max_examples=EXAMPLES,
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    with modelled(store, tmp_path) as model:
        run_state_machine_as_test(model, settings=few)


def _given_away(ctx: Context, project_id: str, allocation_id: str) -> Any:
    """A platform that does not wait for the machine's word."""
    row = allocation_service.lock_allocation(ctx.tx, project_id, allocation_id)
    if row.state == "active":
        allocation_service._move(ctx, row, "release", row.tenant_id)
        allocation_service.finish(
            ctx, allocation_service.lock_allocation(ctx.tx, project_id, allocation_id), row.tenant_id
        )
    return row


def _back_at_once(ctx: Context, node: Any) -> None:
    """A platform that takes a machine back when it speaks, whatever it trusts."""
    state = node.standing if node.state in (*SILENT, "enrolling") else node.state
    ctx.tx.execute(nodes.update().where(nodes.c.id == node.id).values(state=state))


def _cut_off_while_it_is_given_back(model: type[Partitions]) -> None:
    machine = model()
    try:
        _steps(machine)
    finally:
        machine.teardown()


def _steps(machine: Partitions) -> None:
    machine.hold(0, "red", None)
    machine.poll(0, "told")
    machine.cut(0)
    machine.time_passes(31, listening=False)
    machine.release(0)
    machine.no_machine_has_two_owners()
    machine.mend(0)
    machine.beat(0)
    machine.poll(0, "told")
    machine.hold(0, "blue", None)
    machine.no_machine_has_two_owners()


def test_a_late_report_of_the_lost_time_does_not_count_after_a_restore(store: Store, tmp_path: Path) -> None:
    """Its number must mean nothing now: told as applied, it would free a machine that still lets its former owner in."""
    with modelled(store, tmp_path) as model:
        machine = model()
        try:
            machine.backup()
            machine.hold(0, "red", None)
            machine.poll(0, "late")
            machine.restore()
            machine.arrive(0)
            assert machine.state(machine.hosts[0].node) == "unknown", "it lets in whom the store does not know"
            machine.poll(0, "told")
            assert machine.state(machine.hosts[0].node) == "ready"
            assert machine.hosts[0].lets_in == set()
        finally:
            machine.teardown()


@pytest.mark.parametrize(
    ("where", "what", "wrong"),
    [(allocation_service, "release_allocation", _given_away), (node_reports, "_heard", _back_at_once)],
    ids=["gives a machine away at once", "takes a machine back at once"],
)
def test_the_model_notices_a_platform_that(
    where: Any, what: str, wrong: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with modelled(store, tmp_path) as model:
        _cut_off_while_it_is_given_back(model)
        monkeypatch.setattr(where, what, wrong)
        with pytest.raises(AssertionError, match="let"):
            _cut_off_while_it_is_given_back(model)
