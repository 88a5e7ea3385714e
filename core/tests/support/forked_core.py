"""`gpuaas-core` without its start-up cost: a process that has imported the program forks whenever a test starts it.

Importing the program takes two seconds of CPU, and the tests start it some hundred times. Each started core is a process
of its own with its own environment, files and signals; only the imports are shared. Where the real start is the proof
(the environment of the process, the loader's settings), tests start the program itself.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping

LOADER = ("LD_PRELOAD", "FAKETIME")  # takes effect only when a program is executed
_MOST = 1 << 20


def forks(environment: Mapping[str, str]) -> bool:
    return not any(name in environment for name in LOADER)


class ForkedCore:
    """What subprocess.Popen offers, as far as the tests use it."""

    def __init__(self, words: list[str], environment: Mapping[str, str], out: int, err: int) -> None:
        self.pid = int(_starter().ask({"words": words, "environment": dict(environment)}, out, err))
        self.returncode: int | None = None
        self._ended = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("gpuaas-core", timeout or 0)
            self.returncode = int(_starter().ask({"wait": self.pid}))
            os.close(self._ended)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._ended, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Starter:
    """The process that forks; it ends when this one does."""

    def __init__(self) -> None:
        self._lock, self.owner = threading.Lock(), os.getpid()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self.end)

    def ask(self, message: object, *files: int) -> str:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(message).encode()], files)
            answer = self._socket.recv(100)
        assert answer, "the process that starts cores has ended"
        return answer.decode()

    def end(self) -> None:
        if os.getpid() == self.owner:
            self._socket.close()
            self._process.wait()


_known: list[_Starter] = []


def _starter() -> _Starter:
    if not _known or _known[0].owner != os.getpid():  # a fork of the test process gets its own
        _known[:] = [_Starter()]
    return _known[0]


def _serve(asking: socket.socket) -> list[str] | None:
    """Forks on request. Returns the words of the command in a new core, None in the starter when its owner has gone."""
    while True:
        text, files, _, _ = socket.recv_fds(asking, _MOST, 2)
        if not text:
            return None
        message = json.loads(text)
        if "wait" in message:
            _, status = os.waitpid(message["wait"], 0)
            asking.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        child = os.fork()
        if child == 0:
            asking.close()
            for number, file in enumerate(files, 1):
                os.dup2(file, number)
                os.close(file)
            os.environ.clear()
            os.environ.update(message["environment"])
            return message["words"]
        for file in files:
            os.close(file)
        asking.send(str(child).encode())


def _main(number: int) -> None:
    from gpuaas_core import main

    with socket.socket(fileno=number) as asking:
        words = _serve(asking)
    if words is not None:
        sys.argv = ["gpuaas-core", *words]
        main.main()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
