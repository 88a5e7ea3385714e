"""A core as it runs in the world: a process of its own, a port, a store on disk. It can be killed without warning.

Its process is forked from one that has imported the program (forked_core.py), unless a test asks for the program itself.
"""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from core.tests.support.fixtures import Store, World, copy_store, database_url, prolong_sessions, remove_store
from core.tests.support.forked_core import ForkedCore, forks

PROGRAM = Path(sys.executable).with_name("gpuaas-core")


class Served:
    executed = False  # True: the program itself is started, not a fork of the process that has imported it

    def __init__(self, folder: Path, port: int, **settings: str) -> None:
        self.folder, self.port, self.url, self.settings = folder, port, f"http://127.0.0.1:{port}", settings
        self.process: subprocess.Popen[bytes] | ForkedCore | None = None

    @property
    def environment(self) -> dict[str, str]:
        settings = {"GPUAAS_CORE_DATA": str(self.folder), "GPUAAS_CORE_PORT": str(self.port)}
        return os.environ | settings | {"GPUAAS_CORE_DATABASE": database_url(self.folder)} | self.settings

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the platform's operator, on the platform's own machine."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = self._started(list(words), out.fileno(), err.fileno())
            try:
                code = process.wait(180)
            finally:
                process.kill()
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(words), code, out.read(), err.read())

    def _started(self, words: list[str], out: int, err: int) -> "subprocess.Popen[bytes] | ForkedCore":
        environment = self.environment
        if forks(environment) and not self.executed:
            return ForkedCore(words, environment, out, err)
        return subprocess.Popen([PROGRAM, *words], env=environment, stdout=out, stderr=err)

    def start(self) -> None:
        with (self.folder / "core.log").open("ab") as log:
            self.process = self._started(["serve"], log.fileno(), log.fileno())
        deadline = time.monotonic() + 120
        while not self._ready():
            assert self.process.poll() is None, (self.folder / "core.log").read_text()
            assert time.monotonic() < deadline, "the core did not answer /readyz within two minutes"
            time.sleep(0.05)

    def _ready(self) -> bool:
        with contextlib.suppress(httpx2.TransportError):
            return httpx2.get(f"{self.url}/readyz", timeout=10).status_code == 200
        return False

    def kill(self) -> None:
        """As a power cut would: no handler runs."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        died = process.poll()
        assert died in (None, -signal.SIGKILL), f"the core died by itself with {died}, see {self.folder}/core.log"
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def serving(store: Store, folder: Path, **settings: str) -> Iterator[Served]:
    copy_store(store, folder)
    prolong_sessions(store, folder)
    served = Served(folder, free_port(), **settings)
    try:
        served.start()
        yield served
    finally:
        served.stop()


def free_port() -> int:
    """Below those that this machine's own connections are given: no other process takes it before it is bound."""
    while True:
        port = 10_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@pytest.fixture(scope="module")
def served(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with serving(store, folder) as running:
        yield running
    remove_store(folder)


@contextlib.asynccontextmanager
async def calling(served: Served, world: World) -> AsyncIterator[World]:
    """The world's people and controllers, talking to the served core instead of the one in this process."""
    limits = httpx2.Limits(max_connections=100, max_keepalive_connections=100)
    async with httpx2.AsyncClient(base_url=served.url, limits=limits, timeout=30) as http:
        yield world.through(http)
