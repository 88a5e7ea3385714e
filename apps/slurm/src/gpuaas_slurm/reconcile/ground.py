"""What deploy and decommission share: reaching hosts with bounded patience, turning what goes wrong into outcomes."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from gpuaas_sdk import Again, Failed, MemberReport, TelemetrySender, Work
from gpuaas_sdk.client.errors import MachineError, MachineUnreachable, stale_claim
from gpuaas_sdk.host_steps import evidence
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.reporter import Reporter
from gpuaas_sdk.host_steps.store import StateAway

from gpuaas_slurm.errors import (
    NOTHING_CHANGED,
    UNREACHABLE_MEMBER,
    UNREACHABLE_TEARDOWN,
    WAYS_OUT,
    StepFailed,
    no_space,
)
from gpuaas_slurm.facts import CHARGE, HostFacts, look
from gpuaas_slurm.hosts import LOCKED_EXIT, Answer, Claim, Host, MachineLike, StaleOnHost
from gpuaas_slurm.plan import BadPlan
from gpuaas_slurm.render.check import BadConfig
from gpuaas_slurm.runner import together
from gpuaas_slurm.validate import BadWord

log = structlog.get_logger()
PACKAGE_SET = "slurm-packages"  # the artifact's name
Connect = Callable[[Work, str], AbstractAsyncContextManager[MachineLike]]
CODES = {"machine_unreachable": "host_unreachable", "command_timed_out": "step_failed"}


def sdk_connect(work: Work, allocation_id: str) -> AbstractAsyncContextManager[MachineLike]:
    from gpuaas_sdk.machines.machine import Machine

    return Machine.connect(work, allocation_id)


@dataclass(frozen=True)
class PackageSet:
    id: str
    sha256: str


async def sdk_package_set(work: Work) -> PackageSet | None:
    """The newest one that the project may use."""
    known = (await work.client.list_project_artifacts(work.project_id, name=PACKAGE_SET, limit=100)).items
    usable = [one for one in known if one.allowed and one.state == "registered"]
    newest = max(usable, key=lambda one: one.created_at, default=None)
    return PackageSet(newest.id, newest.sha256) if newest else None


async def sdk_fetch(work: Work, allocation_id: str, artifact_id: str, path: str) -> None:
    """The platform's agent on the host does it, and gives the file its name when digest and size are right."""
    asked = {"artifact_id": artifact_id, "path": path, "mode": "0644"}
    task = await work.task(allocation_id, "fetch_artifact", asked)
    if task.state != "succeeded":
        why = task.message or "The machine's agent did not take it up."
        raise StepFailed("packages_not_delivered", f"The package set did not reach the host: {why}", {"task": task.id})


@dataclass
class Tools:
    """What a reconcile needs besides the work; tests bring their own."""

    journal: Journal
    connect: Connect = sdk_connect
    patience_s: float = field(default_factory=lambda: float(os.environ.get("GPUAAS_SLURM_UNREACHABLE_S", "60")))
    package_set: Callable[[Work], Awaitable[PackageSet | None]] = sdk_package_set
    fetch: Callable[[Work, str, str, str], Awaitable[None]] = sdk_fetch  # allocation, artifact, path on the host
    slugs: dict[str, str | None] = field(default_factory=dict)
    facts: dict[str, HostFacts] = field(default_factory=dict)  # by allocation, as they were last; see foresight.py
    telemetry: TelemetrySender | None = None

    def forget(self, allocations: Iterable[str]) -> None:
        """Of hosts that leave."""
        for one in allocations:
            self.facts.pop(one, None)

    async def project_slug(self, work: Work) -> str | None:
        """Asked once per project. A controller may lack the right to read it; the account then follows the id."""
        if work.project_id not in self.slugs:
            try:
                self.slugs[work.project_id] = (await work.client.get_project(work.project_id)).slug
            except Exception as error:
                log.warning("the project could not be read", project_id=work.project_id, error=str(error))
                self.slugs[work.project_id] = None
        return self.slugs[work.project_id]


