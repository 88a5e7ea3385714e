"""Wake-ups for long polls and streams: a waiter sleeps until its topic is notified, so it reads nothing meanwhile.

A lost wake-up delays a waiter but loses no data: every waiter reads again after `SAFETY_S`. `pg_notify.py` carries
wake-ups between core processes on one PostgreSQL, and wakes every waiter after its listening connection was lost.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

SAFETY_S = 30.0  # how long a lost wake-up can delay a waiter
MOST_REMEMBERED = 10_000


class Wakeups:
    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._last: dict[str, int] = {}  # topic to the sequence number of its latest notification
        self.sequence = 0  # counts notifications; a reader notes it to detect notifications during its read
        self._forgotten = 0  # up to this number the topics are unknown, so any topic may have been notified
        self.forward: Callable[[Iterable[str]], None] | None = None  # to the other processes

    def notify(self, topics: Iterable[str]) -> None:
        topics = set(topics)
        self.notify_local(topics)
        if topics and self.forward:
            self.forward(topics)

    def notify_local(self, topics: Iterable[str]) -> None:
        if len(self._last) > MOST_REMEMBERED:
            self._forget()
        for topic in topics:
            self.sequence += 1
            self._last[topic] = self.sequence
            for waiter in self._waiting.get(topic, ()):
                waiter.set()

    def notify_all_local(self) -> None:
        """Wake every waiter of this process, because the process may have missed notifications of any topic."""
        self.sequence += 1
        self._forget()
        for waiters in self._waiting.values():
            for waiter in waiters:
                waiter.set()

    def notified_since(self, topics: Iterable[str], since: int) -> bool:
        return any(self._last.get(topic, self._forgotten) > since for topic in topics)

    def _forget(self) -> None:
        self._last.clear()
        self._forgotten = self.sequence

    async def wait(self, *topics: str, timeout_s: float, since: int | None = None) -> None:
        """Wait until a topic is notified, at most `timeout_s`. Return at once if a topic was notified after `since`."""
        if since is not None and self.notified_since(topics, since):
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
