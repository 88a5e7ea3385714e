"""The task that wipes an allocation: it stops the units and removes the files that tasks created for the allocation,
ends SSH sessions, and then blocks further tasks of the allocation.

Each part can be repeated. If a unit cannot be stopped or a file cannot be removed, the wipe fails and names it.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpuaas_agent.tasks import paths
from gpuaas_agent.tasks.acts.collect_evidence import processes
from gpuaas_agent.tasks.acts.run_unit import SYSTEMCTL, shown
from gpuaas_agent.tasks.errors import TaskFailed
from gpuaas_agent.tasks.work import Work

STOPPED = ("inactive", "failed", "")
LISTENER = "sshd"


def act(work: Work) -> dict[str, Any]:
    left: list[str] = []
    for unit in work.ledger.units:
        with work.step(f"stop {unit}"):
            work.run([SYSTEMCTL, "disable", "--now", "--", unit])
            left += [unit] if shown(work, unit).get("ActiveState", "") not in STOPPED else []
    with work.step("end sessions"):
        ended = end_sessions(work.places.root)
    with work.step("remove files"):
        left += [path for path in work.ledger.files if not _gone(work, path)]
    with work.step("remove folders"):
        for path in sorted(work.ledger.folders, key=len, reverse=True):
            _remove_empty(work, path)
    if any(path.startswith("/etc/systemd/system/") for path in work.ledger.files):
        with work.step("daemon-reload"):
            work.must([SYSTEMCTL, "daemon-reload"])
    if left:
        raise TaskFailed(f"Could not remove: {', '.join(left)[:1500]}")
    done = {"units": work.ledger.units, "files": work.ledger.files, "sessions": ended}
    if work.task.allocation_id:
        work.memory.close(work.task.allocation_id)
    work.ledger.forget()
    return {name: value if name == "sessions" else value[:100] for name, value in done.items()}


def end_sessions(root: Path) -> int:
    """Kill all SSH logins: every process below sshd's listener, but not the listener. Returns the number of killed
    processes.

    Processes that were detached from their login are killed too, where the host's systemd keeps a scope per login.
    """
    parents = {int(path.name): parent for path in processes(root) if (parent := _parent(path)) is not None}
    names = {pid: _name(root, pid) for pid in parents}
    listeners = {pid for pid, parent in parents.items() if names[pid] == LISTENER and names.get(parent) != LISTENER}
    scopes = _scopes(root)
    ended = [
        pid
        for pid in parents
        if pid not in listeners and (_below(pid, listeners, parents) or _cgroups(root, pid) & scopes)
    ]
    for pid in ended:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(ended)


def _below(pid: int, listeners: set[int], parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid in listeners:
            return True
    return False


def _scopes(root: Path) -> set[str]:
    """Return the names of the systemd scopes of SSH logins, including logins that have already ended."""
    found: set[str] = set()
    for path in (root / "run/systemd/sessions").glob("*"):
        with suppress(OSError, UnicodeDecodeError):
            properties = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
            found |= {properties["SCOPE"]} if properties.get("SERVICE") == LISTENER and "SCOPE" in properties else set()
    return found


def _cgroups(root: Path, pid: int) -> set[str]:
    with suppress(OSError):
        return set((root / "proc" / str(pid) / "cgroup").read_text().replace("\n", "/").split("/"))
    return set()


def _parent(path: Path) -> int | None:
    try:
        return int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _name(root: Path, pid: int) -> str:
    with suppress(OSError):
        return (root / "proc" / str(pid) / "comm").read_text().strip()
    return ""


def _gone(work: Work, path: str) -> bool:
    with suppress(FileNotFoundError), paths.folder_of(work.places.root, path) as (folder, name):
        try:
            paths.remove(folder, name)
            paths.remove(folder, f".{name}.gpuaas-new")
        except OSError:
            return False
    return True


def _remove_empty(work: Work, path: str) -> None:
    """Remove a folder that a task created. A folder that is not empty stays, without an error."""
    with suppress(OSError, TaskFailed), paths.folder_of(work.places.root, path) as (folder, name):
        os.rmdir(name, dir_fd=folder)
