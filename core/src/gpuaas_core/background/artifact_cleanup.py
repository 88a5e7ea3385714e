"""Every ten minutes: delete files of the artifact store that no row names any more, and uploads that never ended."""

import asyncio
from contextlib import AbstractAsyncContextManager

from ..artifacts import uploads
from ..http.call import Platform
from ..kit.loop import every

EVERY_S = 600.0


def sweeping(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(EVERY_S, lambda: sweep(platform), name="artifact store cleanup")


async def sweep(platform: Platform) -> int:
    if not platform.artifacts:
        return 0
    named = await platform.db.read(uploads.named)
    return await asyncio.to_thread(platform.artifacts.store.sweep, named.__contains__)
