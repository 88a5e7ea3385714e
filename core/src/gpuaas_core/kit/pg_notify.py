"""Sends wake-ups between the core processes that share one PostgreSQL, with LISTEN and NOTIFY.

Only topic names are sent, after the commit and outside the transaction (a NOTIFY inside it would serialize all commits
of the server). A lost notification only delays a waiter, because the data itself is in the tables. `share_wakeups` is
started with the application.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

import psycopg
import structlog
from sqlalchemy import make_url

from .db import Database
from .wakeups import Wakeups

log = structlog.get_logger("gpuaas.wakeups")
CHANNEL = "gpuaas_wakeups"
MOST_TOPICS = 100  # a notification holds at most 8000 bytes
QUIET_S = 20.0
RECONNECT_S = 1.0


@contextlib.asynccontextmanager
async def share_wakeups(db: Database, wakeups: Wakeups) -> AsyncGenerator[None]:
    """While the context is open, send this process's notifications to the other core processes and deliver theirs here.
    Do nothing on SQLite."""
    if db.is_sqlite:
        yield
        return
    channel = WakeupChannel(db.url, wakeups)
    tasks = [asyncio.create_task(_forever(channel.listen)), asyncio.create_task(_forever(channel.send))]
    wakeups.forward = channel.queue
    try:
        yield
    finally:
        wakeups.forward = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class WakeupChannel:
    def __init__(self, url: str, wakeups: Wakeups) -> None:
        plain = make_url(url).set(drivername="postgresql")
        self._address = plain.render_as_string(hide_password=False)
        self._wakeups = wakeups
        self._process = secrets.token_hex(4)
        self._queued: set[str] = set()
        self._has_queued = asyncio.Event()

    def queue(self, topics: Iterable[str]) -> None:
        self._queued.update(topics)
        self._has_queued.set()

    async def send(self) -> None:
        """Send queued topics until the connection fails. Topics queued while a notification is being sent are combined
        into the next notification."""
        async with await self._connect("gpuaas-core wake-up sender") as connection:
            while True:
                await self._has_queued.wait()
                self._has_queued.clear()
                topics, self._queued = sorted(self._queued), set()
                for start in range(0, len(topics), MOST_TOPICS):
                    payload = " ".join([self._process, *topics[start : start + MOST_TOPICS]])
                    await connection.execute("select pg_notify(%s, %s)", (CHANNEL, payload))

    async def listen(self) -> None:
        async with await self._connect("gpuaas-core wake-up listener") as connection:
            await connection.execute(f"listen {CHANNEL}")
            self._wakeups.notify_all_local()  # for notifications sent before this connection listened
            while True:
                async for notification in connection.notifies(timeout=QUIET_S):
                    sender, *topics = notification.payload.split()
                    if sender != self._process:
                        self._wakeups.notify_local(topics)
                await connection.execute("select 1")  # detects a dead connection

    async def _connect(self, name: str) -> psycopg.AsyncConnection[tuple[object, ...]]:
        return await psycopg.AsyncConnection.connect(
            self._address, autocommit=True, application_name=name, connect_timeout=5
        )


async def _forever(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except (psycopg.Error, OSError) as error:
            log.warning("lost the wake-up connection; waiters fall back to polling", why=str(error))
        await asyncio.sleep(RECONNECT_S)
