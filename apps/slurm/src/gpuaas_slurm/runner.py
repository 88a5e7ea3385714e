"""Runs steps: one survey per host, then for each step that is not done: journal, act and verify on the host, journal.

Kill this process anywhere and start it again: the survey finds what is done, the rest is acted once.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
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
Surveys = Mapping[str, asyncio.Task[frozenset[str]]]  # by allocation: the steps that its host was found to have done


@dataclass
class Runner:
    journal: Journal
    reporter: Reporter
    untouched: frozenset[str] = frozenset()  # allocations of hosts on which nothing can be done yet: no need to ask
    pause: Callable[[], bool] = lambda: False
    found: Mapping[str, Found] = field(default_factory=dict)  # step -> what to keep of its answer
    timeline: list[dict[str, Any]] = field(default_factory=list)

    async def run(self, stages: Sequence[Stage]) -> bool:
        """True when every step holds; False when asked to pause between two stages."""
        of, number = sum(len(stage) for stage in stages), 0
        async with self._surveys(stages) as surveys:
            for stage in stages:
                if self.pause():
                    return False
                held = await together(*(self._holds(task, stages, surveys) for task in stage))
                waiting = [task for task, done in zip(stage, held, strict=True) if not done]
                for step, hosts in _by_step(waiting):
                    number += len(hosts)
                    self.reporter.say(step.phase, number, of, step.title + (named(hosts) if len(surveys) > 1 else ""))
                number += len(stage) - len(waiting)
                await together(*(self._one(task) for task in waiting))
            return True

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

    @asynccontextmanager
    async def _surveys(self, stages: Sequence[Stage]) -> AsyncIterator[Surveys]:
        """All hosts are asked at once; a stage waits for its own hosts only."""
        by_host: dict[str, list[Task]] = {}
        for stage in stages:
            for task in stage:
                by_host.setdefault(task.host.allocation_id, []).append(task)
        asked = {one: asyncio.create_task(self._survey(tasks)) for one, tasks in by_host.items()}
        try:
            yield asked
        finally:
            for one in asked.values():
                one.cancel()
            await asyncio.gather(*asked.values(), return_exceptions=True)

    async def _survey(self, tasks: Sequence[Task]) -> frozenset[str]:
        host = tasks[0].host
        if host.allocation_id in self.untouched:
            return frozenset()
        answer = await host.script(survey([task.step for task in tasks]), within=60)
        return frozenset(answer.said.get("done", []))

    async def _holds(self, task: Task, stages: Sequence[Stage], surveys: Surveys) -> bool:
        """As the hosts were found before the first act."""
        concerned = [task, *(one for stage in stages for one in stage if one.step.name == task.step.goes_with)]
        found = await together(*(surveys[one.host.allocation_id] for one in concerned))
        if not all(one.step.name in done for one, done in zip(concerned, found, strict=True)):
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


async def together(*jobs: Awaitable[Any]) -> list[Any]:
    """All come to their end before the first failure is told: nothing is left half watched on a host."""
    results = await asyncio.gather(*jobs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def _by_step(tasks: Sequence[Task]) -> list[tuple[Step, list[str]]]:
    """What is done on several hosts at once is one line for people."""
    found: dict[str, tuple[Step, list[str]]] = {}
    for task in tasks:
        found.setdefault(task.step.name, (task.step, []))[1].append(task.host.name)
    return list(found.values())


def named(hosts: Sequence[str], most: int = 3) -> str:
    more = f" and {len(hosts) - most} more" if len(hosts) > most else ""
    return f" ({', '.join(hosts[:most])}{more})"
