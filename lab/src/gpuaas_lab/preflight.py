"""Checks what this machine lacks to run a lab, before anything is changed, and how to install it."""

import os
import platform
import shutil
from pathlib import Path

from gpuaas_lab.errors import KernelMissing, NotLinux, NotRoot, ToolsMissing

# program -> Debian package that brings it
TOOLS = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "setsid": "util-linux",
    "mount": "mount",
    "chroot": "coreutils",
    "apt-get": "apt",
}

SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def check() -> None:
    """Raise an error for the first missing requirement."""
    if platform.system() != "Linux":
        raise NotLinux(platform.system())
    if os.geteuid() != 0:
        raise NotRoot()
    missing = [tool for tool in TOOLS if shutil.which(tool, path=SBIN) is None]
    if missing:
        raise ToolsMissing(missing, sorted({TOOLS[tool] for tool in missing}))
    if not _kernel_knows("overlay"):
        raise KernelMissing(
            "This kernel has no overlay file system.", "modprobe overlay, or use a stock Debian kernel."
        )


def _kernel_knows(filesystem: str) -> bool:
    known = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines() if line.strip()}
    if filesystem in known:
        return True
    modules = Path("/lib/modules") / platform.release()
    return any(modules.rglob(f"{filesystem}.ko*")) if modules.is_dir() else False
