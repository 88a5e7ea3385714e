"""What a reconcile function needs besides its Work: the journal, the app profile, and connections to the hosts of the
operation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from ..client.errors import MachineUnreachable
from ..client.models import MemberReport
from ..controller.work import Work
from .errors import Unreached
from .host import Claim, Host, MachineLike
from .journal import Journal
from .profile import HostProfile
from .reporter import Reporter

Connect = Callable[[Work, str], AbstractAsyncContextManager[MachineLike]]


def connect_by_ssh(work: Work, allocation_id: str) -> AbstractAsyncContextManager[MachineLike]:
    from ..machines.machine import Machine

    return Machine.connect(work, allocation_id)


@dataclass
class StepContext:
    """Journal, profile and connections of an app. Apps extend it for their own reconcilers; tests replace `connect`."""

    journal: Journal
    profile: HostProfile
    connect: Connect = connect_by_ssh
    patience_s: float = 60.0  # how long an unreachable host or journal is retried before the operation fails


def start_reporter(work: Work) -> Reporter:
    async def send(phase: str, step: int, of: int, message: str, members: Sequence[MemberReport] | None) -> None:
        await work.progress(phase, step, of, message, members=members)

    return Reporter(send)


@asynccontextmanager
async def reach_hosts(work: Work, context: StepContext, allocations: Iterable[str]) -> AsyncGenerator[dict[str, Host]]:
    """Connect to all hosts at once, and keep the connections open inside the block. Yields the hosts by allocation.
    Raises Unreached if a host cannot be reached."""
    claim = Claim(work.instance.id, work.operation.id, work.claim_epoch, work.operation.member_id or "")
    names = {m.allocation_id: (m.node_name or m.address or "host", m.address or "") for m in work.members()}
    async with AsyncExitStack() as stack:
        wanted = list(dict.fromkeys(allocations))
        opening = (stack.enter_async_context(context.connect(work, one)) for one in wanted)
        machines = await asyncio.gather(*opening, return_exceptions=True)
        hosts: dict[str, Host] = {}
        for allocation_id, machine in zip(wanted, machines, strict=True):
            if isinstance(machine, MachineUnreachable):
                raise Unreached(allocation_id, machine) from machine
            if isinstance(machine, BaseException):
                raise machine
            context.journal.reached(work.operation.id, allocation_id)
            name, address = names.get(allocation_id, ("host", ""))
            hosts[allocation_id] = Host(machine, claim, allocation_id, name, address, context.profile)
        yield hosts
