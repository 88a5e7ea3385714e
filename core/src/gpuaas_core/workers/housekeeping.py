"""One small loop: silent machines become unknown, still work is marked, what ends by itself is told, old rows go."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog
from sqlalchemy import Connection

from ..access.context import Context
from ..access.evaluate import Principal, Scope
from ..artifacts import deliveries, pushed
from ..capacity.standing import lose_silent_nodes
from ..catalog.service import expire_entitlements
from ..custody import credentials, redemptions
from ..edge.call import Platform
from ..instances import leases, watch
from ..kit.db import try_name
from ..ledger.correlation import correlate
from ..ledger.requests import forget_old
from ..tasks import service as tasks
from ..tenancy import break_glass, login_throttle, machines, oidc
from ..tenancy.identity import forget_old_sessions
from ..triage.service import forget_old as forget_old_telemetry

log = structlog.get_logger("gpuaas.housekeeping")
EVERY_S = 5.0
ITSELF = Principal("platform", "platform", "platform housekeeping")


@contextlib.asynccontextmanager
async def housekeeping(platform: Platform) -> AsyncIterator[None]:
    task = asyncio.create_task(_loop(platform))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _loop(platform: Platform) -> None:
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            platform.wakeups.ring(await platform.db.write(lambda tx: tidy(tx, platform.clock())))
        except Exception as error:
            log.error("housekeeping failed, trying again", exc_info=error)


def tidy(tx: Connection, now: int) -> set[str]:
    if not try_name(tx, "housekeeping"):  # another core is at it
        return set()
    ctx = Context(tx, ITSELF, Scope(), "platform.housekeeping", correlate(None, None), now)
    lose_silent_nodes(ctx)
    break_glass.expire_due(ctx)
    leases.end_due(ctx)
    tasks.expire_due(ctx)
    watch.look_after(ctx)
    watch.forget_old(ctx)
    expire_entitlements(ctx)
    credentials.end_overlaps(ctx)
    redemptions.forget_old_answers(tx, now)
    pushed.forget_unused(tx, now)
    deliveries.forget_old(tx, now)
    forget_old(tx, now)
    tasks.forget_old(tx, now)
    forget_old_sessions(tx, now)
    login_throttle.forget_old(tx, now)
    machines.forget_old_keys(tx, now)
    oidc.forget_old(tx, now)
    forget_old_telemetry(tx, now)
    ctx.flush(audited=False)
    return ctx.topics
