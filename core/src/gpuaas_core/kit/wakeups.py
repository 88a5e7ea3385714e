"""Wake-ups for long polls and streams. A lost wake-up costs a wait, never data: every waiter looks again by itself."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

LOOK_AGAIN_S = 2.0  # also covers writers in other processes


class Wakeups:
    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)

    def ring(self, topics: Iterable[str]) -> None:
        for topic in topics:
            for waiter in self._waiting.get(topic, ()):
                waiter.set()

    async def wait(self, topic: str, timeout_s: float) -> None:
        """Until somebody rings, at most `timeout_s`. Look before and after: what you wait for may already be there."""
        waiter = asyncio.Event()
        self._waiting[topic].add(waiter)
        try:
            async with asyncio.timeout(min(timeout_s, LOOK_AGAIN_S)):
                await waiter.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting[topic].discard(waiter)
            if not self._waiting[topic]:
                del self._waiting[topic]
