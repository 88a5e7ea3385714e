"""A host's root file system: an overlay of the host's own changes over the shared image.

The changes are on this machine's disk or, for a host with a limited disk, in a tmpfs of that size, so that the host can
run out of space without affecting this machine.
"""

import os
import shutil
from pathlib import Path

from gpuaas_lab.run import run, succeeds


def attach(folder: Path, image: Path, disk_mb: int | None) -> Path:
    """Mount the host's root below `folder` and return its path. Does nothing if it is mounted."""
    root, changes = folder / "root", folder / "changes"
    for path in (root, changes):
        path.mkdir(parents=True, exist_ok=True)
    if disk_mb and not changes.is_mount():
        run(["mount", "-t", "tmpfs", "-o", f"size={disk_mb}m,mode=755", "gpuaas-lab", str(changes)])
    for path in (changes / "upper", changes / "work"):
        path.mkdir(exist_ok=True)
    if not root.is_mount():
        options = f"lowerdir={image},upperdir={changes}/upper,workdir={changes}/work"
        run(["mount", "-t", "overlay", "-o", options, "gpuaas-lab", str(root)])
    return root


def detach(folder: Path) -> None:
    """Unmount the root and keep the changes."""
    unmount(folder / "root")


def unmount(path: Path) -> None:
    if not path.is_mount() or succeeds(["umount", str(path)]):
        return
    run(["umount", "--lazy", str(path)])


def mounts_below(folder: Path) -> list[Path]:
    """Return the mounts below a folder, deepest first, as read from the kernel."""
    prefix = f"{folder}/"
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    decoded = [point.encode().decode("unicode_escape") for point in points]
    return [Path(point) for point in sorted(set(decoded), reverse=True) if point.startswith(prefix)]


def erase(folder: Path) -> None:
    """Delete a host's folder. Refuses while something is mounted below it, so that no mounted files are deleted."""
    for point in mounts_below(folder):
        unmount(point)
    if mounts_below(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists() and not os.listdir(folder):
        folder.rmdir()
