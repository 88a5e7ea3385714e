"""The lab's records: one JSON file per host, written before anything of that host is created.

A crash therefore leaves at worst a record of something that does not exist, never something without a record. Writes
are atomic (temporary file, fsync, rename). `lock` lets one command at a time work on a lab.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpuaas_lab import places, run
from gpuaas_lab.errors import LabBusy, NoAddressLeft
from gpuaas_lab.plan import DEFAULT_LAB, SLOTS, Plan
from gpuaas_lab.processes import Process


@dataclass
class HostRecord:
    """The record of one host, with everything needed to boot or remove it."""

    name: str
    number: int
    image: str
    gpus: int = 2
    disk_mb: int | None = None
    without_packages: list[str] = field(default_factory=list)
    prepared: bool = False
    settled: bool = False
    supervisor: Process | None = None
    leader: Process | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "HostRecord":
        for key in ("supervisor", "leader"):
            if data.get(key):
                data[key] = Process(**data[key])
        return cls(**data)


@dataclass
class LabRecord:
    """The record of the lab itself."""

    name: str
    slot: int
    subnet: str
    api_ports: list[int]
    controllers: dict[str, int] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        return Plan.of(self.name, self.slot, self.subnet)


class State:
    """The state folder of one lab."""

    def __init__(self, lab: str) -> None:
        self.lab = lab
        self.root = places.state_root()
        self.folder = self.root / lab

    def host_folder(self, host: str) -> Path:
        return self.folder / "hosts" / host

    def console(self, host: str) -> Path:
        return self.host_folder(host) / "console.log"

    def load_lab(self) -> LabRecord | None:
        data = _read(self.folder / "lab.json")
        return LabRecord(**data) if data else None

    def save_lab(self, record: LabRecord) -> None:
        _write(self.folder / "lab.json", asdict(record))

    def load_hosts(self) -> dict[str, HostRecord]:
        found = [_read(path) for path in sorted((self.folder / "hosts").glob("*.json"))]
        records = [HostRecord.from_json(data) for data in found if data]
        return {record.name: record for record in sorted(records, key=lambda record: record.number)}

    def save_host(self, record: HostRecord) -> None:
        _write(self.folder / "hosts" / f"{record.name}.json", asdict(record))

    def forget_host(self, host: str) -> None:
        (self.folder / "hosts" / f"{host}.json").unlink(missing_ok=True)

    def claim_slot(self, taken_elsewhere: set[int]) -> int:
        """Claim the lowest free slot with a symlink `slot-N -> lab name`, which is created atomically."""
        self.root.mkdir(parents=True, exist_ok=True)
        for slot in [0] if self.lab == DEFAULT_LAB else range(1, SLOTS):
            link = self.root / f"slot-{slot}"
            with suppress(FileExistsError):
                if slot in taken_elsewhere and not link.is_symlink():
                    continue
                link.symlink_to(self.lab)
            if os.readlink(link) == self.lab:
                return slot
        raise NoAddressLeft(
            f"All {SLOTS} lab slots of this machine are taken.", "Remove an unused lab (gpuaas-lab down --lab NAME)."
        )

    def slot(self) -> int | None:
        for link in self.root.glob("slot-*"):
            if link.is_symlink() and os.readlink(link) == self.lab:
                return int(link.name.removeprefix("slot-"))
        return None

    def release_slot(self) -> None:
        slot = self.slot()
        if slot is not None:
            (self.root / f"slot-{slot}").unlink(missing_ok=True)

    @contextmanager
    def locked(self, timeout: float = 120) -> Iterator[None]:
        with lock(self.root / f"{self.lab}.lock", self.lab, timeout):
            yield


def labs() -> list[str]:
    """Return every lab that has a folder on this machine."""
    root = places.state_root()
    return sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


@contextmanager
def lock(path: Path, what: str, timeout: float) -> Iterator[None]:
    """Hold an exclusive lock that child processes inherit. `down` deletes the file, so the locked file is checked to be
    the current one."""
    handle = _acquire(path, what, timeout)
    run.inherited.add(handle)
    try:
        yield
    finally:
        run.inherited.discard(handle)
        os.close(handle)


def _acquire(path: Path, what: str, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if _try_lock(handle) and _same_file(handle, path):
                return handle
            os.close(handle)
        if time.monotonic() > deadline:
            raise LabBusy(what, timeout)
        time.sleep(0.05)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.fstat(handle).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    with temporary.open("w") as file:
        json.dump(data, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
