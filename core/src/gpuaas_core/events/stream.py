"""The event stream: all events after a sequence, in order and without gaps,
until the reader disconnects or loses access.

Events come from the database; wake-ups only reduce the delay. All streams of a tenant in this process share one reader
(`feed.py`), and each filters by its caller's permissions. Events created after a session, key or role ended are not
delivered: the feed returns the counter of permission changes with its events, and a stream whose caller was authorized
at a lower count authorizes the caller again first. The loss of a permission also sends a notification, and the stream
closes.

An event wakes all streams of its tenant at once. Each of them then waits a random time before it reads, longer the more
streams there are, so that other requests of this process are answered in between and events that follow are sent
together.
"""

import asyncio
import random
from collections.abc import AsyncIterator

from ..counters import rights
from ..http.call import SOON_S, Call
from ..kit.problems import Problem
from . import event_log
from .feed import BATCH, Feed, SharedEvent, event_topic

PING_S = 15.0
# Callers with a delegated permission, which may expire without a permission change, are authorized again this often;
# other callers after ten times as long.
RECHECK_MS = 30_000
SPREAD_S = 0.0005  # for each stream of the tenant: about what sending an event to one stream costs
MOST_SPREAD_S = 0.1


async def follow(call: Call, tenant_id: str, sequence: int) -> AsyncIterator[str]:
    platform = call.platform
    make = lambda: Feed(platform.db, platform.wakeups, platform.clock, tenant_id)  # noqa: E731
    with platform.feeds.followed(tenant_id, make) as feed:
        async for text in _Stream(call, feed, tenant_id, sequence).texts():
            yield text


class _Stream:
    def __init__(self, call: Call, feed: Feed, tenant_id: str, sequence: int) -> None:
        self.call, self.feed, self.tenant_id = call, feed, tenant_id
        self.position: int = sequence
        self.clock, self.wakeups = call.platform.clock, call.platform.wakeups
        self.checked = 0  # when the caller was last checked
        self.rights = 0  # the number of permission changes at that check

    async def texts(self) -> AsyncIterator[str]:
        epoch = await self.call.read(lambda ctx: event_log.store_epoch(ctx.tx))
        pinged, heard = self.clock(), self.wakeups.sequence
        looked = pinged  # when the connection was last checked, which costs more than sending an event
        yield "retry: 1000\n\n"
        while True:
            if self.clock() - looked >= PING_S * 1000:
                if await self.call.request.is_disconnected():
                    return
                looked = self.clock()
            due, heard = self._check_due(heard), self.wakeups.sequence
            try:
                if due:
                    await self._check()
                batch = await self._next()
            except Problem:
                return
            if batch:
                pinged = self.clock()
                yield "".join([f"id: {epoch}.{event.sequence}\n{event.text}" for event in batch])  # sent at once
            if self.feed.position is None or self.position < self.feed.position:
                continue
            if self.clock() - pinged >= PING_S * 1000:
                pinged = self.clock()
                yield f": at {self.position}\n\n"
            topics = event_topic(self.tenant_id), *self.call.rights_topics
            await self.wakeups.wait(*topics, timeout_s=self._longest(), since=heard)
            if self.feed.followers > 1:
                await asyncio.sleep(_spread(self.feed.followers))

    async def _next(self) -> list[SharedEvent]:
        """Return the next events that the caller may see. Events that the caller may not see are skipped."""
        await self.feed.refresh()
        found = self.feed.after(self.position)
        if found is None:
            return await self._next_rows()
        mine = [event for event in found if self._is_mine(event)]
        if self.feed.rights > self.rights or (mine and self.call.via):
            await self._check()
        self.position = found[-1].sequence if found else self.position
        return mine

    async def _next_rows(self) -> list[SharedEvent]:
        """Read events that are no longer in the feed from the database. The same transaction authorizes the caller."""
        start, known, project_id = self.position, self.feed.position or 0, self.call.scope.project_id
        self.call.check_again()
        rows = await self.call.read(
            lambda ctx: event_log.rows_after(ctx.tx, self.tenant_id, start, project_id=project_id, limit=BATCH)
        )
        self.position = rows[-1].sequence if rows else start
        if len(rows) < BATCH:  # all events up to the feed's earlier position were read
            self.position = max(self.position, known)
        return [SharedEvent.of(row) for row in rows]

    def _is_mine(self, event: SharedEvent) -> bool:
        project_id = self.call.scope.project_id
        return project_id is None or event.project_id == project_id

    async def _check(self) -> None:
        """Authenticate and authorize the caller again; raise an error if the caller has no access any more."""
        self.call.check_again()
        now = self.clock()
        self.rights = await self.call.read(lambda ctx: rights.changes(ctx.tx))
        self.checked = now

    def _check_due(self, heard: int) -> bool:
        now, ends_at = self.clock(), self.call.principal.session_ends_at
        over = ends_at is not None and ends_at <= now
        longest = RECHECK_MS if self.call.via else 10 * RECHECK_MS
        return over or now - self.checked > longest or self.wakeups.notified_since(self.call.rights_topics, heard)

    def _longest(self) -> float:
        """Return how many seconds the stream may wait: until the next ping is due or the session expires."""
        ends_at = self.call.principal.session_ends_at
        return PING_S if ends_at is None else min(PING_S, max(ends_at - self.clock(), 0) / 1000 + SOON_S)


def _spread(followers: int) -> float:
    return random.uniform(0, min(followers * SPREAD_S, MOST_SPREAD_S))  # noqa: S311
