"""A host with the real agent's identity in a folder, for tests that kill it, copy it and lose its messages."""

import contextlib
import json
import os
import shutil
import signal
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from gpuaas_agent import enrol
from gpuaas_agent.api import Api
from gpuaas_agent.config import Config
from gpuaas_agent.errors import Unreachable
from gpuaas_agent.identity import Node
from gpuaas_agent.loop import Agent
from gpuaas_agent.places import Places
from gpuaas_agent.renewal import Identity
from gpuaas_agent.sshd import Sshd

WATCHED = ("renewal.py", "identity.py", "files.py", "api.py", "loop.py")


class Killed(BaseException):
    """Stands for kill -9 where the test goes on in the same process: nothing after it runs."""


class LossyApi(Api):
    """Loses what it is told to lose. What was stalled can be delivered later, when its sender has stopped waiting."""

    losing = ""
    stalled: list[tuple[str, str, bytes | None, dict[str, str]]]

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float) -> Any:
        losing, self.losing = self.losing, ""
        if losing == "stall":
            self.stalled.append((method, path, body, headers))
        if losing in ("request", "stall"):
            raise Unreachable(self.base, "lost on the way there")
        answer = super()._send(method, path, body, headers, timeout)
        if losing == "answer":
            raise Unreachable(self.base, "lost on the way back")
        return answer


class Host:
    """Alive between `start` and death; everything it knows afterwards is in its folder."""

    def __init__(self, folder: Path, url: str) -> None:
        self.places, self.url = Places(folder), url
        self.stalled: list[tuple[str, str, bytes | None, dict[str, str]]] = []
        self.sshd = Sshd(self.places, lambda argv: (0, "port 22\n"))

    def furnish(self, name: str, token: str) -> None:
        line = Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        for path, text in (
            (self.places.host_public_key, line.decode() + "\n"),
            (self.places.root / "etc/machine-id", name + "\n"),
            (self.places.config, json.dumps({"api": self.url, "token": token})),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def enrol(self) -> str:
        return enrol.ensure(self.places, Config.load(self.places), self.sshd).node_id

    def start(self) -> None:
        node = Node.load(self.places)
        assert node is not None
        self.node, self.settings = node, Config.load(self.places)
        self.api = LossyApi(self.url, "", Identity(self.places, node))
        self.api.stalled = self.stalled
        self.agent = Agent(self.places, self.sshd)
        self.agent.inbox.close()  # no thread runs tasks here, so a poll does not wait for one

    def beat(self) -> None:
        self.agent._sent_facts = None  # a poll that brings facts is answered at once
        self.agent._poll(self.api, self.settings)

    def renew(self) -> None:
        self.api.renew_identity()

    def copy(self, folder: Path, *, machine_id: str | None = None) -> "Host":
        shutil.copytree(self.places.root, folder)
        if machine_id:
            (folder / "etc/machine-id").write_text(machine_id)
        twin = Host(folder, self.url)
        twin.start()
        return twin

    def deliver(self, number: int) -> None:
        """A message of long ago arrives; its answer is not read."""
        method, path, body, headers = self.stalled.pop(number)
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=15):
            pass


@contextlib.contextmanager
def dying(at: int, *, really: bool) -> Iterator[list[int]]:
    """Death before the n-th line of the agent's own code: of the process (`really`), or of the host played here."""
    lines = [0]

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines[0] += 1
            if lines[0] == at:
                if really:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise Killed
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return (
            line
            if os.path.basename(frame.f_code.co_filename) in WATCHED and "gpuaas_agent" in str(frame.f_code.co_filename)
            else None
        )

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield lines
    finally:
        sys.settrace(before)
