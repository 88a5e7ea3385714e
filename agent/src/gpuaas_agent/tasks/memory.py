"""The stored history of tasks, by which replays and outdated tasks are rejected: claim epochs, wiped allocations,
completed tasks. A change is on disk before the task starts.

Claim epochs are counted from 1 within each operation, so the highest received epoch is stored per allocation and
operation. A wiped allocation is closed: tasks that still arrive for it are rejected.
"""

import json
from typing import Any

from gpuaas_agent import files
from gpuaas_agent.places import Places
from gpuaas_agent.tasks.document import WIPE, Task
from gpuaas_agent.tasks.errors import TaskRefused

MOST_CLOSED = 1000


class Memory:
    def __init__(self, places: Places) -> None:
        self.path = places.tasks / "memory.json"
        text = files.read(self.path)
        # A damaged file stops tasks rather than lifting a fence: json raises, the thread logs it and retries.
        known: dict[str, Any] = json.loads(text) if text else {}
        self.epochs: dict[str, dict[str, int]] = known.get("epochs", {})
        self.closed: list[str] = known.get("closed", [])
        self.done: dict[str, list[int]] = known.get("done", {})

    def admit(self, task: Task) -> None:
        """Record the claim epoch of a task. Raises TaskRefused for a replay, a task of a former claim, or a task of a
        wiped allocation."""
        if task.attempt <= self.done.get(task.task_id, [0])[0]:
            raise TaskRefused(f"Attempt {task.attempt} of this task was done already.")
        if task.allocation_id in self.closed and task.kind != WIPE:
            raise TaskRefused("The allocation was wiped from this node.")
        highest = self.epochs.get(task.allocation_id or "", {}).get(task.operation_id or "", 0)
        if task.epoch < highest:
            raise TaskRefused(f"The task is of epoch {task.epoch}; this node has seen {highest}.")
        if task.allocation_id and task.operation_id and task.epoch > highest:
            self.epochs.setdefault(task.allocation_id, {})[task.operation_id] = task.epoch
            self._save()

    def ended(self, task: Task, now: float) -> None:
        """Record a completed task. The record is kept until the task's document expires; an expired document is
        rejected anyway."""
        self.done = {name: known for name, known in self.done.items() if known[1] > now}
        self.done[task.task_id] = [task.attempt, task.expires_at]
        self._save()

    def close(self, allocation_id: str) -> None:
        self.closed = [*(one for one in self.closed if one != allocation_id), allocation_id][-MOST_CLOSED:]
        self.epochs.pop(allocation_id, None)
        self._save()

    def _save(self) -> None:
        known = {"epochs": self.epochs, "closed": self.closed, "done": self.done}
        files.write(self.path, json.dumps(known), 0o600)
