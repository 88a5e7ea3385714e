"""The agent's main loop: enrol, then apply trust from the platform and send a heartbeat every few seconds.

Three threads, each of which retries after any error: one follows the trust (long poll), one runs
tasks (`tasks/follow.py`), one sends heartbeats. Received trust is applied again at start, before the
platform is called: a reboot while the platform is down loses nothing.
"""

import json
import logging
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
from gpuaas_agent.trust import Trust

log = logging.getLogger("gpuaas_agent")

POLL_S = 25
CONFIG_POLL_S = 3


class Agent:
    """One host. `stop` ends the loops (tests); a real one ends with its process."""

    def __init__(self, places: Places, sshd: Sshd | None = None) -> None:
        self.places = places
        self.sshd = sshd or Sshd(places)
        self.stop = threading.Event()

    def run(self) -> None:
        with files.held(self.places.lock):  # two processes would look like a copied identity
            self._live()

    def _live(self) -> None:
        node, settings = self.enrolled()
        log.info("enrolled as %s", node.node_id)
        self._apply_saved()
        api = Api(settings.api, settings.ca_file, Identity(self.places, node))
        beat = lambda: self._beat(api, node, settings)  # noqa: E731
        threading.Thread(target=self._forever, args=("heartbeat", beat), daemon=True).start()
        tasks = lambda: self._do_tasks(api, node)  # noqa: E731
        threading.Thread(target=self._forever, args=("tasks", tasks), daemon=True).start()
        self._forever("trust", lambda: self._follow_trust(api))

    def enrolled(self) -> tuple[Node, Config]:
        """Wait, without a limit, until this host is enrolled."""
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

    def _follow_trust(self, api: Api) -> float:
        """One round: request newer trust than reported, apply it, report it."""
        node = Node.load(self.places)
        assert node is not None
        query = f"after_generation={node.reported_generation}&wait_s={POLL_S}"
        view = api.get(f"/v1/nodes/{node.node_id}/trust?{query}", wait_s=POLL_S)
        if view:
            trust = self._checked(view)
            files.write(self.places.trust, json.dumps(view), 0o600)
            self._apply(trust)
            api.post(f"/v1/nodes/{node.node_id}/trust-applied", {"generation": view["generation"]})
            replace(node, reported_generation=view["generation"]).save(self.places)
        return 0

    def _beat(self, api: Api, node: Node, settings: Config) -> float:
        body = {"facts": facts.collect(self.places.root, settings.gpu_model), "boot_id": facts.boot_id()}
        answer = api.post(f"/v1/nodes/{node.node_id}/heartbeat", body)
        upgrade.heard(self.places)
        if answer.get("renew_identity"):
            api.renew_identity()
        return min(60.0, max(1.0, float(answer["heartbeat_every_s"])))

    def _do_tasks(self, api: Api, node: Node) -> float:
        """Read from disk each round, so that an earlier error has no effect."""
        return Tasks(self.places, api, node.node_id).once()

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

    def _forever(self, what: str, once: Callable[[], float]) -> None:
        """`once` returns how long to wait; an error is logged and retried with increasing delays."""
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
