"""`Work`, the argument of a reconcile function: the claimed operation, its instance, and the calls that need the claim.

Created by claim_runner.py for each claim. A claim is a lease: `Lease` counts from the moment the request was sent, not
from the answer, and ends a little early, so that this process stops before the platform assigns the operation to
another controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from ..client.backoff import Backoff, now
from ..client.calls import Calls
from ..client.clients import AsyncClient
from ..client.errors import ConnectionFailed, RateLimited, Unavailable, stale_claim
from ..client.models import (
    ClaimView,
    GrantView,
    InstanceView,
    LeaseView,
    MemberReport,
    MemberView,
    OperationView,
    TaskView,
)
from ..client.request import JsonObject, Request

T = TypeVar("T")
MARGIN = 0.1  # the part of a lease given up for safety
TASK_WAIT_S = 10
SENTENCE_LIMIT = 2000  # of the wire contract
MEMBERS_PER_REPORT, MEMBERS_PER_PAGE = 500, 200  # of the wire contract


def shorten(sentence: str) -> str:
    """Shorten a sentence to the length that the platform accepts, so that a report is not rejected for long output."""
    return sentence if len(sentence) <= SENTENCE_LIMIT else sentence[: SENTENCE_LIMIT - 1] + "…"


class Lease:
    def __init__(self, asked_at: float, seconds: float) -> None:
        self.seconds, self._ends_at = seconds, 0.0
        self.renew(asked_at, seconds)

    def renew(self, asked_at: float, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = max(self._ends_at, asked_at + seconds * (1 - MARGIN))

    def remaining(self) -> float:
        return self._ends_at - now()


class Work:
    """One claimed operation. Every request carries the claim epoch, so that a stale claim changes nothing."""

    def __init__(self, client: AsyncClient, claim: ClaimView, lease: Lease, stopping: Callable[[], bool]) -> None:
        self.client, self.lease = client, lease
        self.operation: OperationView = claim.operation
        self.instance: InstanceView = claim.instance
        self.claim_epoch: int = claim.claim_epoch
        self.cancel_requested: bool = claim.operation.cancel_requested
        self.lost: str = ""  # why the claim is lost, once it is
        self._stopping = stopping
        self._step = (claim.operation.phase, claim.operation.progress.step, claim.operation.progress.of, "Reporting")
        self._patient_until = 0.0
        self._expected: dict[object, float] = {}

    @property
    def project_id(self) -> str:
        return self.instance.project_id

    @property
    def stopping(self) -> bool:
        """Return True if the controller was asked to stop. The reconcile function then returns Again(0, …) at the next
        safe point."""
        return self._stopping()

    def members(self, component_key: str | None = None) -> list[MemberView]:
        """Return the instance's members in order, of all components or of the named one."""
        chosen = [m for m in self.instance.members if component_key in (None, m.component_key)]
        return sorted(chosen, key=lambda m: (m.component_key, m.ordinal))

    def check(self) -> None:
        """Raise StaleClaim if this process has lost the claim. Called before every report and every command on a
        host."""
        if not self.lost and self.lease.remaining() <= 0:
            self.lost = "its lease ended before a heartbeat got through"
        if self.lost:
            raise stale_claim(self.operation.id, self.lost, self.operation.correlation_id)

    def renewed(self, asked_at: float, answer: LeaseView) -> None:
        """Record that the platform confirmed the claim, and whether a cancel was requested."""
        self.lease.renew(asked_at, answer.lease_expires_in_s)
        self.cancel_requested = self.cancel_requested or answer.cancel_requested

    def alive(self, for_s: float = 0.0) -> None:
        """Record a sign of progress for the stall detection. The next sign of progress may take `for_s` seconds
        longer."""
        self._patient_until = now() + for_s

    @contextmanager
    def expecting(self, seconds: float) -> Generator[None]:
        """Allow the code inside the block (a command with a timeout) to run this long without a sign of progress."""
        token = object()
        self._expected[token] = now() + seconds
        try:
            yield
        finally:
            del self._expected[token]
            self._patient_until = max(self._patient_until, now())

    def silent_for(self) -> float:
        """Return the seconds since the last sign of progress; negative inside an `expecting` block."""
        return now() - max(self._patient_until, *self._expected.values(), 0.0)

    async def progress(
        self,
        phase: str,
        step: int,
        of: int,
        message: str,
        *,
        adapter_detail: JsonObject | None = None,
        members: Sequence[MemberReport] | None = None,
        health: dict[str, str] | None = None,
    ) -> None:
        """Report the current step: "Starting the controller daemon", 4 of 7."""
        self.check()
        self.alive()
        asked_at = now()
        self._step = (phase, step, of, message)
        if members is not None and len(members) > MEMBERS_PER_REPORT:
            await self.report_members(members[MEMBERS_PER_REPORT:])
            members = members[:MEMBERS_PER_REPORT]
        report = Calls.progress.request(
            *self._where(),
            claim_epoch=self.claim_epoch,
            phase=phase,
            step=step,
            of=of,
            message=shorten(message),
            adapter_detail=adapter_detail,
            members=list(members) if members is not None else None,
            health=health,
        )
        self.renewed(asked_at, await self._patiently(report))

    async def grant(self, allocation_id: str, ssh_public_key: str) -> GrantView:
        """Request a short-lived certificate for one host of this instance. Called by machines/machine.py."""
        self.check()
        self.alive()
        request = Calls.grant_access.request(
            *self._where(),
            claim_epoch=self.claim_epoch,
            allocation_id=allocation_id,
            ssh_public_key=ssh_public_key,
            source_addresses=self.client.source_addresses or None,
        )
        return await self._patiently(request)

    async def task(self, allocation_id: str, kind: str, arguments: JsonObject, *, within_s: float = 900) -> TaskView:
        """Run a task (contracts/node-tasks.json) through the agent of one of the operation's nodes and wait for its
        end. Check `state` and `message`; after `within_s` seconds the task is returned unfinished."""
        self.check()
        request = Calls.ask_task.request(
            *self._where(), claim_epoch=self.claim_epoch, allocation_id=allocation_id, kind=kind, arguments=arguments
        )
        task, until = await self._patiently(request), now() + within_s
        while task.ended_at is None and now() < until:
            self.check()
            self.alive(TASK_WAIT_S + 10)
            task = await self._patiently(Calls.get_task.request(*self._where(), task.id, wait_s=TASK_WAIT_S))
        return task

    async def refresh(self) -> None:
        """Read instance and operation again. The loop calls it before every repeated reconcile."""
        self.instance = await self.client.get_instance(self.project_id, self.instance.id)
        self.operation = await self.client.get_operation(*self._where())
        self.cancel_requested = self.cancel_requested or self.operation.cancel_requested
        await self.load_members()

    async def load_members(self) -> None:
        """Read all members in pages, if the instance has more members than it included. A claim and an instance include
        only the first members."""
        if self.instance.members_total <= len(self.instance.members):
            return
        found: list[MemberView] = []
        cursor: str | None = None
        while True:
            where = (self.project_id, self.instance.id)
            page = await self._patiently(Calls.list_members.request(*where, limit=MEMBERS_PER_PAGE, cursor=cursor))
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        self.instance = msgspec.structs.replace(self.instance, members=found)

    async def report_members(self, members: Sequence[MemberReport]) -> None:
        """Report the states of members without advancing the step, for members that do not fit into the final
        report."""
        phase, step, of, message = self._step
        for first in range(0, len(members), MEMBERS_PER_REPORT):
            await self.progress(phase, step, of, message, members=members[first : first + MEMBERS_PER_REPORT])

    async def _patiently(self, request: Request[T]) -> T:
        """Send the request until the platform answers, so that a restart of the platform does not fail the work. Raises
        StaleClaim if the lease ends first."""
        backoff = Backoff(base=0.5, cap=3.0)
        while True:
            try:
                return await self.client.send(request)
            except (ConnectionFailed, Unavailable, RateLimited):
                await asyncio.sleep(backoff.next())
                self.check()

    def _where(self) -> tuple[str, str]:
        return self.project_id, self.operation.id
