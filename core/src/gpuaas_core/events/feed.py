"""The newest events of a tenant, read once per process and shared by all open streams of the tenant.

A feed reads when its tenant's events were notified, or after `SAFETY_MS`; the first stream that needs events reads, the
others wait for that read. Together with the events the feed reads the counter of permission changes: a stream delivers
the events only if its caller was authorized at that count or later. A feed exists while streams follow it.
"""

import asyncio
import contextlib
import itertools
import json
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from sqlalchemy import Connection

from ..counters import rights
from ..kit.clock import Clock
from ..kit.db import Database
from ..kit.wakeups import Wakeups
from . import event_log
from .rows import EventRow

SAFETY_MS = 30_000  # how long a lost wake-up can delay a feed
BATCH = 200
KEPT = 1_000  # events of one tenant in memory; a stream that is further behind reads the table


def event_topic(tenant_id: str) -> str:
    return f"events:{tenant_id}"


@dataclass(frozen=True)
class SharedEvent:
    sequence: int
    project_id: str | None
    text: str  # the event as server-sent event, without its `id:` line

    @classmethod
    def of(cls, row: EventRow) -> "SharedEvent":
        text = f"event: {row.type}\ndata: {json.dumps(event_log.cloud_event(row))}\n\n"
        return cls(row.sequence, row.project_id, text)


class Feed:
    def __init__(self, db: Database, wakeups: Wakeups, clock: Clock, tenant_id: str) -> None:
        self._db, self._wakeups, self._clock, self._tenant_id = db, wakeups, clock, tenant_id
        self._reading = asyncio.Lock()
        self._kept: deque[SharedEvent] = deque(maxlen=KEPT)
        self._heard = self._read_at = 0
        self.position: int | None = None  # the sequence up to which events were read; None before the first read
        self.rights = 0  # the number of permission changes at that read
        self.followers = 0

    async def refresh(self) -> None:
        """Read new events, unless none were notified since the last read and that read is recent."""
        async with self._reading:
            due = self._is_due()
            while due:
                heard, now, start = self._wakeups.sequence, self._clock(), self.position
                found, counted = await self._db.read(lambda tx, start=start: self._read(tx, start))
                self._kept.extend(SharedEvent.of(row) for row in found)
                self.position, self.rights = counted
                due = len(found) == BATCH
                self._heard, self._read_at = heard, now

    def after(self, sequence: int) -> list[SharedEvent] | None:
        """Return the events after this sequence, or None if some of them are no longer in memory."""
        if self.position is None or sequence < self.position - len(self._kept):
            return None
        newer = list(itertools.takewhile(lambda event: event.sequence > sequence, reversed(self._kept)))
        return newer[::-1]

    def _is_due(self) -> bool:
        waited = self._clock() - self._read_at
        notified = self._wakeups.notified_since([event_topic(self._tenant_id)], self._heard)
        return self.position is None or notified or not 0 <= waited < SAFETY_MS

    def _read(self, tx: Connection, start: int | None) -> tuple[list[EventRow], tuple[int, int]]:
        count = rights.changes(tx)
        if start is None:
            return [], (event_log.head(tx, self._tenant_id), count)
        found = event_log.rows_after(tx, self._tenant_id, start, project_id=None, limit=BATCH)
        return found, (found[-1].sequence if found else start, count)


@dataclass
class Feeds:
    by_tenant: dict[str, Feed] = field(default_factory=dict[str, Feed])

    @contextlib.contextmanager
    def followed(self, tenant_id: str, make: Callable[[], Feed]) -> Generator[Feed]:
        feed = self.by_tenant.setdefault(tenant_id, make())
        feed.followers += 1
        try:
            yield feed
        finally:
            feed.followers -= 1
            if not feed.followers:
                self.by_tenant.pop(tenant_id, None)
