"""The agent's life against a platform that is slow, away, forgetful or wrong."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpuaas_agent import enrol, files, identity, loop, patience
from gpuaas_agent.api import Api
from gpuaas_agent.config import Config
from gpuaas_agent.errors import Refused, TrustInvalid, Unreachable
from gpuaas_agent.identity import Node
from gpuaas_agent.loop import Agent
from gpuaas_agent.places import Places
from gpuaas_agent.sshd import Sshd

from agent.tests.support.waits import soon


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST_S", 0.1)
    monkeypatch.setattr(loop, "POLL_S", (1, 1))
    monkeypatch.setattr(loop, "CONFIG_POLL_S", 0.05)


@pytest.fixture
def start(sshd: Sshd, places: Places) -> Iterator[Callable[[], Agent]]:
    running: list[tuple[Agent, threading.Thread]] = []

    def begin() -> Agent:
        agent = Agent(places, sshd)
        thread = threading.Thread(target=agent.run, daemon=True)
        thread.start()
        running.append((agent, thread))
        return agent

    yield begin
    for agent, _ in running:
        agent.stop.set()
    for _, thread in running:
        thread.join(5)


def test_it_enrols_applies_reports_and_beats(configured: Places, start: Any, platform: Any) -> None:
    start()
    soon(lambda: platform.nodes and platform.node()["applied"] == 1, "trust reported")
    soon(lambda: platform.node()["beats"] >= 1, "a heartbeat")
    assert platform.node()["facts"]["machine_id"] == "0123456789abcdef"
    assert platform.node()["facts"]["memory_mb"] == 2000
    assert files.read(configured.ssh / "principals/root") == b""


def test_facts_are_sent_once_and_again_when_they_differ(configured: Places, start: Any, platform: Any) -> None:
    start()
    soon(lambda: platform.nodes and platform.node()["beats"] >= 4, "several polls")
    assert platform.facts_sent == 1
    (configured.root / "proc/meminfo").write_text("MemTotal:       4096000 kB\n")
    soon(lambda: platform.node()["facts"]["memory_mb"] == 4000, "the new facts")
    assert platform.facts_sent == 2


def test_a_new_allocation_reaches_the_host_at_once(configured: Places, start: Any, platform: Any) -> None:
    start()
    soon(lambda: platform.nodes and platform.node()["applied"] == 1, "enrolled")
    generation = platform.allow("alloc_9")
    soon(lambda: platform.node()["applied"] == generation, "the new trust is applied")
    assert files.read(configured.ssh / "principals/root") == b"alloc_9\n"


def test_it_waits_for_a_platform_that_is_down_and_goes_on(configured: Places, start: Any, platform: Any) -> None:
    start()
    soon(lambda: platform.nodes and platform.node()["beats"], "enrolled")
    platform.down()
    time.sleep(0.3)
    platform.up()
    generation, beats = platform.allow("alloc_1"), platform.node()["beats"]
    soon(lambda: platform.node()["applied"] == generation, "trust after the platform came back")
    soon(lambda: platform.node()["beats"] > beats, "heartbeats after the platform came back")


def test_a_report_whose_answer_was_lost_is_sent_again(configured: Places, start: Any, platform: Any) -> None:
    platform.lose_answers.add("poll")
    start()
    soon(lambda: platform.seen.count("POST /v1/nodes/node_1/poll") >= 2, "reported twice")
    soon(lambda: (node := Node.load(configured)) and node.reported_generation == 1, "remembered")


def test_a_restart_reports_what_was_applied_but_not_reported(configured: Places, start: Any, platform: Any) -> None:
    platform.fail_with["poll"] = 503
    first = start()
    soon(lambda: files.read(configured.sshd_drop_in), "applied")
    first.stop.set()
    platform.fail_with.clear()
    start()
    soon(lambda: platform.node()["applied"] == 1, "reported after the restart")


def test_trust_received_earlier_is_applied_although_the_platform_is_away(
    configured: Places, sshd: Sshd, start: Any, platform: Any
) -> None:
    """A reboot during an outage; the file had been damaged meanwhile."""
    enrol.ensure(configured, Config.load(configured), sshd)
    platform.down()
    start()
    soon(lambda: files.read(configured.sshd_drop_in), "applied without the platform")
    platform.up()


def test_wrong_trust_is_not_applied_and_the_next_right_one_is(configured: Places, start: Any, platform: Any) -> None:
    start()
    soon(lambda: platform.nodes and platform.node()["applied"] == 1, "enrolled")
    bad = platform.allow("alloc_1\nmallory")
    time.sleep(0.4)
    assert platform.node()["applied"] < bad
    assert b"mallory" not in (files.read(configured.ssh / "principals/root") or b"")
    good = platform.allow("alloc_1")
    soon(lambda: platform.node()["applied"] == good, "the right trust")


def test_a_used_up_token_makes_it_wait_for_another_one(configured: Places, start: Any, platform: Any) -> None:
    platform.tokens["one-time-token-0123456789"] = ("another", "host")
    start()
    soon(lambda: "POST /v1/enrol" in platform.seen, "asked")
    time.sleep(0.3)
    assert platform.seen.count("POST /v1/enrol") == 1, "it kept hammering with a token that is used up"
    platform.tokens["second-token-0123456789ab"] = None
    files.write(configured.config, json.dumps({"api": platform.url, "token": "second-token-0123456789ab"}))
    soon(lambda: platform.nodes, "enrolled with the new token")


def test_an_expired_access_token_is_renewed_by_itself(configured: Places, start: Any, platform: Any) -> None:
    start()
    soon(lambda: platform.nodes and platform.node()["beats"], "enrolled")
    platform.access, beats = "access-2", platform.node()["beats"]
    soon(lambda: platform.node()["beats"] > beats, "a beat with the new token")


def test_a_wrong_clock_on_the_host_does_not_lock_it_out(configured: Places, start: Any, platform: Any) -> None:
    platform.clock_offset = 3600
    start()
    soon(lambda: platform.nodes and platform.node()["applied"] == 1, "signed in although the clocks differ by an hour")


@pytest.mark.parametrize(("status", "kind"), [(503, Unreachable), (429, Unreachable), (403, Refused), (404, Refused)])
def test_try_later_and_no_are_two_answers(platform: Any, status: int, kind: type[Exception]) -> None:
    platform.fail_with["enrol"] = status
    with pytest.raises(kind):
        Api(platform.url).post("/v1/enrol", {}, signed_in=False)


def test_waiting_grows_is_bounded_and_never_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST_S", 15.0)
    assert all(0.25 <= patience.wait_s(0) <= 0.5 for _ in range(50))
    assert all(7.5 <= patience.wait_s(99) <= 15 for _ in range(50))
    assert len({patience.wait_s(5) for _ in range(20)}) > 1


def test_a_damaged_key_file_is_not_silently_replaced(configured: Places, sshd: Sshd) -> None:
    enrol.ensure(configured, Config.load(configured), sshd)
    configured.key.write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r".+"):
        identity.ensure_key(configured.key)


class Answers:
    """Stands for the API: keeps the bodies of the polls and answers them in order."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.bodies = list(answers), list[dict[str, Any]]()

    def post(self, _path: str, body: dict[str, Any], **_: Any) -> Any:
        self.bodies.append(body)
        return self.answers.pop(0) if self.answers else None


