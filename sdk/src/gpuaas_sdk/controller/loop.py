"""The controller loop: claims operations of one app in one project and runs their reconcile functions. App teams run
it.

    controller = Controller(client, app_slug="slurm", holder="slurm-lab-1", reconcilers={"deploy": deploy})
    await controller.run(stop)

Level-triggered: a reconcile function gets the whole state and may be called at any time, repeatedly. `holder` names
this installation, not this process: after a crash the restarted controller takes over its own operations at once, under
a new epoch. Two running processes must therefore never share a holder name. With `observe` it also observes the running
instances of the app between operations (observe.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Mapping

from ..client.backoff import Backoff, now
from ..client.clients import AsyncClient
from ..client.errors import GpuaasError
from ..client.models import ClaimView
from .claim_runner import ClaimRunner, Pace, Reconcile
from .observe import Observe, ObservePolicy, Observer

log = logging.getLogger("gpuaas_sdk.controller")
ANSWER_ON_ITS_WAY_S = 0.3


class Controller:
    def __init__(
        self,
        client: AsyncClient,
        app_slug: str,
        holder: str,
        reconcilers: Mapping[str, Reconcile],
        *,
        project_id: str = "",
        concurrency: int = 4,
        wait_s: int = 20,
        pace: Pace | None = None,
        observe: Observe | None = None,
        observe_policy: ObservePolicy | None = None,
    ) -> None:
        self._client, self._app_slug, self._holder, self._reconcilers = client, app_slug, holder, dict(reconcilers)
        self._project_id = project_id or client.project_id
        self._concurrency, self._wait_s, self._pace = concurrency, wait_s, pace or Pace()
        self._runners: dict[str, asyncio.Task[None]] = {}
        self._at_work: Counter[str] = Counter()  # by instance: how many of its operations run in this process
        self._backoff = Backoff(base=1.0, cap=15.0)
        if not self._project_id:
            raise ValueError("a controller works in one project: give project_id, or use a service account's client")
        policy = observe_policy or ObservePolicy()
        self._observer = Observer(client, self._project_id, app_slug, observe, policy) if observe else None

    @property
    def holding(self) -> list[str]:
        """Return the ids of the operations that this process runs now."""
        return [operation_id for operation_id, task in self._runners.items() if not task.done()]

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Then make no new claims, let current steps finish, and release the claims."""
        stopping = asyncio.create_task(stop.wait())
        log.info("controller %s serves %s in %s", self._holder, self._app_slug, self._project_id)
        observing = asyncio.create_task(self._observer.run()) if self._observer else None
        try:
            while not stop.is_set():
                await self._claim_one(stop, stopping)
            await asyncio.gather(*self._runners.values(), return_exceptions=True)
        finally:
            stopping.cancel()
            if observing is not None:
                observing.cancel()
                await asyncio.gather(observing, return_exceptions=True)
            await self._drop_all()
            log.info("controller %s has stopped", self._holder)

    async def _claim_one(self, stop: asyncio.Event, stopping: asyncio.Task[bool]) -> None:
        working = {task for task in self._runners.values() if not task.done()}
        if len(working) >= self._concurrency:
            await asyncio.wait({*working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return
        asked_at = now()
        try:
            claim = await self._claim(stopping)
        except GpuaasError as error:
            await self._pause(error, stopping)
            return
        self._backoff.reset()
        if claim is not None:
            self._start(claim, asked_at, stop)

    async def _claim(self, stopping: asyncio.Task[bool]) -> ClaimView | None:
        asking = asyncio.ensure_future(
            self._client.claim(
                self._project_id,
                app_slug=self._app_slug,
                holder=self._holder,
                holding=self.holding,
                wait_s=self._wait_s,
            )
        )
        try:
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():  # a claim may be on its way: take it and release it, or it stays until its lease ends
                await asyncio.wait({asking}, timeout=ANSWER_ON_ITS_WAY_S)
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError, GpuaasError):
                await asking

    async def _pause(self, error: GpuaasError, stopping: asyncio.Task[bool]) -> None:
        seconds = self._backoff.next()
        log.warning("no claim for %s: %s %s Trying again in %.1f s.", self._app_slug, error, error.way_out, seconds)
        await asyncio.wait({stopping}, timeout=seconds)

    def _start(self, claim: ClaimView, asked_at: float, stop: asyncio.Event) -> None:
        operation = claim.operation
        reconcile = self._reconcilers.get(operation.kind)
        runner = ClaimRunner(self._client, claim, asked_at, reconcile, stop, self._pace)
        former = self._runners.get(operation.id)
        task = asyncio.create_task(_run_after(former, runner), name=runner.name)
        self._runners[operation.id] = task
        self._at_work[operation.instance_id] += 1
        task.add_done_callback(lambda done: self._finished(operation.id, operation.instance_id, done))

    def _finished(self, operation_id: str, instance_id: str, task: asyncio.Task[None]) -> None:
        if self._runners.get(operation_id) is task:
            del self._runners[operation_id]
        if not task.cancelled() and (error := task.exception()):
            log.error("%s: the controller loop itself failed", task.get_name(), exc_info=error)
        self._at_work[instance_id] -= 1
        if not self._at_work[instance_id]:
            del self._at_work[instance_id]
            if self._observer:
                self._observer.soon(instance_id, lambda: instance_id not in self._at_work)

    async def _drop_all(self) -> None:
        """Cancel all running operations. Called only when `run` itself was cancelled, because no claim may be worked on
        without the loop."""
        runners = list(self._runners.values())
        for task in runners:
            task.cancel()
        await asyncio.gather(*runners, return_exceptions=True)


async def _run_after(former: asyncio.Task[None] | None, runner: ClaimRunner) -> None:
    """Stop the former runner of an operation if it still runs, then run the operation under its new claim. An operation
    is claimed again after its lease has ended."""
    if former is not None and not former.done():
        former.cancel()
        await asyncio.wait({former})
    await runner.run()
