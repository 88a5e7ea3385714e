"""`Work`, the argument of every act (the function that runs one task kind): the task's arguments, recorded steps, and
programs with a time limit."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from gpuaas_agent.places import Places
from gpuaas_agent.tasks.document import Task
from gpuaas_agent.tasks.errors import TaskFailed, TaskStopped
from gpuaas_agent.tasks.journal import Journal
from gpuaas_agent.tasks.lease import Lease
from gpuaas_agent.tasks.ledger import Ledger
from gpuaas_agent.tasks.memory import Memory

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class Work:
    def __init__(self, places: Places, api: Any, task: Task, journal: Journal, lease: Lease, memory: Memory) -> None:
        self.places, self.api, self.task, self.memory = places, api, task, memory
        self.arguments = task.arguments
        self.ledger = Ledger(places, task.allocation_id)
        self._journal, self._lease = journal, lease

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Record a step as started before the block and as done after it. Raises TaskStopped before the step if the
        task must stop (`checkpoint`)."""
        self.checkpoint()
        self._journal.begin(name)
        yield
        self._journal.did()

    def checkpoint(self) -> None:
        """Raise TaskStopped if the task's time limit has passed or its lease was lost.

        While the platform does not respond, an idempotent task continues; any other task stops when its lease expires.
        """
        if self._lease.out_of_time:
            raise TaskStopped(f"It took longer than {self.task.time_limit_s} seconds.")
        if self._lease.taken or not (self.task.idempotent or self._lease.good):
            raise TaskStopped("The lease was lost, so the work stopped at a safe point.")

    def run(self, argv: Sequence[str]) -> tuple[int, str]:
        """Run a program by its full path. Returns its exit code and the beginning of its output. When the task's time
        limit passes, the program and its children are killed and TaskStopped is raised."""
        assert argv[0].startswith("/")
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
        kept = bytearray()
        reader = threading.Thread(target=_read, args=(child.stdout, kept, self.task.output_limit // 2), daemon=True)
        reader.start()
        self._await(child)
        reader.join(1)  # a grandchild may hold the pipe open; its later output is ignored
        return child.returncode, bytes(kept).decode(errors="replace")

    def must(self, argv: Sequence[str]) -> str:
        code, text = self.run(argv)
        if code != 0:
            raise TaskFailed(f"{' '.join(argv)} ended with {code}: {text[-1000:].strip()}")
        return text

    def _await(self, child: "subprocess.Popen[bytes]") -> None:
        try:
            child.wait(max(0.0, self._lease.ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise TaskStopped(f"It took longer than {self.task.time_limit_s} seconds and was killed.") from None


def _read(pipe: Any, kept: bytearray, most: int) -> None:
    """Read the pipe to its end, so that the child never blocks on it. Only the first `most` bytes are kept."""
    with pipe:
        while chunk := pipe.read1(1 << 16):
            kept += chunk[: most - len(kept)]
