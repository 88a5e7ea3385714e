"""The agent's main loop: enrol, then poll the platform for trust and tasks.

Two threads run, and each retries after any error. One polls; each poll is also the heartbeat. The other runs the tasks
that a poll received (`tasks/follow.py`). A poll that reports a change returns at once instead of waiting, so that the
platform confirms the report. Stored trust is applied again at start, before the platform is called, so that a reboot
while the platform is down loses nothing.
"""

import json
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpuaas_agent import enrol, facts, files, patience, sessions, upgrade
from gpuaas_agent.api import Api
from gpuaas_agent.config import Config
from gpuaas_agent.errors import AgentError, NotConfigured, TokenInvalid
from gpuaas_agent.identity import Node
from gpuaas_agent.places import Places
from gpuaas_agent.renewal import Identity
from gpuaas_agent.sshd import Sshd
from gpuaas_agent.tasks.follow import Tasks
from gpuaas_agent.tasks.inbox import Inbox
from gpuaas_agent.trust import Trust

log = logging.getLogger("gpuaas_agent")

POLL_S = (25, 30)  # each poll waits for a random time between these, so that hosts do not poll in step
BUSY_POLL_S = 2  # while it is not known what the task thread does
SETTLE_S = 0.5  # for the task thread to become free after its task has ended
CONFIG_POLL_S = 3


class Agent:
    """The agent of one host. `stop` ends the loops in tests; in production they end with the process."""

    def __init__(self, places: Places, sshd: Sshd | None = None) -> None:
        self.places = places
        self.sshd = sshd or Sshd(places)
        self.stop = threading.Event()
        self.inbox = Inbox()
        self._applied = 0  # the generation of trust that sshd uses now
        self._sent_facts: dict[str, Any] | None = None

    def run(self) -> None:
        with files.held(self.places.lock):  # two processes would look like a copied identity
            self._live()

    def _live(self) -> None:
        node, settings = self.enrolled()
        log.info("enrolled as %s", node.node_id)
        self._apply_saved()
        api = Api(settings.api, settings.ca_file, Identity(self.places, node))
        tasks = lambda: self._do_tasks(api, node)  # noqa: E731
        threading.Thread(target=self._forever, args=("tasks", tasks), daemon=True).start()
        self._forever("poll", lambda: self._poll(api, settings))

    def enrolled(self) -> tuple[Node, Config]:
        """Wait without a limit until this host is enrolled, then return its node and settings."""
        failures = 0
        while True:
            try:
                settings = Config.load(self.places)
                return enrol.ensure(self.places, settings, self.sshd), settings
            except (NotConfigured, TokenInvalid) as error:
                _log_error("waiting for a new token", error)
                self._wait_for_new_config()
            except (AgentError, OSError) as error:
                failures += 1
                _log_error("enrolment", error)
                self.stop.wait(patience.wait_s(failures))

    def _poll(self, api: Api, settings: Config) -> float:
        """Run one poll: report the applied trust and the facts of this host, and apply the answer. Returns the seconds
        to wait before the next poll."""
        node = Node.load(self.places)
        assert node is not None
        known, applied = facts.collect(self.places.root, settings.gpu_model), self._applied
        body: dict[str, Any] = {"applied_generation": applied, "acknowledged_generation": node.reported_generation}
        body |= {"machine_id": known["machine_id"], "boot_id": known["boot_id"]}
        if known != self._sent_facts:
            body["facts"] = known
        self.inbox.wait_until_free(SETTLE_S)
        body |= {"takes_task": self.inbox.free, "working_on": self.inbox.working_on}
        body["wait_s"] = 0 if "facts" in body or applied != node.reported_generation else self._patience()
        self._sent_facts = None  # unknown whether they arrive, until the answer does
        answer = api.post(f"/v1/nodes/{node.node_id}/poll", body, wait_s=body["wait_s"]) or {}
        self._sent_facts = known
        upgrade.heard(self.places)
        if applied != node.reported_generation:
            replace(node, reported_generation=applied).save(self.places)
        self._act_on(answer, api)
        return 0

    def _patience(self) -> int:
        settled = self.inbox.free or self.inbox.working_on or self.inbox.closed
        return random.randint(*POLL_S) if settled else BUSY_POLL_S  # noqa: S311 - not a secret

    def _act_on(self, answer: dict[str, Any], api: Api) -> None:
        if answer.get("task"):
            self.inbox.give(answer["task"])
        try:
            if view := answer.get("trust"):
                trust = self._checked(view)
                files.write(self.places.trust, json.dumps(view), 0o600)
                self._apply(trust)
        finally:
            if answer.get("renew_identity"):  # also if the trust is not for this host: a copy must reveal itself
                api.renew_identity()

    def _do_tasks(self, api: Api, node: Node) -> float:
        """Run one round of tasks. All state is read from disk, so that an error in one round does not affect the
        next."""
        return Tasks(self.places, api, node.node_id, inbox=self.inbox).once()

    def _apply_saved(self) -> None:
        saved = files.read(self.places.trust)
        try:
            if saved:
                self._apply(self._checked(json.loads(saved)))
        except (AgentError, OSError, ValueError) as error:
            _log_error("applying the trust received earlier", error)

    def _checked(self, view: dict[str, Any]) -> Trust:
        return Trust.of(view, enrol.host_public_key(self.places))

    def _apply(self, trust: Trust) -> None:
        try:
            if self.sshd.apply(trust):
                held = sum(text.count(b"\n") for text in trust.principals.values())
                log.info("trust generation %d applied: %d allocations may log in", trust.generation, held)
        finally:
            if ended := sessions.end(self.places, trust.revoked):
                log.info("%d sessions of revoked certificates ended", ended)
        sessions.forget_old_epochs(self.places)
        self._applied = trust.generation

    def _forever(self, what: str, once: Callable[[], float]) -> None:
        """Call `once` until `stop` is set, and wait after each call for as many seconds as it returns. An error is
        logged, and `once` is called again after an increasing delay."""
        failures = 0
        while not self.stop.is_set():
            try:
                pause, failures = once(), 0
            except Exception as error:
                failures += 1
                pause = patience.wait_s(failures)
                _log_error(what, error)
            self.stop.wait(pause)

    def _wait_for_new_config(self) -> None:
        before = files.read(self.places.config)
        while files.read(self.places.config) == before and not self.stop.is_set():
            time.sleep(CONFIG_POLL_S)


def _log_error(what: str, error: Exception) -> None:
    if isinstance(error, AgentError):
        log.warning("%s: %s %s", what, error.sentence, error.way_out)
    else:
        log.warning("%s: %s", what, error, exc_info=not isinstance(error, OSError))
