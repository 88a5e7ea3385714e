"""The program `gpuaas-agent`: install (settings on stdin), run (started by systemd), enrol (once, by hand), status,
upgrade FILE --sha256 DIGEST (tries another version, which is kept only if it reports to the platform)."""

import argparse
import json
import logging
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from gpuaas_agent import __version__, enrol, facts, files, sshd, upgrade
from gpuaas_agent.config import Config
from gpuaas_agent.errors import AgentError, UpgradeRefused
from gpuaas_agent.identity import Node
from gpuaas_agent.install import install
from gpuaas_agent.loop import Agent
from gpuaas_agent.places import Places


def main() -> None:
    parser = argparse.ArgumentParser(prog="gpuaas-agent", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("command", choices=["install", "run", "enrol", "status", "upgrade"])
    parser.add_argument("file", nargs="?", help="upgrade: the archive")
    parser.add_argument("--sha256", default="", help="upgrade: its digest, from the platform")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        if arguments.command == "upgrade":
            return _upgrade(arguments.file, arguments.sha256)
        {"install": _install, "run": _run, "enrol": _enrol, "status": _status}[arguments.command]()
    except AgentError as error:
        print(f"error: {error.sentence}\nway out: {error.way_out}", file=sys.stderr)
        sys.exit(1)
    return None


def _install() -> None:
    install(Places(), sys.stdin.read())
    print("gpuaas-agent is installed and running; check it with `gpuaas-agent status`.")


def _run() -> None:
    places = Places()
    if upgrade.pending(places) and upgrade.try_candidate(places):
        upgrade.go_on(places)
    Agent(places).run()


def _upgrade(file: str | None, sha256: str) -> None:
    places = Places()
    if file is None:
        raise UpgradeRefused("Missing arguments. Run: gpuaas-agent upgrade FILE --sha256 DIGEST")
    release = upgrade.stage(places, Path(file).read_bytes(), sha256)
    print(f"trying {release}", flush=True)
    subprocess.run(["/usr/bin/systemctl", "restart", "gpuaas-agent"], check=True, timeout=60)
    deadline = time.monotonic() + upgrade.PATIENCE_S + 30
    while (outcome := upgrade.outcome(places)) is None and time.monotonic() < deadline:
        time.sleep(0.2)
    if outcome is None or not outcome["taken"]:
        why = outcome["why"] if outcome else "no result yet"
        raise UpgradeRefused(f"{release} was rejected: {why}. The current version keeps running.")
    print(f"{release} runs now.")


def _enrol() -> None:
    places = Places()
    node = enrol.ensure(places, Config.load(places), sshd.Sshd(places))
    print(node.node_id)


def _status() -> None:
    places = Places()
    node, trust = Node.load(places), files.read(places.trust)
    shown = {
        "node_id": node.node_id if node else None,
        "reported_generation": node.reported_generation if node else None,
        "received_generation": json.loads(trust)["generation"] if trust else None,
        "sshd_answers": sshd.speaks(sshd.Sshd(places).port(), 2),
        "facts": facts.collect(),
    }
    print(json.dumps(shown, indent=2))


def _end(number: int, _: FrameType | None) -> None:
    """Exit at once on a signal. No cleanup is needed: every file is written atomically and every call can be
    repeated."""
    sys.exit(0)
