"""The task that reports the host's state as evidence. Processes are reported by name only: arguments may contain
secrets."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuaas_agent.tasks import paths
from gpuaas_agent.tasks.acts.run_unit import SYSTEMCTL
from gpuaas_agent.tasks.errors import TaskFailed
from gpuaas_agent.tasks.work import Work

MOST = 300
DISKS = ("/", "/opt", "/var")
LISTENS = "0A"


def act(work: Work) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for probe in work.arguments["what"]:
        with work.step(f"look at {probe}"):
            found[probe] = PROBES[probe](work)
    return found


def _units(work: Work) -> list[str]:
    text = work.must([SYSTEMCTL, "list-units", "--all", "--plain", "--no-legend", "--no-pager", "gpuaas-*"])
    return [" ".join(line.split()[:4]) for line in text.splitlines()[:MOST] if line.strip()]


def _processes(work: Work) -> list[dict[str, Any]]:
    return [one for one in map(_process, processes(work.places.root)[:MOST]) if one]


def processes(root: Path) -> list[Path]:
    return sorted((path for path in (root / "proc").iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def _process(path: Path) -> dict[str, Any] | None:
    try:
        return {"pid": int(path.name), "name": (path / "comm").read_text().strip()[:40], "uid": path.stat().st_uid}
    except OSError:
        return None  # it ended while we looked


def _ports(work: Work) -> list[int]:
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        path = work.places.root / "proc/net" / name
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        found |= {int(words[1].rsplit(":", 1)[1], 16) for words in map(str.split, lines) if words[3] == LISTENS}
    return sorted(found)


def _disk(work: Work) -> dict[str, dict[str, int]]:
    known = {
        path: os.statvfs(work.places.root / path.lstrip("/"))
        for path in DISKS
        if (work.places.root / path.lstrip("/")).exists()
    }
    return {
        path: {"total_mb": one.f_blocks * one.f_frsize >> 20, "free_mb": one.f_bavail * one.f_frsize >> 20}
        for path, one in known.items()
    }


def _files(work: Work) -> dict[str, Any]:
    return {path: _digest(work, path) for path in work.arguments.get("files", [])}


def _digest(work: Work, path: str) -> dict[str, Any] | None:
    try:
        with paths.folder_of(work.places.root, path) as (folder, name):
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except (OSError, TaskFailed) as error:
        return None if isinstance(error, FileNotFoundError) else {"cannot": str(error)[:200]}
    with os.fdopen(handle, "rb") as file:
        known = os.fstat(file.fileno())
        if not stat.S_ISREG(known.st_mode):
            return {"cannot": "it is not a plain file"}
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            work.checkpoint()
            digest.update(chunk)
    return {"size": known.st_size, "mode": f"{stat.S_IMODE(known.st_mode):04o}", "sha256": digest.hexdigest()}


PROBES: dict[str, Callable[[Work], Any]] = {
    "units": _units,
    "processes": _processes,
    "ports": _ports,
    "disk": _disk,
    "files": _files,
}
