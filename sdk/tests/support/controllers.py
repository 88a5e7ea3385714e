"""A controller that runs while a test does, and a reconcile that would go on for ever. For the controller tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from gpuaas_sdk import Again, AsyncClient, Bearer, Controller, Done, Failed, Work
from gpuaas_sdk.client.backoff import now
from gpuaas_sdk.controller.claim_runner import Pace

from sdk.tests.support.fake_platform import Platform

QUICK = Pace(heartbeat_every_s=0.2, grace_s=0.5, backoff_base_s=0.02, backoff_cap_s=0.05, look_every_s=0.02)
Reconcile = Callable[[Work], Awaitable[Done | Again | Failed]]


@asynccontextmanager
async def controlling(
    platform: Platform, reconcile: Reconcile, account_id: str = "", **more: Any
) -> AsyncIterator[asyncio.Event]:
    """A controller that runs while the block does; leaving it stops it gracefully."""
    stop = asyncio.Event()
    settings: dict[str, Any] = {"pace": QUICK, "wait_s": 1, "concurrency": 2, **more}
    async with AsyncClient(platform.url, Bearer("tok"), project_id="prj_1") as client:
        client.account_id = account_id
        reconcilers = {"deploy": reconcile, "decommission": reconcile}
        running = asyncio.create_task(Controller(client, "slurm", "ctl-1", reconcilers, **settings).run(stop))
        try:
            yield stop
        finally:
            stop.set()
            await asyncio.wait_for(running, 60)


async def until(condition: Callable[[], Any], within: float = 60.0) -> Any:
    """Wait for the world to become so."""
    ends = now() + within
    while not (found := condition()):
        assert now() < ends, "it did not happen in time"
        await asyncio.sleep(0.01)
    return found


class Stubborn:
    """A reconcile that would go on for ever, and tells how it was ended."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0
        self.cancelled = False
        self.work: Work | None = None

    async def __call__(self, work: Work) -> Done:
        self.began, self.work = now(), work
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        finally:
            self.ended = now()
        return Done("Never.")


def nothing_was_reported(platform: Platform) -> bool:
    return not any(platform.reports(verb) for verb in ("complete", "fail", "return-claim", "progress"))
