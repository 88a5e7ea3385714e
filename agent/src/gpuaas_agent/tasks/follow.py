"""The task thread: takes a task from the inbox, runs it and reports its result. After a restart it continues the
unfinished task.

A task starts only after its signature, its schema and its claim epoch were checked and its lease was renewed once.
"""

import json
import logging
import time
from typing import Any

from gpuaas_agent import files
from gpuaas_agent.errors import AgentError, Refused, Unreachable
from gpuaas_agent.places import Places
from gpuaas_agent.tasks import document
from gpuaas_agent.tasks.acts import ACTS, Act
from gpuaas_agent.tasks.document import Known, Task
from gpuaas_agent.tasks.errors import TaskError, TaskRefused, TaskStopped
from gpuaas_agent.tasks.inbox import Inbox
from gpuaas_agent.tasks.journal import BEGUN, RECEIVED, Journal, Spool
from gpuaas_agent.tasks.lease import Lease
from gpuaas_agent.tasks.memory import Memory
from gpuaas_agent.tasks.work import Work

log = logging.getLogger("gpuaas_agent")

WAIT_S = 60.0
WITHOUT_KEYS_S = 15.0
KEEP = (401, 403)  # not about the result itself, which is sent again later


class Tasks:
    """Runs the tasks of one host. `once` runs one round and can be called again after any error."""

    def __init__(
        self,
        places: Places,
        api: Any,
        node_id: str,
        acts: dict[str, Act] | None = None,
        inbox: Inbox | None = None,
    ) -> None:
        self.places, self.api, self.node_id, self.inbox = places, api, node_id, inbox or Inbox()
        self.acts = ACTS if acts is None else acts
        self.journal, self.spool, self.memory = Journal(places), Spool(places), Memory(places)
        self._path = f"/v1/nodes/{node_id}/tasks"

    def once(self) -> float:
        if not self._known().keys:
            self.inbox.close()
            return WITHOUT_KEYS_S  # a platform that knows no tasks
        self.resume()
        self.deliver()
        leased = self.inbox.take(WAIT_S)
        if leased:
            self.take(leased, self._known())  # read after the wait: an allocation may have been added meanwhile
            self.deliver()
        return 0

    def take(self, leased: Any, known: Known) -> None:
        leased = leased if isinstance(leased, dict) else {}
        try:
            task = document.read(leased.get("document"), known, self.node_id, self.api.now())
            if [leased.get(name) for name in ("task_id", "attempt", "epoch")] != [
                task.task_id,
                task.attempt,
                task.epoch,
            ]:
                raise TaskRefused("The task is not the one its document names.")
            self.memory.admit(task)
        except TaskRefused as refused:
            self._refuse(leased, str(refused))
            return
        self.do(task)

    def do(self, task: Task, steps: list[dict[str, Any]] | None = None, phase: str = RECEIVED) -> None:
        self.journal.open(task, steps or [], phase)
        lease = Lease(self.api, self.node_id, task)
        try:
            lease.renew()
        except Refused as refused:
            if refused.status in KEEP:
                raise
            log.info("task %s is no longer ours: %s", task.name, refused.sentence)
            self.journal.close()
            return
        self.journal.begun()
        with lease:
            outcome, message, evidence = self._act(task, lease)
        self._end(task, outcome, message, evidence)

    def resume(self) -> None:
        """Continue the task that the previous process left in the journal. A started task that is not idempotent is not
        run again: its result is `interrupted`."""
        left = self.journal.load()
        if left is None:
            return
        task = Task(**left["task"])
        self.inbox.resumes(task.task_id)
        if self.spool.has(task):
            self.memory.ended(task, self.api.now())
            self.journal.close()
        elif left["phase"] == BEGUN and not task.idempotent:
            self.journal.open(task, left["steps"], BEGUN)
            self._end(task, "interrupted", "The agent was interrupted while it worked on this.", {})
        else:
            self.do(task, left["steps"], left["phase"])

    def deliver(self) -> None:
        """Send the stored results to the platform, and delete each result that the platform has accepted or rejected
        for good. A result may be sent twice; the platform counts it once."""
        for path in self.spool.waiting():
            known = json.loads(path.read_bytes())
            try:
                self.api.post(f"{self._path}/{known['task_id']}/result", known["result"])
            except Refused as refused:
                if refused.status in KEEP:
                    raise
                log.warning("the platform rejected the result of %s: %s", path.stem, refused.sentence)
            files.remove(path)

    def _act(self, task: Task, lease: Lease) -> tuple[str, str, dict[str, Any]]:
        started = time.monotonic()
        try:
            work = Work(self.places, self.api, task, self.journal, lease, self.memory)
            evidence = self.acts[task.kind](work)
        except TaskStopped as stopped:
            return (self._stopped(task, lease), str(stopped), {})
        except TaskError as error:
            return error.outcome, str(error), {}
        except Unreachable:
            raise  # the journal stays: the task is repeated once the platform responds
        except Exception as error:
            log.warning("task %s failed", task.name, exc_info=not isinstance(error, OSError | AgentError))
            return "failed", f"{type(error).__name__}: {error}", {}
        log.info("task %s: %s done in %.1f s", task.name, task.kind, time.monotonic() - started)
        return "succeeded", "", evidence

    @staticmethod
    def _stopped(task: Task, lease: Lease) -> str:
        """Return the outcome of a stopped task: `failed` if an idempotent task exceeded its time limit, because a
        repetition would take as long; otherwise `interrupted`."""
        return "failed" if task.idempotent and lease.out_of_time else "interrupted"

    def _end(self, task: Task, outcome: str, message: str, evidence: dict[str, Any]) -> None:
        bounded = bound(evidence | {"steps": self.journal.steps}, task.output_limit)
        result = {"attempt": task.attempt, "epoch": task.epoch, "outcome": outcome, "message": message[:1900]}
        self.spool.put(task.task_id, task.attempt, result | {"evidence": bounded})
        self.memory.ended(task, self.api.now())
        self.journal.close()

    def _refuse(self, leased: Any, why: str) -> None:
        """Store the result `refused` under the task id, attempt and epoch of the delivery. Without valid ids no result
        is stored."""
        log.warning("rejected a task: %s", why)
        task_id, attempt, epoch = (leased.get(name) for name in ("task_id", "attempt", "epoch"))
        if not (isinstance(task_id, str) and document.ID.fullmatch(task_id) and type(attempt) is type(epoch) is int):
            return
        result = {"attempt": attempt, "epoch": epoch, "outcome": "refused", "message": why[:1900], "evidence": {}}
        self.spool.put(task_id, attempt, result)

    def _known(self) -> Known:
        saved = files.read(self.places.trust)
        return Known.of(json.loads(saved) if saved else {})


def bound(evidence: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the evidence if its JSON has at most `most` characters; otherwise the beginning of the JSON, marked
    `cut_off`."""
    text = json.dumps(evidence)
    return evidence if len(text) <= most else {"cut_off": True, "begins": text[: most // 2]}
