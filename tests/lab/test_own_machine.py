"""A machine that has nothing of ours: the printed line joins it, it upgrades itself, a copy of it is noticed."""

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gpuaas_lab import agentfiles
from gpuaas_lab.hosts import Lab
from gpuaas_lab.stack.platform import Stack, program
from gpuaas_lab.stack.seed import Demo, seed
from gpuaas_lab.stack.up import cli_context

from tests.support.lab_stack import free_port, wait_until

pytestmark = pytest.mark.lab
BOX, OTHER = "gpu1", "gpu2"


class Own:
    def __init__(self, lab: Lab, stack: Stack, demo: Demo, api: str) -> None:
        self.lab, self.stack, self.demo, self.api = lab, stack, demo, api

    def cli(self, *words: str) -> str:
        env = self.stack.cli_env | {"NO_COLOR": "1", "COLUMNS": "120"}
        argv = [program("gpuaas"), *words]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run_printed_line(self, host: str, printed: str) -> None:
        (line,) = [text.strip() for text in printed.splitlines() if text.startswith("  ")]
        done = self.lab.exec(host, ["bash", "-c", line], timeout=400)
        assert done.exit == 0, f"{line}\n{done.text}{done.error_text}"

    def node(self) -> Any:
        found = self.demo.boss.list_nodes(self.demo.tenant_id).items
        return next((one for one in found if one.name == "box"), None)

    def ready(self, what: str) -> Any:
        try:
            wait_until(lambda: (node := self.node()) and node.state == "ready", 180, what)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.node()}\n{agentfiles.last_words(self.lab, BOX)}") from late
        return self.node()

    def upgrade(self, change: tuple[str, bytes]) -> Any:
        """To an archive that differs from the platform's in one file."""
        name, content = change
        archive = httpx2.get(f"{self.stack.api}/v1/agent/current").content
        buffer = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=buffer, mode="w") as new:
            for entry in old:
                held = old.extractfile(entry)
                data = content if entry.name == name else held.read() if held else b""
                entry.size = len(data)
                new.addfile(entry, io.BytesIO(data))
        self.lab.push(BOX, "/root/agent.tar", buffer.getvalue(), 0o600)
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        return self.lab.exec(BOX, ["gpuaas-agent", "upgrade", "/root/agent.tar", "--sha256", digest], timeout=300)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    root: Path = tmp_path_factory.mktemp("own")
    lab, port = Lab("identity"), free_port()
    stack = Stack(root / "stack", port)
    try:
        lab.down()
        lab.up(2, api_ports=[port])
        gateway = lab.controller_namespace("ctl").gateway
        stack = Stack(root / "stack", port, gateway=gateway)
        stack.start_core()
        api = f"http://{gateway}:{port}"
        demo = seed(stack.api, stack.credentials, stack.identities, api)
        cli_context(stack)
        yield Own(lab, stack, demo, api)
        demo.close()
    finally:
        stack.stop()
        lab.down()


def test_the_printed_line_makes_a_bare_host_a_ready_machine(own: Own) -> None:
    assert own.lab.exec(BOX, ["test", "-e", "/opt/gpuaas-agent"]).exit != 0, "the host is not bare"
    own.run_printed_line(BOX, own.cli("node", "enrol", "box", "--reached-at", own.api))
    assert own.ready("box to be ready").facts["agent_version"] in own.cli("node", "show", "box")
    assert "token" not in json.loads(own.lab.exec(BOX, ["cat", "/etc/gpuaas/agent.json"]).text)


def test_a_version_that_works_is_taken_and_seen_by_the_platform(own: Own) -> None:
    done = own.upgrade(("gpuaas_agent/__init__.py", b'"""Newer."""\n\n__version__ = "9.9.9"\n'))
    assert done.exit == 0, done.text + done.error_text
    wait_until(lambda: own.node().facts["agent_version"] == "9.9.9", 180, "the platform to see 9.9.9")
    assert own.lab.exec(BOX, ["gpuaas-agent", "--version"]).text.strip() == "9.9.9"


def test_a_version_that_is_broken_is_left_by_itself(own: Own) -> None:
    done = own.upgrade(("gpuaas_agent/loop.py", b"raise RuntimeError('broken')\n"))
    assert done.exit == 1
    assert "was rejected" in done.error_text
    assert own.lab.exec(BOX, ["gpuaas-agent", "--version"]).text.strip() == "9.9.9"
    before = own.node().last_seen_at
    wait_until(lambda: own.node().last_seen_at > before, 180, "a heartbeat of the version before")


def test_a_copied_machine_is_suspended_and_comes_back_as_what_it_was(own: Own) -> None:
    before = own.node().id
    copied = own.lab.exec(BOX, ["tar", "-c", "-C", "/", "opt/gpuaas-agent", "var/lib/gpuaas-agent", "etc/gpuaas"])
    own.lab.exec(OTHER, ["tar", "-x", "-C", "/"], input=copied.stdout)
    start = "PYTHONPATH=/opt/gpuaas-agent/current python3 -m gpuaas_agent install < /etc/gpuaas/agent.json"
    assert own.lab.exec(OTHER, ["sh", "-c", start], timeout=180).exit == 0
    wait_until(lambda: own.node().state == "suspended", 180, "the copy to be noticed")
    own.lab.exec(OTHER, ["systemctl", "stop", "gpuaas-agent"])
    own.run_printed_line(BOX, own.cli("node", "readmit", "box", "--reason", "copy is off", "--reached-at", own.api))
    assert own.ready("box to be back").id == before
