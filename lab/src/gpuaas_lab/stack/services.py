"""The services that should run, as one JSON file each. The supervisor starts and stops processes to match the folder.

A new file starts a service, a deleted file stops it, and a service whose process died is restarted. So adding a
controller later, or killing one in a test, needs no call to the supervisor.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gpuaas_lab.processes import Process


@dataclass(frozen=True)
class Service:
    name: str
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.services, self.pids, self.logs = root / "services", root / "pids", root / "logs"

    def prepare(self) -> None:
        for folder in (self.root, self.services, self.pids, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def want(self, service: Service) -> None:
        _write(self.services / f"{service.name}.json", asdict(service))

    def unwant(self, name: str) -> None:
        (self.services / f"{name}.json").unlink(missing_ok=True)

    def wanted(self) -> dict[str, Service]:
        found: dict[str, Service] = {}
        for path in sorted(self.services.glob("*.json")):
            with suppress(FileNotFoundError):  # taken away since it was listed
                found[path.stem] = Service(**json.loads(path.read_text()))
        return found

    def note(self, name: str, process: Process) -> None:
        _write(self.pids / f"{name}.json", asdict(process))

    def forget(self, name: str) -> None:
        (self.pids / f"{name}.json").unlink(missing_ok=True)

    def process(self, name: str) -> Process | None:
        """Return the live process of a service, or of the supervisor itself; never one with a reused process id."""
        try:
            process = Process(**json.loads((self.pids / f"{name}.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return process if process.alive else None

    def noted(self) -> list[str]:
        return sorted(path.stem for path in self.pids.glob("*.json"))

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"


def _write(path: Path, value: object) -> None:
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(value))
    os.replace(draft, path)