def reporter(work: Work) -> Reporter:
    async def send(phase: str, step: int, of: int, message: str, members: Sequence[MemberReport] | None) -> None:
        await work.progress(phase, step, of, message, members=members)

    return Reporter(send)


@asynccontextmanager
async def reach(work: Work, tools: Tools, allocations: Iterable[str]) -> AsyncIterator[dict[str, Host]]:
    """One connection per host of the instance, all made at once, open for the whole reconcile."""
    claim = Claim(work.instance.id, work.operation.id, work.claim_epoch, work.operation.member_id or "")
    names = {m.allocation_id: (m.node_name or m.address or "host", m.address or "") for m in work.members()}
    async with AsyncExitStack() as stack:
        wanted = list(dict.fromkeys(allocations))
        opening = (stack.enter_async_context(tools.connect(work, one)) for one in wanted)
        machines = await asyncio.gather(*opening, return_exceptions=True)
        hosts: dict[str, Host] = {}
        for allocation_id, machine in zip(wanted, machines, strict=True):
            if isinstance(machine, MachineUnreachable):
                raise Unreached(allocation_id, machine) from machine
            if isinstance(machine, BaseException):
                raise machine
            tools.journal.reached(work.operation.id, allocation_id)
            hosts[allocation_id] = Host(machine, claim, allocation_id, *names.get(allocation_id, ("host", "")))
        yield hosts


class Unreached(Exception):
    def __init__(self, allocation_id: str, cause: MachineUnreachable) -> None:
        super().__init__(str(cause))
        self.allocation_id = allocation_id


def declared_gpus(work: Work, allocation_id: str) -> tuple[str, ...]:
    """The GPU device files that the platform knows of, from the machine's own report when it enrolled."""
    reported = [m.facts for m in work.members() if m.allocation_id == allocation_id and m.facts]
    paths = [str(gpu.get("path", "")) for gpu in (reported[0].get("gpus") or [])] if reported else []
    return tuple(path for path in paths if path.startswith("/dev/"))


async def facts_of(hosts: dict[str, Host]) -> dict[str, HostFacts]:
    """Take charge of every host and read what it is like."""
    return dict(zip(hosts, await together(*(_facts(host) for host in hosts.values())), strict=True))


def untouched(work: Work, facts: Mapping[str, HostFacts]) -> frozenset[str]:
    """The first step of all leaves a note on the host: without it nothing was done there."""
    return frozenset(a for a, one in facts.items() if work.instance.id not in one.owners)


async def take_charge(hosts: dict[str, Host]) -> None:
    """Of hosts whose facts do not matter, because they are left: no act of anybody else runs there any more."""
    answers = await together(*(host.script(CHARGE, within=60) for host in hosts.values()))
    for host, answer in zip(hosts.values(), answers, strict=True):
        if answer.exit != 0:
            raise _unseen(host, answer)


async def _facts(host: Host) -> HostFacts:
    return (await facts_and_more(host))[0]


async def facts_and_more(host: Host, more: str = "") -> tuple[HostFacts, Answer]:
    facts, answer = await look(host, round(time.time() * 1000), more)
    if facts is None:
        raise _unseen(host, answer)
    return facts, answer


def _unseen(host: Host, answer: Answer) -> StepFailed:
    if full := no_space(answer):
        return StepFailed("disk_full", f"The file system {full} of {host.name} is full.", {"host": host.name})
    why = "another command holds its lock" if answer.exit == LOCKED_EXIT else answer.text[-300:]
    return StepFailed("step_failed", f"{host.name} could not be looked at: {why}", {"host": host.name})


async def guarded(work: Work, tools: Tools, body: Callable[[], Awaitable[Any]]) -> Any:
    """Runs the body; everything foreseeable that it raises comes back as Again or Failed."""
    try:
        return await _outcome(work, tools, body)
    except StateAway as error:  # also of those who wanted to write down what went wrong
        return _without_memory(work, tools, str(error))


