"""Runs stages of steps: surveys which steps are done on each host, then runs the missing steps. The journal records
each step before its act and after its verification.

All tasks of a stage on one host run in one command. After a kill at any moment, the survey (or, without a survey, the
command itself) finds which steps are done, and only the others are run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypedDict

import structlog

from ..client.request import JsonObject
from . import failpoints
from .errors import StepFailed
from .host import Answer, together
from .journal import Journal, Key
from .reporter import Reporter
from .step import Stage, Task, acts, survey

log = structlog.get_logger()
ReadResult = Callable[[Answer], JsonObject]
Surveys = Mapping[str, asyncio.Task[frozenset[str]]]  # by allocation: the steps that are done on its host


class TimelineRow(TypedDict):
    """A finished step, as shown in `adapter_detail`."""

    step: str
    host: str
    acted: bool
    ms: int


@dataclass(frozen=True)
class Prefetched:
    """The steps that were already done on a host, read before the stages were known (see the prefetch of an app)."""

    probes: Mapping[str, str]  # by step
    done: frozenset[str]

    def answers(self, tasks: Sequence[Task]) -> bool:
        """Return True if the prefetch ran the probe of each of these tasks. If not, the host must be surveyed."""
        return all(self.probes.get(task.step.name) == task.step.probe for task in tasks)


@dataclass
class Runner:
    journal: Journal
    reporter: Reporter
    untouched: frozenset[str] = frozenset()  # allocations of hosts on which no step can be done yet: no survey
    prefetched: Mapping[str, Prefetched] = field(default_factory=dict[str, Prefetched])  # by allocation
    surveyed: bool = True  # probe all hosts before the first act; else each command probes for itself
    pause: Callable[[], bool] = lambda: False
    results: Mapping[str, ReadResult] = field(
        default_factory=dict[str, ReadResult]
    )  # step -> what to keep of its output
    timeline: list[TimelineRow] = field(default_factory=list[TimelineRow])

    async def run(self, stages: Sequence[Stage]) -> bool:
        """Run the stages. Returns True when every step is done, False if `pause` requested a stop between two
        stages."""
        of, number = sum(len(stage) for stage in stages), 0
        hosts = {task.host.allocation_id for stage in stages for task in stage}
        async with self._surveys(stages) as surveys:
            for stage in stages:
                if self.pause():
                    return False
                held = await together(*(self._holds(task, stages, surveys) for task in stage))
                waiting = [task for task, done in zip(stage, held, strict=True) if not done]
                number += len(stage)
                if waiting:
                    where = name_hosts(_hosts(waiting)) if len(hosts) > 1 else ""
                    self.reporter.say(_ordered(stage)[-1].step.phase, number, of, stage_title(stage) + where)
                await together(*(self._run_command(tasks) for tasks in _by_host(waiting)))
            return True

    async def _run_command(self, tasks: Sequence[Task]) -> None:
        """Run the tasks of one host in one command. The journal records their attempts before the command and their
        results after it. Raises StepFailed for the first failed step."""
        self.prefetched = {}
        host, started = tasks[0].host, time.monotonic()
        if len(tasks) > 1 and any(failpoints.marked(task.step.name) for task in tasks):
            for task in _ordered(tasks):  # a test has a failpoint between two acts
                await self._run_command([task])
            return
        attempts = {task.step.name: self.journal.acting(self._key(task)) for task in tasks}
        for task in tasks:
            await failpoints.reach(task.step.name, "before_act")
        answers = await command(tasks, ask=not self.surveyed and host.allocation_id not in self.untouched)
        for task in tasks:
            await failpoints.reach(task.step.name, "after_act")
        ms = round((time.monotonic() - started) * 1000)
        failed = [error for task in tasks if (error := self._end(task, attempts[task.step.name], answers, ms))]
        if failed:
            raise failed[0]
        if silent := [task.step for task in tasks if task.step.name not in answers]:
            raise StepFailed(silent[0].code, f"No result of this step arrived from {host.name}: {silent[0].title}.")

    def _end(self, task: Task, attempt: int, answers: Mapping[str, Answer], ms: int) -> StepFailed | None:
        key, answer = self._key(task), answers.get(task.step.name)
        if answer is None:
            self.journal.not_begun(key, attempt)
            return None
        if held := "held" in answer.lines:
            self.journal.held(key, attempt)
        else:
            try:
                kept = self._read(task, answer)
            except StepFailed as error:
                self.journal.failed(key, attempt, {"code": error.code, **error.detail})
                return error
            self.journal.verified(key, attempt, kept)
        self._note(task, acted=not held, ms=0 if held else answer.ms if answer.ms is not None else ms)
        return None

    def _read(self, task: Task, answer: Answer) -> JsonObject:
        step = task.step
        if answer.exit != 0:
            raise task.host.profile.failures.explain(
                answer, host=task.host.name, step=step.name, title=step.title, code=step.code
            )
        return self.results[step.name](answer) if step.name in self.results else {}

    @asynccontextmanager
    async def _surveys(self, stages: Sequence[Stage]) -> AsyncGenerator[Surveys]:
        """Survey all hosts concurrently in the background. Yields the surveys by allocation, so that a stage waits only
        for the surveys of its own hosts."""
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
        if not self.surveyed or host.allocation_id in self.untouched:
            return frozenset()
        if (known := self.prefetched.get(host.allocation_id)) and known.answers(tasks):
            return known.done
        answer = await host.script(survey([task.step for task in tasks], host.profile.units), within=60)
        return frozenset(answer.lines.get("done", []))

    async def _holds(self, task: Task, stages: Sequence[Stage], surveys: Surveys) -> bool:
        """Return True, and record it, if the survey found the task's step done; a step that it `goes_with` must be done
        on every host too. Otherwise return False."""
        concerned = [task, *(one for stage in stages for one in stage if one.step.name == task.step.goes_with)]
        found = await together(*(surveys[one.host.allocation_id] for one in concerned))
        if not all(one.step.name in done for one, done in zip(concerned, found, strict=True)):
            return False
        self.journal.probed(self._key(task))
        self._note(task, acted=False, ms=0)
        return True

    def _note(self, task: Task, *, acted: bool, ms: int) -> None:
        row = TimelineRow(step=task.step.name, host=task.host.name, acted=acted, ms=ms)
        self.timeline.append(row)
        log.info("step done", kind="step", **row)

    def _key(self, task: Task) -> Key:
        claim = task.host.claim
        return Key(claim.operation_id, claim.instance_id, task.host.allocation_id, task.step.name, claim.epoch)


async def command(tasks: Sequence[Task], *, ask: bool) -> dict[str, Answer]:
    """Run the tasks in one command on their host. Returns the output of each step that the host started, by step
    name."""
    host, turns = tasks[0].host, [[t.step for t in tasks if t.turn == turn] for turn in sorted({t.turn for t in tasks})]
    steps = [step for turn in turns for step in turn]
    inputs = {step.name: data for step in steps if (data := await step.input()) is not None}
    within = sum(max(step.within for step in turn) for turn in turns)
    answer = await host.script(
        acts(turns, inputs, ask=ask), step=steps[0].name, within=within, data=b"".join(inputs.values()) or None,
        also=[step.name for step in steps[1:]],
    )  # fmt: skip
    return answer.parts or {steps[0].name: answer}


def _by_host(tasks: Sequence[Task]) -> list[list[Task]]:
    grouped: dict[str, list[Task]] = {}
    for task in tasks:
        grouped.setdefault(task.host.allocation_id, []).append(task)
    return list(grouped.values())


def _ordered(tasks: Sequence[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: task.turn)


def _hosts(tasks: Sequence[Task]) -> list[str]:
    return list(dict.fromkeys(task.host.name for task in tasks))


def stage_title(stage: Stage) -> str:
    """Return the stage's title for people. It names the first and the last step, whether or not they are already
    done."""
    first, *_, last = [task.step.title for task in (*_ordered(stage)[:1], *_ordered(stage))]
    return first if first == last else f"{first} … {last[0].lower()}{last[1:]}"


def name_hosts(hosts: Sequence[str], most: int = 3) -> str:
    more = f" and {len(hosts) - most} more" if len(hosts) > most else ""
    return f" ({', '.join(hosts[:most])}{more})"
