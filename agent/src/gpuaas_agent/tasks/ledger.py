"""The record of the files, folders and units that tasks created on this host, per allocation. An entry is written
before the item is created, so that a wipe finds every item."""

import json
import re

from gpuaas_agent import files
from gpuaas_agent.places import Places

HOST = "host"  # of tasks that belong to no allocation
_NAME = re.compile(r"[a-z0-9_]{1,40}")


class Ledger:
    def __init__(self, places: Places, allocation_id: str | None) -> None:
        name = allocation_id or HOST
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no allocation")
        self.path = places.tasks / "ledger" / f"{name}.json"
        text = files.read(self.path)
        known = json.loads(text) if text else {}
        self.files: list[str] = known.get("files", [])
        self.folders: list[str] = known.get("folders", [])
        self.units: list[str] = known.get("units", [])

    def note(self, *, file: str = "", folder: str = "", unit: str = "") -> None:
        new = False
        for kept, one in ((self.files, file), (self.folders, folder), (self.units, unit)):
            if one and one not in kept:
                kept.append(one)
                new = True
        if new:
            known = {"files": self.files, "folders": self.folders, "units": self.units}
            files.write(self.path, json.dumps(known), 0o600)

    def forget(self) -> None:
        files.remove(self.path)
