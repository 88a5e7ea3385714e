"""Another version of this agent, put in place by itself: fetched, checked, tried, swapped, started.

The start ends this process in the middle of the task. The new one finds the journal, does the task again, sees that it
is the wanted version already, and says so.
"""

import ctypes
import os
import shutil
import sys
import tarfile
import time
from pathlib import Path, PurePosixPath
from typing import Any

from gpuaas_agent import __version__
from gpuaas_agent.tasks.acts.fetch_artifact import receive
from gpuaas_agent.tasks.acts.run_unit import SYSTEMCTL
from gpuaas_agent.tasks.errors import TaskFailed
from gpuaas_agent.tasks.work import Work

PACKAGE, MOST_FILES, MOST_BYTES = "gpuaas_agent", 2000, 64 << 20
UNIT = "gpuaas-agent.service"
STARTS_WITHIN_S = 60
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def act(work: Work) -> dict[str, Any]:
    wanted = work.arguments["version"]
    if __version__ == wanted:
        return {"version": wanted}
    home = work.places.agent
    new, old = home.with_name(f"{home.name}.new"), home.with_name(f"{home.name}.old")
    with work.step("fetch"):
        _unpack(work, new)
    with work.step("try"):
        said = work.must(["/usr/bin/env", f"PYTHONPATH={new}", sys.executable, "-m", PACKAGE, "--version"]).strip()
        if said != wanted:
            raise TaskFailed(f"The package is of version {said[:40]!r}, not {wanted!r}.")
    with work.step("swap"):
        shutil.rmtree(old, ignore_errors=True)
        _exchange(new, home)
        new.rename(old)
    with work.step("start"):
        work.must([SYSTEMCTL, "restart", "--no-block", UNIT])
        time.sleep(STARTS_WITHIN_S)  # this process ends here
    raise TaskFailed(f"The service manager did not start the new version; the former one is in {old}.")


def _exchange(one: Path, other: Path) -> None:
    """At once: at no moment is there no agent. The standard library has no name for it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), f"{one} and {other} could not be exchanged")


def _unpack(work: Work, new: Path) -> None:
    shutil.rmtree(new, ignore_errors=True)
    work.places.tasks.mkdir(parents=True, exist_ok=True)
    archive = work.places.tasks / "upgrade.tar"
    handle = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        receive(work, handle)
    finally:
        os.close(handle)
    try:
        with tarfile.open(archive) as tar:
            for entry in _checked(tar):
                work.checkpoint()
                _extract(tar, entry, new)
    except tarfile.TarError as error:
        raise TaskFailed(f"The package cannot be read: {error}") from error
    finally:
        archive.unlink()


def _checked(tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    entries = tar.getmembers()
    if len(entries) > MOST_FILES or sum(entry.size for entry in entries) > MOST_BYTES:
        raise TaskFailed("The package is too large.")
    for entry in entries:
        parts = PurePosixPath(entry.name).parts
        if not (entry.isfile() or entry.isdir()) or parts[:1] != (PACKAGE,) or ".." in parts:
            raise TaskFailed(f"The package has something in it that does not belong there: {entry.name[:100]!r}.")
    return [entry for entry in entries if entry.isfile()]


def _extract(tar: tarfile.TarFile, entry: tarfile.TarInfo, new: Path) -> None:
    path = new / entry.name
    path.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(entry)
    assert source is not None
    with path.open("xb") as file:
        shutil.copyfileobj(source, file)
        os.fsync(file.fileno())
