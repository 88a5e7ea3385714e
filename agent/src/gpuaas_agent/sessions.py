"""Ends the SSH sessions of revoked certificates, with all processes of these sessions. Other sessions continue.

`admit.sh` writes a note per login: the id of the session's process, the start time of that process, and the
certificate's serial. A process id can be reused; together with the start time it is unique. Services that a session
started continue, because systemd is their parent. For a person's certificate, all processes of its user are ended,
whatever their parent is.
"""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gpuaas_agent import people
from gpuaas_agent.places import Places

GRACE_S = 2.0
ROUNDS = 20  # a process killed while starting another leaves that one for the next round
FENCE_KEPT_S = 24 * 3600  # a certificate of an epoch lives minutes; after that there is nothing left to fence


@dataclass(frozen=True)
class Process:
    """A process, identified by its id and start time. `parent` and `session` may change and are not compared."""

    pid: int
    parent: int = field(compare=False)
    session: int = field(compare=False)
    start: int


def end(places: Places, serials: Iterable[int], grace_s: float = GRACE_S) -> int:
    """End the sessions of these certificate serials and remove their notes. Returns how many sessions were ended."""
    revoked, ended = set(serials), []
    for note in places.sessions.iterdir() if places.sessions.is_dir() else []:
        pid, start, serial = _read(note.name)
        process = look(pid)
        if process is None or process.start != start:
            note.unlink(missing_ok=True)
        elif serial in revoked:
            ended.append(process)
    if ended:
        _end(ended, grace_s)
    _end_people({people.user_of(serial) for serial in revoked})
    return len({process.pid for process in ended})


def forget_old_epochs(places: Places) -> None:
    for seen in places.epochs.iterdir() if places.epochs.is_dir() else []:
        with suppress(OSError):
            if seen.stat().st_mtime < time.time() - FENCE_KEPT_S:
                seen.unlink()


def look(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ValueError):
        return None
    fields = text.rpartition(") ")[2].split()
    return None if fields[0] in "ZX" else Process(pid, int(fields[1]), int(fields[3]), int(fields[19]))


def _read(name: str) -> tuple[int, int, int]:
    """Parse the name of a note into process id, start time and serial. An invalid name returns zeros, which match no
    process."""
    parts = [int(part) for part in name.split(".") if part.isdigit()]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else (0, 0, 0)


def _end(roots: list[Process], grace_s: float) -> None:
    """Send SIGTERM to the processes and their descendants, then SIGKILL to those that still run, including new ones.

    The session's own process ends before its commands: the client sees a broken connection, not a failed command.
    """
    asked = _with_descendants(roots)
    for some in (set(roots), asked - set(roots)):
        _signal(some, signal.SIGTERM)
        _wait_gone(some, grace_s / 2)
    for _ in range(ROUNDS):
        left = {one for one in _with_descendants(asked) if look(one.pid) == one}
        if not left:
            return
        _signal(left, signal.SIGKILL)
        time.sleep(0.02)


def _end_people(users: set[int]) -> None:
    """Kill the processes of these users that still run after their sessions have ended. Usually there are none."""
    for _ in range(ROUNDS if users else 0):
        left = {one for one in _everything() if _user(one.pid) in users}
        if not left:
            return
        _signal(left, signal.SIGKILL)
        time.sleep(0.02)


def _user(pid: int) -> int:
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
    return 0


def _wait_gone(processes: set[Process], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and any(look(one.pid) == one for one in processes):
        time.sleep(0.02)


def _with_descendants(roots: Iterable[Process]) -> set[Process]:
    """Return the processes, all their descendants, and all processes in a session that one of these processes leads."""
    everything = {one.pid: one for one in _everything()}
    found = set(roots)
    while True:
        pids = {one.pid for one in found if everything.get(one.pid, one) == one}  # not if another has its number now
        more = {one for one in everything.values() if one.parent in pids or one.session in pids} - found
        if not more:
            return found
        found |= more


def _everything() -> list[Process]:
    return [one for name in os.listdir("/proc") if name.isdigit() and (one := look(int(name)))]


def _signal(processes: Iterable[Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(OSError):
            handle = os.pidfd_open(process.pid)
            try:
                if look(process.pid) == process:  # the handle holds it: it cannot become another one any more
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)
