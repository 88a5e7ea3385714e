"""The background loops that write audit checkpoints and clean up the artifact store. Their rooms implement the work."""

import asyncio
from contextlib import AbstractAsyncContextManager

from ..artifacts import uploads
from ..audit import anchoring
from ..http.call import Platform
from ..kit.loop import every

SWEEP_EVERY_S = 600.0


def audit_checkpoints(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(anchoring.EVERY_S, lambda: asyncio.to_thread(anchoring.anchor_due, platform), name="audit checkpoints")


def artifact_cleanup(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(SWEEP_EVERY_S, lambda: uploads.sweep(platform), name="artifact store cleanup")
