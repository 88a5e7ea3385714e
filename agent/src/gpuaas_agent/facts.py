"""Facts about the host, read from the kernel for each report."""

import os
import re
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpuaas_agent import __version__

GPU = re.compile(r"nvidia\d{1,3}")


def collect(root: Path = Path("/"), gpu_model: str = "") -> dict[str, Any]:
    return {
        "hostname": socket.gethostname(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mb": _memory_mb(root),
        "gpus": _gpus(root, gpu_model),
        "os": _os_name(root)[:120],
        "kernel": os.uname().release[:120],
        "agent_version": __version__,
        "machine_id": machine_id(root),
        "boot_id": boot_id(root),
    }


def machine_id(root: Path = Path("/")) -> str:
    return _text(root / "etc/machine-id")


def boot_id(root: Path = Path("/")) -> str:
    return _text(root / "proc/sys/kernel/random/boot_id")


def address_towards(api: str) -> str:
    """Return the address from which this host reaches the platform; no packet is sent."""
    target = urlsplit(api)
    port = target.port or (443 if target.scheme == "https" else 80)
    family, _, _, _, where = socket.getaddrinfo(target.hostname, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(where)
        return str(probe.getsockname()[0])


def _gpus(root: Path, model: str) -> list[dict[str, str]]:
    devices = [path for path in (root / "dev").glob("nvidia*") if GPU.fullmatch(path.name) and path.is_char_device()]
    devices.sort(key=lambda path: int(path.name.removeprefix("nvidia")))
    name = model or _driver_model(root)
    return [{"path": f"/dev/{path.name}", "model": name[:80]} for path in devices]


def _driver_model(root: Path) -> str:
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        match = re.search(r"^Model:\s*(.+)$", _text(file), re.M)
        if match:
            return match.group(1).strip()
    return "gpu"


def _memory_mb(root: Path) -> int:
    match = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.M)
    return max(1, int(match.group(1)) // 1024) if match else 1


def _os_name(root: Path) -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', _text(root / "etc/os-release"), re.M)
    return match.group(1) if match else ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
