"""Installs the agent as a systemd service on this host (wrapper, unit and settings) and starts it. Used by people and
by the lab.

The settings come on standard input, because they contain a one-time token and other users can read arguments.
"""

import json
import subprocess
from pathlib import Path

from gpuaas_agent import files
from gpuaas_agent.errors import NotConfigured
from gpuaas_agent.places import Places

WRAPPER = """\
#!/bin/sh
# The host's own Python runs the agent from its folder; nothing is installed into Python.
export PYTHONPATH={home} PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 -m gpuaas_agent "$@"
"""
START = (["daemon-reload"], ["enable", "--quiet", "gpuaas-agent"], ["restart", "gpuaas-agent"])


def install(places: Places, settings: str, *, start: bool = True) -> None:
    wanted = _read(settings)
    package = Path(__file__).parent
    files.write(places.root / "usr/local/sbin/gpuaas-agent", WRAPPER.format(home=package.parent), 0o755)
    unit = (package / "gpuaas-agent.service").read_bytes()
    files.write(places.root / "etc/systemd/system/gpuaas-agent.service", unit)
    files.write(places.config, json.dumps(wanted, indent=2) + "\n", 0o600)
    if start:
        for arguments in START:
            subprocess.run(["/usr/bin/systemctl", *arguments], check=True, timeout=60)


def _read(settings: str) -> dict[str, str]:
    way_out = 'Send {"api": "https://…", "token": "…"} on standard input; `gpuaas node enrol NAME` prints it.'
    try:
        wanted = json.loads(settings)
    except ValueError as error:
        raise NotConfigured("The settings on standard input are not JSON.", way_out) from error
    if not isinstance(wanted, dict) or "api" not in wanted:
        raise NotConfigured("The settings have no `api`.", way_out)
    return wanted
