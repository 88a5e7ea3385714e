"""Opens files in the folders that tasks may change, one path component at a time, without following symbolic links."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuaas_agent.tasks.errors import TaskFailed

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ALLOWED = ("/opt/gpuaas/", "/etc/gpuaas/apps/", "/var/lib/gpuaas/apps/", "/etc/systemd/system/gpuaas-")


@contextmanager
def folder_of(root: Path, path: str, made: Callable[[str], None] | None = None) -> Iterator[tuple[int, str]]:
    """Open the parent folder of a path. Yields its file descriptor and the last component of the path. With `made`, a
    missing folder is created after `made` was called with its path; without `made`, FileNotFoundError is raised."""
    *folders, name = names(path)
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, one in enumerate(folders, 1):
            inner = _enter(handle, one, "/" + "/".join(folders[:depth]), made)
            os.close(handle)
            handle = inner
        yield handle, name
    finally:
        os.close(handle)


def names(path: str) -> list[str]:
    """Split a path into its components. Raises TaskFailed if the path is not below an allowed folder or contains `..`.
    The task schema rejects such paths too."""
    parts = path.split("/")[1:]
    if not path.startswith(ALLOWED) or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise TaskFailed(f"{path!r} is not below a folder that tasks may change.")
    return parts


def _enter(handle: int, name: str, whole: str, made: Callable[[str], None] | None) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=handle)
    except FileNotFoundError:
        if made is None:
            raise
    except OSError as error:
        raise TaskFailed(f"{whole} is not a real folder of this host: {error.strerror}.") from error
    made(whole)
    os.mkdir(name, 0o755, dir_fd=handle)
    os.fsync(handle)
    return os.open(name, FOLDER, dir_fd=handle)


@contextmanager
def new_file(folder: int, name: str, mode: int, owner: tuple[int, int]) -> Iterator[int]:
    """Open a new file for writing. It appears under its name, with mode and owner, when the block ends; after an error
    in the block it does not appear."""
    temporary = f".{name}.gpuaas-new"
    remove(folder, temporary)
    handle = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    try:
        yield handle
        os.fchown(handle, *owner)
        os.fchmod(handle, mode)
        os.fsync(handle)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        remove(folder, temporary)
        raise
    finally:
        os.close(handle)


def remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    os.fsync(folder)
