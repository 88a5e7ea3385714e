"""The journal of the current task, and the spool of unsent results. Each entry is on disk before the next step.

Order when a task ends: result in the spool, task recorded as done, journal removed, result sent, result removed. After
a kill between any two of these steps, the next start continues with the following one.
"""

import json
import time
from pathlib import Path
from typing import Any

from gpuaas_agent import files
from gpuaas_agent.places import Places
from gpuaas_agent.tasks.document import Task

RECEIVED, BEGUN = "received", "begun"
MOST_STEPS = 200


class Journal:
    """The journal of one task at a time. `steps` lists the started and completed steps; for an interrupted task they
    are the evidence."""

    def __init__(self, places: Places) -> None:
        self.path = places.tasks / "journal.json"

    def load(self) -> dict[str, Any] | None:
        text = files.read(self.path)
        return json.loads(text) if text else None

    def open(self, task: Task, steps: list[dict[str, Any]], phase: str) -> None:
        self._known = {"task": task.as_dict(), "phase": phase, "steps": steps}
        self._save()

    def begun(self) -> None:
        self._known["phase"] = BEGUN
        self._save()

    def begin(self, name: str) -> None:
        self._known["steps"].append({"step": name, "state": "begun", "at": int(time.time())})
        del self._known["steps"][:-MOST_STEPS]
        self._save()

    def did(self) -> None:
        self._known["steps"][-1]["state"] = "done"
        self._save()

    @property
    def steps(self) -> list[dict[str, Any]]:
        return list(self._known["steps"])

    def close(self) -> None:
        files.remove(self.path)

    def _save(self) -> None:
        files.write(self.path, json.dumps(self._known), 0o600)


class Spool:
    def __init__(self, places: Places) -> None:
        self.folder = places.tasks / "spool"

    def put(self, task_id: str, attempt: int, result: dict[str, Any]) -> None:
        files.write(self._path(task_id, attempt), json.dumps({"task_id": task_id, "result": result}), 0o600)

    def has(self, task: Task) -> bool:
        return self._path(task.task_id, task.attempt).exists()

    def waiting(self) -> list[Path]:
        return sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []

    def _path(self, task_id: str, attempt: int) -> Path:
        return self.folder / f"{task_id}.{attempt}.json"
