"""One slow loop: files of the artifact store that no row names any more, and uploads that never ended, go."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from ..artifacts import pushed
from ..edge.call import Platform

log = structlog.get_logger("gpuaas.sweeping")
EVERY_S = 600.0


@contextlib.asynccontextmanager
async def sweeping(platform: Platform) -> AsyncIterator[None]:
    task = asyncio.create_task(_loop(platform))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _loop(platform: Platform) -> None:
    while platform.artifacts:
        await asyncio.sleep(EVERY_S)
        try:
            await sweep(platform)
        except Exception as error:
            log.error("sweeping the artifact store failed, trying again", exc_info=error)


async def sweep(platform: Platform) -> int:
    named = await platform.db.read(pushed.named)
    return await asyncio.to_thread(platform.artifacts.store.sweep, named.__contains__)
