"""Renewal of a machine's identity by the real agent against a served core: killed at every line, copied, cut off."""

import contextlib
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gpuaas_agent import files
from gpuaas_agent.errors import AgentError, Refused, Unreachable
from gpuaas_core.kit.db import Database
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from core.tests.support.agent_host import Host, Killed, dying
from core.tests.support.fixtures import World, database_url
from core.tests.support.repeats import times
from core.tests.support.served import Served
from core.tests.support.served import served as served

pytestmark = pytest.mark.any_store


TWINS = times(usual=4, soak=25)  # four: whichever of the two speaks first, whichever has renewed
LIVES = times(usual=8, soak=40)


class Ground:
    """A served core, the tenant's administrator, and hosts that join it."""

    def __init__(self, served: Served, world: World, folder: Path) -> None:
        self.url, self.tenant, self.token, self.folder = served.url, world.tenant, world.boss.token, folder
        self.http = httpx2.Client(base_url=served.url, timeout=30)

    def ask(self, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": secrets.token_hex(16)}
        method = "GET" if body is None else "POST"
        answer = self.http.request(method, path, headers=headers, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def host(self) -> Host:
        name = f"host-{secrets.token_hex(5)}"
        invited = self.ask(f"/v1/tenants/{self.tenant}/enrolments", {"node_name": name})
        host = Host(self.folder / name, self.url)
        host.furnish(name, invited["token"])
        host.enrol()
        host.start()
        host.beat()
        return host

    def state(self, host: Host) -> str:
        return self.ask(f"/v1/nodes/{host.node.node_id}")["state"]

    def readmit(self, host: Host) -> None:
        invited = self.ask(f"/v1/nodes/{host.node.node_id}/readmit", {"reason": "the copy is off"})
        host.furnish((host.places.root / "etc/machine-id").read_text().strip(), invited["token"])
        assert host.enrol() == host.node.node_id


@pytest.fixture
def ground(served: Served, world: World, tmp_path: Path) -> Iterator[Ground]:
    made = Ground(served, world, tmp_path)
    yield made
    made.http.close()


def test_killed_before_any_line_of_a_renewal_a_host_always_gets_back_in(ground: Ground) -> None:
    """kill -9 of a real process before its 1st, 2nd, 3rd … line, until one renewal gets through unharmed."""
    host, at, survived = ground.host(), 0, False
    while not survived:
        at += 1
        survived = _renews_and_survives(host, at)
        host.start()
        host.beat()  # raises if the platform does not let it in
    assert at > 100, f"only {at} trials"
    assert ground.state(host) != "suspended", "an honest crash looked like a copy"
    refused = ground.ask(f"/v1/tenants/{ground.tenant}/audit?limit=500")["items"]
    shown = [row for row in refused if row["resource_id"] == host.node.node_id and row["outcome"] == "denied"]
    assert shown == [], "an honest host showed a former key"


def _renews_and_survives(host: Host, at: int) -> bool:
    child = os.fork()
    if child == 0:
        try:
            host.start()
            with dying(at, really=True):
                host.renew()
                host.beat()
        except BaseException:
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"trial {at} ended with {status}"
    return status == 0


@pytest.mark.parametrize("elsewhere", [True, False], ids=["on another machine", "with the same machine id"])
def test_a_copied_state_folder_is_noticed_once_both_have_spoken(ground: Ground, elsewhere: bool) -> None:
    for number in range(TWINS):
        host = ground.host()
        twin = host.copy(ground.folder / f"twin-{number}", machine_id="another" if elsewhere else None)
        pair = [host, twin] if number % 2 else [twin, host]
        if not elsewhere:
            pair[number // 2 % 2].renew()  # told apart when one of the two has renewed
        noticed = [_speaks(one) for one in (*pair, *pair, *pair)]
        assert "identity_cloned" in noticed
        assert ground.state(host) == "suspended"


def _speaks(host: Host) -> str:
    try:
        host.beat()
        return ""
    except Refused as refused:
        return refused.code


def test_a_message_that_arrives_after_its_key_was_replaced_is_no_copy(ground: Ground) -> None:
    host = ground.host()
    for send in (host.beat, host.renew):
        host.start()  # no token yet: the stalled message is the one that shows the key
        host.api.losing = "stall"
        with pytest.raises(Unreachable):
            send()
    host.renew()
    host.beat()
    while host.stalled:
        host.deliver(0)
    assert ground.state(host) != "suspended"
    host.start()
    host.beat()


def test_a_platform_that_forgot_the_newest_key_takes_the_former_one(ground: Ground, served: Served) -> None:
    """As after a restore from a backup: the newest key is unknown, the former one is the last it knows."""
    host = ground.host()
    host.renew()
    host.beat()
    db = Database(database_url(served.folder))
    mine = {"n": host.node.node_id}
    with db.engine.begin() as tx:
        tx.execute(text("delete from principal_keys where principal_id = :n and generation = 2"), mine)
        back = "update principal_keys set retired_at = null, superseded_by = null where principal_id = :n"
        tx.execute(text(back), mine)
        tx.execute(text("delete from sessions where principal_id = :n"), mine)
    db.close()
    host.start()
    host.beat()
    host.renew()
    host.beat()
    assert ground.state(host) != "suspended"


def test_two_agents_on_one_host_wait_for_each_other(ground: Ground) -> None:
    host, inside, order = ground.host(), threading.Event(), []

    def first() -> None:
        with files.held(host.places.lock):
            inside.set()
            order.append("first in")
            threading.Event().wait(0.2)
            order.append("first out")

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    with files.held(host.places.lock):
        order.append("second in")
    thread.join()
    assert order == ["first in", "first out", "second in"]


class Lives(RuleBasedStateMachine):
    """One host, perhaps copied, on a network that loses, and a kill at any line. Honest hosts get back in; copies are
    noticed when both have renewed."""

    ground: Ground

    @initialize()
    def join(self) -> None:
        self.host, self.twin = self.ground.host(), None

    @rule(act=st.sampled_from(["beat", "renew"]), losing=st.sampled_from(["", "request", "answer", "stall"]))
    def speak(self, act: str, losing: str) -> None:
        self.host.api.losing = losing
        self._try(getattr(self.host, act))

    @rule(act=st.sampled_from(["beat", "renew"]), line=st.integers(1, 260))
    def die(self, act: str, line: int) -> None:
        with contextlib.suppress(Killed), dying(line, really=False):
            self._try(getattr(self.host, act))
        self.host.start()

    @rule()
    def restart(self) -> None:
        self.host.start()

    @precondition(lambda self: self.host.stalled)
    @rule(data=st.data())
    def deliver(self, data: Any) -> None:
        self.host.deliver(data.draw(st.integers(0, len(self.host.stalled) - 1)))

    @precondition(lambda self: self.twin is None)
    @rule()
    def clone(self) -> None:
        self.twin = self.host.copy(self.ground.folder / f"twin-{secrets.token_hex(5)}")

    @precondition(lambda self: self.twin is not None)
    @rule(act=st.sampled_from(["beat", "renew"]))
    def twin_speaks(self, act: str) -> None:
        assert self.twin is not None
        self._try(getattr(self.twin, act))

    @invariant()
    def an_honest_host_is_never_suspected(self) -> None:
        if self.twin is None:
            assert self.ground.state(self.host) != "suspended"

    def teardown(self) -> None:
        if not hasattr(self, "host"):
            return
        self.host.start()
        if self.twin is None:
            self.host.beat()
            self.host.renew()
            self.host.beat()
            return
        self.twin.start()
        for one in (self.host, self.twin) * 2:
            self._try(one.renew)
            self._try(one.beat)
        assert self.ground.state(self.host) == "suspended", "a copy was not noticed"
        self.ground.readmit(self.host)
        self.host.start()
        self.host.beat()
        self._try(self.twin.beat)
        self.host.beat()

    def _try(self, act: Callable[[], None]) -> None:
        with contextlib.suppress(AgentError):
            act()


def test_however_host_copy_and_network_behave_the_honest_get_in_and_copies_are_noticed(ground: Ground) -> None:
    class Here(Lives):
        pass

    Here.ground = ground
    quick = settings(
        max_examples=LIVES,
        stateful_step_count=12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Here, settings=quick)
