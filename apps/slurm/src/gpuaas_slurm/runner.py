"""Runs steps: one survey per host, then for each step that is not done: journal, act and verify on the host, journal.

Kill this process anywhere and start it again: the survey finds what is done, the rest is acted once.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from gpuaas_slurm import failpoints
from gpuaas_slurm.errors import StepFailed, explain
from gpuaas_slurm.hosts import Answer
from gpuaas_slurm.reporter import Reporter
from gpuaas_slurm.state.journal import Journal, Key
from gpuaas_slurm.steps.base import Stage, Step, Task, survey

log = structlog.get_logger()
Found = Callable[[Answer], dict[str, Any]]


@dataclass
class Runner:
    journal: Journal
    reporter: Reporter
    untouched: str = "false"  # shell: this host was never touched, so no probe needs asking
    pause: Callable[[], bool] = lambda: False
    found: Mapping[str, Found] = field(default_factory=dict)  # step -> what to keep of its answer
    timeline: list[dict[str, Any]] = field(default_factory=list)

    async def run(self, stages: Sequence[Stage]) -> bool:
        """True when every step holds; False when asked to pause between two stages."""
        done = await self._survey(stages)
        of, number = sum(len(stage) for stage in stages), 0
        several = len({task.host.allocation_id for stage in stages for task in stage}) > 1
        for stage in stages:
            if self.pause():
                return False
            waiting = [task for task in stage if not self._already(task, done)]
            for step, hosts in _by_step(waiting):
                number += len(hosts)
                self.reporter.say(step.phase, number, of, step.title + (named(hosts) if several else ""))
            number += len(stage) - len(waiting)
            await self._together(waiting)
        return True

    async def _together(self, tasks: Sequence[Task]) -> None:
        """Every act of the stage comes to its end before the first failure is told: no act is left half watched."""
        results = await asyncio.gather(*(self._one(task) for task in tasks), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _one(self, task: Task) -> None:
        key, step = self._key(task), task.step
        started = time.monotonic()
        attempt = self.journal.acting(key)
        await failpoints.reach(step.name, "before_act")
        data = await step.input()
        answer = await task.host.script(step.script(), step=step.name, unit=step.unit, within=step.within, data=data)
        await failpoints.reach(step.name, "after_act")
        try:
            kept = self._read(task, answer)
        except StepFailed as error:
            self.journal.failed(key, attempt, {"code": error.code, **error.detail})
            raise
        self.journal.verified(key, attempt, kept)
        self._note(task, acted=True, ms=round((time.monotonic() - started) * 1000))

    def _read(self, task: Task, answer: Answer) -> dict[str, Any]:
        step = task.step
        if answer.exit != 0:
            raise explain(answer, host=task.host.name, step=step.name, title=step.title, code=step.code)
        return self.found[step.name](answer) if step.name in self.found else {}

    async def _survey(self, stages: Sequence[Stage]) -> set[tuple[str, str]]:
        by_host: dict[str, list[Task]] = {}
        for stage in stages:
            for task in stage:
                by_host.setdefault(task.host.allocation_id, []).append(task)
        answers = await asyncio.gather(
            *(
                tasks[0].host.script(survey([t.step for t in tasks], self.untouched), within=60)
                for tasks in by_host.values()
            )
        )
        return {(a, name) for a, answer in zip(by_host, answers, strict=True) for name in answer.said.get("done", [])}

    def _already(self, task: Task, done: set[tuple[str, str]]) -> bool:
        if (task.host.allocation_id, task.step.name) not in done:
            return False
        self.journal.probed(self._key(task))
        self._note(task, acted=False, ms=0)
        return True

    def _note(self, task: Task, *, acted: bool, ms: int) -> None:
        row = {"step": task.step.name, "host": task.host.name, "acted": acted, "ms": ms}
        self.timeline.append(row)
        log.info("step done", kind="step", **row)

    def _key(self, task: Task) -> Key:
        claim = task.host.claim
        return Key(claim.operation_id, claim.instance_id, task.host.allocation_id, task.step.name, claim.epoch)


def _by_step(tasks: Sequence[Task]) -> list[tuple[Step, list[str]]]:
    """What is done on several hosts at once is one line for people."""
    found: dict[str, tuple[Step, list[str]]] = {}
    for task in tasks:
        found.setdefault(task.step.name, (task.step, []))[1].append(task.host.name)
    return list(found.values())


def named(hosts: Sequence[str], most: int = 3) -> str:
    more = f" and {len(hosts) - most} more" if len(hosts) > most else ""
    return f" ({', '.join(hosts[:most])}{more})"
