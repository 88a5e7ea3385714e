"""Renews the lease of the current task, and detects that the lease was lost.

A thread renews the lease until the task's time limit passes: a task that hangs loses its lease. The duration of a lease
is counted from the moment before the request, by the monotonic clock.
"""

import threading
import time
from typing import Any

from gpuaas_agent.errors import AgentError, Refused
from gpuaas_agent.tasks.document import Task

RENEW_EVERY_S = 10.0


class Lease:
    def __init__(self, api: Any, node_id: str, task: Task) -> None:
        self._api, self._task = api, task
        self._path = f"/v1/nodes/{node_id}/tasks/{task.task_id}/renew"
        self._until = 0.0
        self._over = threading.Event()
        self.taken = False  # the platform ended this attempt
        self.ends_at = time.monotonic() + task.time_limit_s

    def renew(self) -> None:
        asked = time.monotonic()
        answer = self._api.post(self._path, {"attempt": self._task.attempt, "epoch": self._task.epoch})
        self._until = asked + float(answer["lease_expires_in_s"])

    @property
    def good(self) -> bool:
        return not self.taken and time.monotonic() < self._until

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() >= self.ends_at

    def __enter__(self) -> "Lease":
        threading.Thread(target=self._keep, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _keep(self) -> None:
        while not self._over.wait(RENEW_EVERY_S) and not self.taken and not self.out_of_time:
            try:
                self.renew()
            except Refused as refused:
                self.taken = refused.status in (404, 409)
            except AgentError:
                continue  # retried; the lease expires by its own time
