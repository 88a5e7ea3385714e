"""A background loop: it sleeps, runs its work, logs a failure, and repeats until the core stops.

Loops are level-triggered: each round reads the rows that need work, so a failed round is made up for by the next one.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

import structlog

log = structlog.get_logger("gpuaas.loop")


@contextlib.asynccontextmanager
async def every(seconds: float, work: Callable[[], Awaitable[object]], *, name: str) -> AsyncGenerator[None]:
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
