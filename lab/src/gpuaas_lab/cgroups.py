"""One cgroup per host, created before the host starts.

systemd-nspawn puts its payload below the cgroup it was started in. Without a cgroup of its own, every host on a machine
whose PID 1 is not systemd would share one payload cgroup, and would see the other hosts' services as its own. `down`
also uses the cgroup to find every process of a host, even if no record exists.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gpuaas_lab import processes
from gpuaas_lab.errors import KernelMissing
from gpuaas_lab.plan import cgroup_name

MOUNTS = Path("/proc/self/mounts")


def hierarchies() -> list[Path]:
    """Return the folders where cgroups are created: the unified tree, or the v1 systemd tree (plus the v2 tree beside
    it)."""
    found = [line.split() for line in MOUNTS.read_text().splitlines()]
    unified = [Path(mount[1]) for mount in found if mount[2] == "cgroup2"]
    legacy = [Path(mount[1]) for mount in found if mount[2] == "cgroup" and "name=systemd" in mount[3].split(",")]
    if not unified and not legacy:
        raise KernelMissing(
            "No cgroup tree that systemd could use is mounted.",
            "mkdir -p /sys/fs/cgroup/systemd && mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd",
        )
    return legacy[:1] + unified[:1]


class HostCgroup:
    """The cgroup of one host, in every hierarchy in use."""

    def __init__(self, lab: str, host: str) -> None:
        self.folders = [tree / cgroup_name(lab) / host for tree in hierarchies()]

    def make(self, child: str = "") -> list[str]:
        """Create the cgroup and return the files to which a process writes its id in order to join."""
        for folder in self.folders:
            (folder / child).mkdir(parents=True, exist_ok=True)
        return [str(folder / child / "cgroup.procs") for folder in self.folders]

    def pids(self, child: str = "") -> set[int]:
        return {pid for folder in self.folders for pid in _pids(folder / child)}

    def stop_all(self) -> None:
        """Stop every process of the host with SIGSTOP, in two rounds, because a process may fork during the first."""
        for _ in range(2):
            for pid in self.pids("payload"):
                processes.stop_while(pid, lambda pid=pid: pid in self.pids("payload"))

    def kill_all(self, timeout: float = 10) -> bool:
        """Kill the host's own processes first, so that its nspawn ends by itself and removes its lock files. Returns
        True if none is left."""
        if self.pids("payload"):
            processes.wait_until(lambda: self._killed("payload") and not self.pids(), 2)
        return processes.wait_until(self._killed, timeout)

    def _killed(self, child: str = "") -> bool:
        """Kill all processes once. Returns True if none is left; a process may have forked meanwhile."""
        for pid in self.pids(child):
            processes.kill_while(pid, lambda pid=pid: pid in self.pids(child))
        return not self.pids(child)

    def remove(self) -> bool:
        for folder in self.folders:
            processes.wait_until(lambda folder=folder: _remove(folder), 5)
        return not any(folder.exists() for folder in self.folders)


def hosts_with_cgroup(lab: str) -> set[str]:
    return {path.name for tree in hierarchies() for path in (tree / cgroup_name(lab)).glob("*/") if path.is_dir()}


def remove_lab(lab: str) -> bool:
    for tree in hierarchies():
        _remove(tree / cgroup_name(lab))
    return not any((tree / cgroup_name(lab)).exists() for tree in hierarchies())


def _folders(folder: Path) -> list[Path]:
    """Return the cgroup's folders, deepest first. os.walk ignores a cgroup that disappears meanwhile."""
    return [Path(path) for path, _, _ in os.walk(folder, topdown=False)]


def _pids(folder: Path) -> Iterator[int]:
    for child in _folders(folder):
        with suppress(OSError):
            yield from (int(pid) for pid in (child / "cgroup.procs").read_text().split() if pid != "0")


def _remove(folder: Path) -> bool:
    for child in _folders(folder):
        with suppress(OSError):
            child.rmdir()
    return not folder.exists()
