"""`gpuaas-agent`: install (settings on stdin), run (what systemd starts), enrol (once, by hand), status (ask first)."""

import argparse
import json
import logging
import signal
import sys
from types import FrameType

from gpuaas_agent import __version__, enrol, facts, files, sshd
from gpuaas_agent.config import Config
from gpuaas_agent.errors import AgentError
from gpuaas_agent.identity import Node
from gpuaas_agent.install import install
from gpuaas_agent.loop import Agent
from gpuaas_agent.places import Places


def main() -> None:
    parser = argparse.ArgumentParser(prog="gpuaas-agent", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("command", choices=["install", "run", "enrol", "status"])
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        {"install": _install, "run": _run, "enrol": _enrol, "status": _status}[arguments.command]()
    except AgentError as error:
        print(f"error: {error.sentence}\nway out: {error.way_out}", file=sys.stderr)
        sys.exit(1)


def _install() -> None:
    install(Places(), sys.stdin.read())
    print("gpuaas-agent is installed and running; gpuaas-agent status says how it is.")


def _run() -> None:
    Agent(Places()).run()


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
    """Every file is written whole and every call can be repeated, so there is nothing to finish."""
    sys.exit(0)
