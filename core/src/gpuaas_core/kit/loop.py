"""The background loop: run the work, log a failure, sleep, repeat, until the core stops.

Loops are level-triggered: they read rows and do not ask what woke them, so a round that failed costs one interval.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import structlog

log = structlog.get_logger("gpuaas.loop")


@contextlib.asynccontextmanager
async def every(seconds: float, work: Callable[[], Awaitable[object]], *, name: str) -> AsyncIterator[None]:
    """Run `work` every `seconds` while the context is open. The first round starts after one interval."""
    task = asyncio.create_task(_run(seconds, work, name), name=name)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _run(seconds: float, work: Callable[[], Awaitable[object]], name: str) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except Exception as error:
            log.error("background loop failed; retrying", loop=name, exc_info=error)