async def _outcome(work: Work, tools: Tools, body: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await body()
    except StaleOnHost as error:
        raise stale_claim(work.operation.id, str(error), work.operation.correlation_id) from error
    except Unreached as error:
        return _patience(work, tools, error.allocation_id, str(error))
    except MachineUnreachable as error:
        return _patience(work, tools, work.members()[0].allocation_id or "", str(error))
    except MachineError as error:
        return _failed(work, tools, StepFailed(CODES.get(error.code, error.code), str(error)))
    except (BadWord, BadPlan, BadConfig) as error:
        return _failed(work, tools, StepFailed("inputs_invalid", str(error)))
    except StepFailed as error:
        return _failed(work, tools, error)


def pausing(work: Work) -> bool:
    """Asked between two stages: hand over, or stop because a person canceled."""
    return work.stopping or work.cancel_requested


def paused(work: Work) -> Again | Failed:
    if not work.cancel_requested:
        return Again(0, "the controller is stopping")
    return Failed(
        "canceled",
        f"The {work.operation.kind} was canceled between two steps; what it had done so far is still on the host.",
        f"Run `gpuaas operation retry {work.operation.id}` to go on, or decommission the instance to clean up.",
        retryable=True,
    )


def _patience(work: Work, tools: Tools, allocation_id: str, why: str) -> Again | Failed:
    waited, times = tools.journal.wait(work.operation.id, allocation_id)
    if waited < tools.patience_s:
        pause = min(2.0 ** (times - 1), 8.0, max(0.1, tools.patience_s - waited))
        return Again(pause, f"{why} Trying again, for {tools.patience_s:.0f} s in all.")
    tools.journal.reached(work.operation.id, allocation_id)
    return _failed(work, tools, StepFailed("host_unreachable", f"{why} Gave up after {waited:.0f} s."))


def _without_memory(work: Work, tools: Tools, why: str) -> Again | Failed:
    """Nothing more is done on a host, since no intent can be written down; what is begun is found by its probe."""
    if tools.journal.away_for() < tools.patience_s:
        return Again(2.0, f"{why} Trying again, for {tools.patience_s:.0f} s in all.")
    return _failed(work, tools, StepFailed("state_unavailable", why))


def _rows(work: Work, tools: Tools) -> list[dict[str, Any]]:
    try:
        return tools.journal.rows(work.operation.id)
    except StateAway:
        return []


def _failed(work: Work, tools: Tools, error: StepFailed) -> Failed:
    names = {m.allocation_id: m.node_name or m.allocation_id for m in work.members() if m.allocation_id}
    detail = evidence.bundle(error.detail, _rows(work, tools), names)
    message = evidence.scrub(error.message)
    log.warning("operation fails", code=error.code, message=message, detail=detail)
    teardown = work.operation.kind == "decommission"
    way_out = error.way_out(work.operation.id) if error.code in WAYS_OUT else "Mend the host, then retry."
    if teardown:
        way_out = way_out.replace("; or decommission the instance", "")
        if error.code == "host_unreachable":
            way_out = UNREACHABLE_TEARDOWN.format(operation=work.operation.id)
    elif error.code == "host_unreachable" and work.operation.kind != "deploy":
        verb = "replace" if work.operation.kind == "replace_member" else "remove"
        way_out = UNREACHABLE_MEMBER.format(operation=work.operation.id, verb=verb)
    # Of a cluster that ran before, the platform says itself what this operation was about.
    members = [MemberReport(member_id=m.id, state="failed") for m in work.members() if work.operation.kind == "deploy"]
    retryable = WAYS_OUT.get(error.code, ("", True))[1]
    undone = error.code in NOTHING_CHANGED
    return Failed(error.code, message, way_out, retryable, detail, members, undone)
