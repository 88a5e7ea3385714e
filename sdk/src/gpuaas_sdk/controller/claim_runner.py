"""Runs one claimed operation, from the claim to the report that ends it. loop.py starts a ClaimRunner per claim.

A reconcile task (reconcile until there is an outcome, then report it) and a heartbeat task run concurrently. If the
heartbeats end, because another controller holds the operation or none got through for a whole lease, the reconcile task
is cancelled at once and nothing is reported: the platform assigns the operation to another controller. A reconcile that
shows no progress for `stall_after_s` ends as a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from ..client.backoff import Backoff, now
from ..client.calls import Calls
from ..client.clients import AsyncClient
from ..client.correlation import correlation
from ..client.errors import (
    ApiError,
    BadAnswer,
    ConnectionFailed,
    Denied,
    GpuaasError,
    MachineError,
    MachineUnreachable,
    NotFound,
    RateLimited,
    StaleClaim,
    Unauthenticated,
    Unavailable,
)
from ..client.models import ClaimView, OperationView
from ..client.request import Request
from .outcomes import Again, Done, Failed, HandBack, Outcome
from .work import MEMBERS_PER_REPORT, Lease, Work, shorten

log = logging.getLogger("gpuaas_sdk.controller")
Reconcile = Callable[[Work], Awaitable[Outcome]]
PASSING = (ConnectionFailed, Unavailable, RateLimited)
OVER = (StaleClaim, NotFound, Denied, Unauthenticated)


@dataclass(frozen=True)
class Pace:
    """Intervals and limits of a ClaimRunner. Tests use small numbers."""

    heartbeat_every_s: float = 10.0
    grace_s: float = 25.0  # how long a running reconcile may go on after a stop
    stall_after_s: float = 900.0
    tries: int = 8  # reconcile calls in a row that end in an error of API or machine
    backoff_base_s: float = 1.0
    backoff_cap_s: float = 60.0
    look_every_s: float = 0.5


class ClaimRunner:
    def __init__(
        self,
        client: AsyncClient,
        claim: ClaimView,
        asked_at: float,
        reconcile: Reconcile | None,
        stop: asyncio.Event,
        pace: Pace,
    ) -> None:
        self._client, self._reconcile, self._stop, self._pace = client, reconcile, stop, pace
        self._lease = Lease(asked_at, claim.lease_expires_in_s)
        self.work = Work(client, claim, self._lease, stop.is_set)
        operation = claim.operation
        self.name = f"{operation.kind} {operation.id} (epoch {claim.claim_epoch}, {operation.correlation_id})"
        self._backoff = Backoff(pace.backoff_base_s, pace.backoff_cap_s)
        self._errors = 0

    async def run(self) -> None:
        with correlation(self.work.operation.correlation_id):
            log.info("%s: claimed for instance %s", self.name, self.work.instance.name)
            if not await self._confirm_long_waited_claim():
                return
            reconcile = asyncio.create_task(self._reconcile_loop())
            heartbeat = asyncio.create_task(self._heartbeat_loop())
            try:
                await asyncio.wait({reconcile, heartbeat}, return_when=asyncio.FIRST_COMPLETED)
                if not reconcile.done():
                    log.warning("%s: stopped, %s", self.name, self.work.lost)
            finally:
                await _end(reconcile)
                await _end(heartbeat)
            if reconcile.done() and not reconcile.cancelled() and (error := reconcile.exception()):
                log.error("%s: the controller loop itself failed", self.name, exc_info=error)

    async def _confirm_long_waited_claim(self) -> bool:
        """Return True if the claim is still valid, otherwise False. If little of its lease is left, a heartbeat renews
        it first: the lease counts from the start of a long poll, which may have waited for most of it."""
        if self._lease.remaining() < self._lease.seconds / 2:
            await self._send_heartbeat()
        if not self.work.lost and self._lease.remaining() <= 0:
            self.work.lost = "its lease ended before the work began"
        if self.work.lost:
            log.warning("%s: not started, %s", self.name, self.work.lost)
        return not self.work.lost

    # --- heartbeats

    async def _heartbeat_loop(self) -> None:
        pause = min(self._pace.heartbeat_every_s, self._lease.seconds / 3)
        wait, missed = pause, Backoff(pause / 10, pause / 3)
        while not self.work.lost:
            await asyncio.sleep(max(0.0, min(wait, self._lease.remaining())))
            if self._lease.remaining() <= 0:
                self.work.lost = "its lease ended before a heartbeat got through"
            elif await self._send_heartbeat():
                wait = pause
                missed.reset()
            else:
                wait = missed.next()

    async def _send_heartbeat(self) -> bool:
        """Send a heartbeat. Returns True if the platform confirmed the claim, otherwise False. Sets `work.lost` if the
        platform has ended the claim."""
        asked_at, work = now(), self.work
        beat = self._client.heartbeat(work.project_id, work.operation.id, claim_epoch=work.claim_epoch)
        try:
            async with asyncio.timeout(max(0.1, self._lease.remaining(), self._lease.seconds / 6)):
                answer = await beat
        except OVER as error:
            work.lost = f"the platform says: {error}"
            return False
        except (GpuaasError, TimeoutError) as error:
            log.warning("%s: a heartbeat did not get through: %s", self.name, error or "no answer in time")
            return False
        work.renewed(asked_at, answer)
        return True

    # --- reconcile

    async def _reconcile_loop(self) -> None:
        try:
            await self._report(await self._until_outcome())
        except StaleClaim as error:
            self.work.lost = self.work.lost or str(error)
            log.warning("%s: dropped, %s", self.name, self.work.lost)

    async def _until_outcome(self) -> Done | Failed | HandBack:
        first = True
        while not self._stop.is_set():
            outcome = await self._attempt(refresh=not first)
            if not isinstance(outcome, Again):
                return outcome
            first = False
            log.info("%s: again in %.1f s, %s", self.name, outcome.seconds, outcome.why)
            self.work.alive(outcome.seconds)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, outcome.seconds)):
                    await self._stop.wait()
        return HandBack("the controller is stopping")

    async def _attempt(self, *, refresh: bool) -> Outcome | HandBack:
        self.work.check()
        self.work.alive()
        task = asyncio.create_task(self._call(refresh))
        try:
            return await self._watch(task)
        except Exception as error:
            return self._outcome_of(error)
        finally:
            await _end(task)

    async def _call(self, refresh: bool) -> Outcome:
        if self._reconcile is None:
            kind = self.work.operation.kind
            why = f"The app's controller does not support {kind!r}. Nothing was changed."
            way_out = "Ask the app team to support it, or to remove the action from the app's manifest."
            return Failed("kind_not_supported", why, way_out, undone=True)
        if refresh:
            await self.work.refresh()
        else:
            await self.work.load_members()
        outcome = await self._reconcile(self.work)
        if not isinstance(outcome, Done | Again | Failed):  # pyright: ignore[reportUnnecessaryIsInstance] - apps may be untyped
            raise TypeError(f"the reconcile function returned {outcome!r}, not Done, Again or Failed")
        self._backoff.reset()
        self._errors = 0
        return outcome

    async def _watch(self, task: asyncio.Task[Outcome]) -> Outcome | HandBack:
        """Wait for the reconcile task and return its outcome. A task without progress ends as a failure; a task that
        outlasts the grace period after a stop request ends as HandBack."""
        stopped_at: float | None = None
        while not task.done():
            await asyncio.wait({task}, timeout=self._pace.look_every_s)
            if stopped_at is None and self._stop.is_set():
                stopped_at = now()
            if not task.done() and stopped_at is not None and now() - stopped_at > self._pace.grace_s:
                return HandBack("the controller is stopping and the current step did not end in time")
            if not task.done() and self.work.silent_for() > self._pace.stall_after_s:
                return self._stalled()
        return task.result()

    def _stalled(self) -> Failed:
        minutes = self._pace.stall_after_s / 60
        why = f"The controller showed no sign of life for {minutes:.0f} minutes in this step."
        return Failed("work_stalled", why, "Look at the hosts and the controller's log, then retry.", retryable=True)

    def _outcome_of(self, error: Exception) -> Outcome:
        """Convert an exception of the reconcile function into an outcome. StaleClaim is raised again and ends the
        runner."""
        if isinstance(error, StaleClaim):
            raise error
        if isinstance(error, PASSING):
            return Again(self._backoff.next(), str(error))
        if isinstance(error, ApiError | BadAnswer | MachineUnreachable):
            self._errors += 1
            if self._errors < self._pace.tries:
                return Again(self._backoff.next(), str(error))
        if isinstance(error, ApiError | BadAnswer | MachineError):
            return Failed(error.code, str(error), error.way_out or "Retry.", error.retryable)
        log.error("%s: the reconcile function raised", self.name, exc_info=error)
        why = f"The app's controller hit an unexpected error ({type(error).__name__})."
        way_out = f"Retry; if it stays, give {self.work.operation.correlation_id} (correlation id) to the app team."
        return Failed("internal_error", why, way_out, retryable=True)

    # --- the report

    async def _report(self, outcome: Done | Failed | HandBack) -> None:
        """Send the outcome, always with the same idempotency key, until the platform has received it or the claim is
        lost."""
        self.work.check()
        sentence = outcome.sentence if isinstance(outcome, Done) else outcome.why
        log.info("%s: %s: %s", self.name, type(outcome).__name__, sentence)  # never the access bundle
        self.work.alive(self._pace.stall_after_s)
        try:
            if isinstance(outcome, Done | Failed) and len(outcome.members) > MEMBERS_PER_REPORT:
                await self.work.report_members(outcome.members[MEMBERS_PER_REPORT:])
                outcome = replace(outcome, members=outcome.members[:MEMBERS_PER_REPORT])
            await self._deliver(self._request(outcome), hurry=isinstance(outcome, HandBack))
        except StaleClaim:
            raise
        except ApiError as refused:
            if isinstance(outcome, HandBack):
                log.error("%s: the claim could not be handed back: %s", self.name, refused)
            elif isinstance(outcome, Failed):
                log.error("%s: the platform refused the failure report: %s", self.name, refused)
                await self._report(HandBack(f"the failure report was refused: {refused}", retry_in_s=30))
            else:
                why = f"The platform refused the controller's result: {refused}"
                await self._report(Failed(refused.code, why, refused.way_out or "Report this to the app team.", True))

    async def _deliver(self, request: Request[OperationView], *, hurry: bool) -> None:
        while True:
            try:
                async with asyncio.timeout(5.0 if hurry else None):
                    await self._client.send(request)
                return
            except (*PASSING, TimeoutError) as error:
                if hurry:
                    log.warning("%s: the claim could not be handed back, its lease will end: %s", self.name, error)
                    return
                log.warning("%s: the report did not get through, trying again: %s", self.name, error)
                await asyncio.sleep(self._backoff.next())

    def _request(self, outcome: Done | Failed | HandBack) -> Request[OperationView]:
        where, epoch = (self.work.project_id, self.work.operation.id), self.work.claim_epoch
        if isinstance(outcome, HandBack):
            return Calls.return_claim.request(
                *where, claim_epoch=epoch, retry_in_s=outcome.retry_in_s, reason=shorten(outcome.why)
            )
        members, detail = list(outcome.members), outcome.adapter_detail
        if isinstance(outcome, Failed):
            error = {
                "code": outcome.code,
                "message": shorten(outcome.why),
                "way_out": shorten(outcome.way_out),
                "retryable": outcome.retryable,
            }
            undone = True if outcome.undone else None
            return Calls.fail.request(
                *where, claim_epoch=epoch, error=error, adapter_detail=detail, members=members, undone=undone
            )
        sentence = shorten(outcome.sentence)
        status = outcome.status or (None if self.work.operation.member_id else "healthy")
        return Calls.complete.request(
            *where,
            claim_epoch=epoch,
            message=sentence or None,
            health={"status": status, "sentence": sentence} if status else None,
            members=members,
            conditions=list(outcome.conditions) if outcome.conditions is not None else None,
            access=outcome.access,
            runtime_version=outcome.runtime_version,
            adapter_detail=detail,
            evidence=outcome.evidence,
        )


async def _end(task: asyncio.Task[Outcome] | asyncio.Task[None], within_s: float = 5.0) -> None:
    """Cancel the task and wait at most `within_s` seconds for its end, so that no work on a dropped claim continues in
    the background."""
    task.cancel()
    await asyncio.wait({task}, timeout=within_s)
    if not task.done():
        log.error("a task does not end although it was cancelled: %r", task)
    elif not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not warn about it
