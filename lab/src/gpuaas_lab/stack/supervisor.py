"""A small supervisor: starts the services of the folder, restarts those that die, and stops those that were removed.

The kernel kills the children when the supervisor dies (PDEATHSIG), so killing it leaves no process behind.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from gpuaas_lab.processes import Process
from gpuaas_lab.stack.services import Folder, Service

NAME = "supervisor"
LOOK_S = 0.1
EARLY_S = 1.0  # a process that lives shorter than this is started again ever more slowly
STOP_S = 12.0
_PR_SET_PDEATHSIG = 1


class Supervisor:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.running: dict[str, Service] = {}
        self.not_before: dict[str, float] = {}
        self.pause: dict[str, float] = {}
        self.stopping = False

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        while not self.stopping:
            self._reap()
            self._converge()
            time.sleep(LOOK_S)
        self._stop_all(list(self.children))
        self.folder.forget(NAME)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _reap(self) -> None:
        for name, child in list(self.children.items()):
            if child.poll() is None:
                continue
            del self.children[name]
            self.folder.forget(name)
            crashed_early = time.monotonic() - self.not_before.get(name, 0) < EARLY_S
            pause = self.pause[name] = min(self.pause.get(name, 0.05) * 2, 5.0) if crashed_early else 0.1
            self.not_before[name] = time.monotonic() + pause
            self._say(name, f"ended with {child.returncode}; starting again in {pause:.1f} s")

    def _converge(self) -> None:
        wanted = self.folder.wanted()
        changed = [name for name in self.children if wanted.get(name) != self.running.get(name)]
        self._stop_all(changed)
        for name, service in wanted.items():
            if name not in self.children and time.monotonic() >= self.not_before.get(name, 0):
                self._start(service)

    def _start(self, service: Service) -> None:
        log = self.folder.log(service.name).open("ab")
        child = subprocess.Popen(
            service.argv,
            env=os.environ | service.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
        log.close()
        self.children[service.name], self.running[service.name] = child, service
        self.not_before[service.name] = time.monotonic()
        if process := Process.of(child.pid):
            self.folder.note(service.name, process)

    def _stop_all(self, names: list[str]) -> None:
        for name in names:
            self.children[name].terminate()
        deadline = time.monotonic() + STOP_S
        for name in names:
            child = self.children.pop(name)
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            self.folder.forget(name)

    def _say(self, name: str, sentence: str) -> None:
        with self.folder.log(NAME).open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {name} {sentence}\n")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start(folder: Folder) -> None:
    """Start the supervisor in the background, unless it is running."""
    folder.prepare()
    if folder.process(NAME):
        return
    child = subprocess.Popen(
        [sys.executable, "-m", "gpuaas_lab.stack", "supervise", str(folder.root)],
        stdin=subprocess.DEVNULL,
        stdout=folder.log(NAME).open("ab"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
        cwd="/",
    )
    if process := Process.of(child.pid):
        folder.note(NAME, process)


def stop(folder: Folder) -> None:
    """Stop the supervisor gracefully, then by force. Children of a killed supervisor are ended by their recorded
    ids."""
    if process := folder.process(NAME):
        os.kill(process.pid, signal.SIGTERM)
        if not process.wait_gone(STOP_S + 3):
            process.kill()
            process.wait_gone(5)
    for name in folder.noted():
        if left := folder.process(name):
            left.kill()
            left.wait_gone(5)
        folder.forget(name)


def supervise(root: Path) -> None:
    Supervisor(Folder(root)).run()
