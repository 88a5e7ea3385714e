"""Passes tasks from the poll thread to the task thread, and shows the poll thread whether the task thread is free."""

import threading
from typing import Any

from gpuaas_agent.tasks.document import ID


class Inbox:
    """The queue between the poll thread and the task thread. `free`: the task thread has no task. `working_on`: the id
    of its current task; None if it has no task or the id is invalid.

    `closed`: the task thread takes no tasks, because the platform has no keys to sign them.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._given: list[Any] = []
        self.free = False
        self.closed = False
        self.working_on: str | None = None

    def give(self, leased: Any) -> None:
        with self._changed:
            self._given.append(leased)
            self._hold(leased.get("task_id") if isinstance(leased, dict) else None)

    def resumes(self, task_id: str) -> None:
        with self._changed:
            self._hold(task_id)

    def take(self, wait_s: float) -> Any:
        """Mark the task thread as free and return its next task; None if no task arrives within `wait_s` seconds."""
        with self._changed:
            if not self._given:
                self.free, self.closed, self.working_on = True, False, None
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._given, wait_s)
            return self._given.pop(0) if self._given else None

    def close(self) -> None:
        with self._changed:
            self.free, self.closed, self.working_on = False, True, None
            self._changed.notify_all()

    def wait_until_free(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.free or self.closed, seconds)

    def _hold(self, task_id: Any) -> None:
        self.free = False
        self.working_on = task_id if isinstance(task_id, str) and ID.fullmatch(task_id) else None
        self._changed.notify_all()
