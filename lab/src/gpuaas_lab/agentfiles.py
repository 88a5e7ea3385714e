"""Installs the agent on a host as an operator would: copies its package, then runs its `install`, which starts it."""

import importlib.util
import io
import json
import tarfile
from pathlib import Path

from gpuaas_lab.errors import EnrolFailed
from gpuaas_lab.hosts import Lab

# The new tree is complete before the old one goes; a running agent has its code in memory already. It lies as the
# platform's installer would put it, so that the agent can be upgraded.
UNPACK = """set -e
mkdir -p /opt/gpuaas-agent/releases && cd /opt/gpuaas-agent
rm -rf releases/lab.new && mkdir releases/lab.new
tar -x -C releases/lab.new
rm -rf releases/lab && mv releases/lab.new releases/lab
ln -sfn releases/lab current
"""
INSTALL = "PYTHONPATH=/opt/gpuaas-agent/current PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 -m gpuaas_agent install"


def install(lab: Lab, host: str, settings: dict[str, str]) -> None:
    _do(lab, host, UNPACK, package())
    _do(lab, host, INSTALL, json.dumps(settings).encode())


def package() -> bytes:
    """Return the agent's source tree as a tar archive, from its installation on this machine."""
    spec = importlib.util.find_spec("gpuaas_agent")
    if spec is None or not spec.submodule_search_locations:
        raise EnrolFailed("The agent package is not installed on this machine.", "uv pip install -e agent")
    folder, buffer = Path(next(iter(spec.submodule_search_locations))), io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                tar.add(path, f"gpuaas_agent/{path.relative_to(folder)}", filter=_as_root)
    return buffer.getvalue()


def node_id(lab: Lab, host: str) -> str | None:
    result = lab.exec(host, ["cat", "/var/lib/gpuaas-agent/node.json"], timeout=10)
    return json.loads(result.stdout)["node_id"] if result.exit == 0 and result.stdout else None


def last_words(lab: Lab, host: str) -> str:
    return lab.exec(host, ["journalctl", "--unit=gpuaas-agent", "--lines=8", "--no-pager", "--output=cat"]).text


def _do(lab: Lab, host: str, script: str, data: bytes | None = None) -> None:
    result = lab.exec(host, ["sh", "-c", script], timeout=60, input=data)
    if result.exit != 0:
        raise EnrolFailed(f"The agent could not be installed on '{host}': {result.error_text}", "gpuaas-lab status")


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