def test_a_poll_says_what_the_task_thread_does(
    configured: Places, sshd: Sshd, platform: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SETTLE_S", 0)
    settings = Config.load(configured)
    enrol.ensure(configured, settings, sshd)
    agent, task = Agent(configured, sshd), {"task_id": "task_1", "attempt": 1, "epoch": 0, "document": {}}
    api: Any = Answers(None, {"task": task, "trust": None, "renew_identity": False})
    agent._poll(api, settings)
    assert (api.bodies[-1]["takes_task"], api.bodies[-1]["wait_s"]) == (False, 0), "its facts are news"
    agent._poll(api, settings)
    assert api.bodies[-1]["wait_s"] == loop.BUSY_POLL_S, "it is not known yet what the task thread does"
    assert agent.inbox.take(0) == task
    agent._poll(api, settings)
    assert (api.bodies[-1]["takes_task"], api.bodies[-1]["working_on"]) == (False, "task_1")
    assert agent.inbox.take(0) is None, "the thread has ended its task and asks for the next"
    agent._poll(api, settings)
    assert (api.bodies[-1]["takes_task"], api.bodies[-1]["working_on"]) == (True, None)
    assert "facts" not in api.bodies[-1]


def test_a_copy_renews_its_identity_although_the_trust_is_not_for_it(
    configured: Places, sshd: Sshd, platform: Any
) -> None:
    """Its renewal reveals the copy; the trust names the host key of the original, so it is never applied."""
    settings = Config.load(configured)
    enrol.ensure(configured, settings, sshd)
    api: Any = Answers({"task": None, "trust": {"generation": "not for this host"}, "renew_identity": True})
    renewed = list[bool]()
    api.renew_identity = lambda: renewed.append(True)
    with pytest.raises(TrustInvalid):
        Agent(configured, sshd)._poll(api, settings)
    assert renewed == [True]
