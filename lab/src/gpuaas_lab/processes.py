"""Ends processes only when they certainly belong to the lab.

Either by a recorded id whose start time still matches (ids are reused), or because they are in a cgroup that only this
lab creates. Never by program name.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process id with its start time (clock ticks since boot); together they are never reused."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        stat = _stat(pid)
        return cls(pid, int(stat[19])) if stat else None

    @property
    def alive(self) -> bool:
        stat = _stat(self.pid)
        return stat is not None and int(stat[19]) == self.started and stat[0] not in "ZX"

    def kill(self) -> None:
        _signal_if(self.pid, signal.SIGKILL, lambda: self.alive)

    def wait_gone(self, timeout: float) -> bool:
        return wait_until(lambda: not self.alive, timeout)

    @property
    def is_init(self) -> bool:
        """Return True if the process is PID 1 of its own namespace and nspawn's setup is over, so that the host can be
        entered."""
        with suppress(OSError):
            return _inner_id(self.pid) == "1" and Path(f"/proc/{self.pid}/comm").read_text().strip() == "systemd"
        return False

    @property
    def first_child(self) -> "Process | None":
        with suppress(OSError, IndexError):
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            return Process.of(int(children[0])) if self.alive else None
        return None


def _inner_id(pid: int) -> str:
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        ids = next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))
        return ids[-1] if len(ids) > 1 else ""
    return ""


def kill_while(pid: int, still_ours: Callable[[], bool]) -> None:
    _signal_if(pid, signal.SIGKILL, still_ours)


def stop_while(pid: int, still_ours: Callable[[], bool]) -> None:
    _signal_if(pid, signal.SIGSTOP, still_ours)


def wait_until(holds: Callable[[], bool], timeout: float, every: float = 0.02) -> bool:
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def _signal_if(pid: int, number: signal.Signals, still_ours: Callable[[], bool]) -> None:
    """Send a signal if `still_ours` holds. The pidfd is opened before the check, so that the process id cannot be
    reused in between."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if still_ours():
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat after the program name, which may contain spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
