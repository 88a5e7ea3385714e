"""Runs commands inside a host as root, through its namespaces: without sshd and without a key.

Hosts trust only the platform's SSH authority. The lab has no key for a host; root on this machine is enough.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import PurePosixPath

from gpuaas_lab.cgroups import HostCgroup
from gpuaas_lab.errors import ExecTimeout
from gpuaas_lab.processes import Process
from gpuaas_lab.run import CLEAN_ENV, Result, run

# Commands run in a cgroup of the host beside its systemd, so that they end with the host.
JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift; exec "$@"'
HOST_ENV = {**CLEAN_ENV, "HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/bash"}

# Arrives under its name complete, with its mode, or not at all.
PUT = """set -e; umask 077; mkdir -p -m 755 "$(dirname "$1")"
cat >"$1.part"; chmod "$2" "$1.part"; sync "$1.part"; mv "$1.part" "$1"
"""
# `script` gives the shell a terminal of the host's own, so job control works.
SHELL = ["script", "--quiet", "--return", "--command", "bash -l", "/dev/null"]


def execute(
    leader: Process, cgroup: HostCgroup, argv: Sequence[str], *, timeout: float, input: bytes | None = None
) -> Result:
    command = _command(leader, cgroup, argv)
    try:
        return run(command, timeout=timeout, input=input, check=False, env=HOST_ENV, keep_lock=False)
    except ExecTimeout:
        raise ExecTimeout(" ".join(argv), timeout) from None


def attach(leader: Process, cgroup: HostCgroup, argv: Sequence[str], *, timeout: float | None) -> int:
    """Run a command with this terminal's own input and output. Returns the exit code."""
    env = {**HOST_ENV, "TERM": os.environ.get("TERM", "dumb")}
    if not argv:
        argv = SHELL if sys.stdin.isatty() else ["bash"]
    child = subprocess.Popen(_command(leader, cgroup, argv), env=env)
    try:
        return child.wait(timeout)
    except subprocess.TimeoutExpired:
        _kill_tree(child.pid)
        child.wait(10)
        return 124


def put(leader: Process, cgroup: HostCgroup, path: str, data: bytes, mode: int, timeout: float) -> Result:
    if not PurePosixPath(path).is_absolute():
        raise ValueError(f"push needs an absolute path, not {path!r}")
    return execute(leader, cgroup, ["sh", "-c", PUT, "put", path, f"{mode:o}"], timeout=timeout, input=data)


def _command(leader: Process, cgroup: HostCgroup, argv: Sequence[str]) -> list[str]:
    enter = ["nsenter", "--target", str(leader.pid), "--all", "--root", "--wd", "--", *argv]
    return ["sh", "-c", JOIN, "join", *cgroup.make("exec"), "--", *enter]


def _kill_tree(pid: int) -> None:
    """Kill a process and its children, children first: nsenter's child runs in the host and would outlive it."""
    process = Process.of(pid)
    while process and (child := process.first_child):
        _kill_tree(child.pid)
        child.wait_gone(1)
        if child.alive:
            break
    if process:
        process.kill()
