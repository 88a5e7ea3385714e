"""Wake-ups for long polls and streams: a waiter sleeps until its topic is notified, so waiting costs nothing.

A lost wake-up costs a wait, never data: every waiter reads again after `SAFETY_S`. `bell.py` carries wake-ups between
core processes on one PostgreSQL, and wakes every waiter when its listening connection was lost for a moment.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

SAFETY_S = 30.0  # how long a lost wake-up can delay a waiter
MOST_REMEMBERED = 10_000


class Wakeups:
    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._rung: dict[str, int] = {}
        self.rings = 0  # how often somebody rang; whoever looks remembers it, to notice what rang meanwhile
        self._forgotten = 0  # up to here it is not known which topics rang, so each of them may have
        self.tell_others: Callable[[Iterable[str]], None] | None = None

    def ring(self, topics: Iterable[str]) -> None:
        topics = set(topics)
        self.ring_here(topics)
        if topics and self.tell_others:
            self.tell_others(topics)

    def ring_here(self, topics: Iterable[str]) -> None:
        if len(self._rung) > MOST_REMEMBERED:
            self._forget()
        for topic in topics:
            self.rings += 1
            self._rung[topic] = self.rings
            for waiter in self._waiting.get(topic, ()):
                waiter.set()

    def ring_all_here(self) -> None:
        """Everything may have rung while this process did not hear the others: every waiter looks at once."""
        self.rings += 1
        self._forget()
        for waiters in self._waiting.values():
            for waiter in waiters:
                waiter.set()

    def rang(self, topics: Iterable[str], since: int) -> bool:
        return any(self._rung.get(topic, self._forgotten) > since for topic in topics)

    def _forget(self) -> None:
        self._rung.clear()
        self._forgotten = self.rings

    async def wait(self, *topics: str, timeout_s: float, since: int | None = None) -> None:
        """Until one of them rings, at most `timeout_s`; at once if one rang after `since`, during the caller's look."""
        if since is not None and self.rang(topics, since):
            return
        waiter = asyncio.Event()
        for topic in topics:
            self._waiting[topic].add(waiter)
        try:
            async with asyncio.timeout(min(timeout_s, SAFETY_S)):
                await waiter.wait()
        except TimeoutError:
            pass
        finally:
            for topic in topics:
                self._waiting[topic].discard(waiter)
                if not self._waiting[topic]:
                    del self._waiting[topic]
