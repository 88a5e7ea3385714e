"""Carries wake-ups between core processes on one PostgreSQL, with LISTEN and NOTIFY.

Only names of topics travel, after the commit and outside of it (a NOTIFY inside would make all commits of the server
queue up). A lost one costs a wait: the rows are the record. Called by the application while it runs.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import psycopg
import structlog
from sqlalchemy import make_url

from .db import Database
from .wakeups import Wakeups

log = structlog.get_logger("gpuaas.bell")
CHANNEL = "gpuaas_wakeups"
MOST_TOPICS = 100  # a notification holds at most 8000 bytes
QUIET_S = 20.0
AGAIN_S = 1.0


@contextlib.asynccontextmanager
async def heard_by_others(db: Database, wakeups: Wakeups) -> AsyncIterator[None]:
    """While this lasts, other processes hear what rings here, and this one hears them."""
    if db.is_sqlite:
        yield
        return
    bell = Bell(db.url, wakeups)
    tasks = [asyncio.create_task(_forever(bell.listen)), asyncio.create_task(_forever(bell.send))]
    wakeups.tell_others = bell.tell
    try:
        yield
    finally:
        wakeups.tell_others = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Bell:
    def __init__(self, url: str, wakeups: Wakeups) -> None:
        plain = make_url(url).set(drivername="postgresql")
        self._address = plain.render_as_string(hide_password=False)
        self._wakeups = wakeups
        self._me = secrets.token_hex(4)
        self._untold: set[str] = set()
        self._something = asyncio.Event()

    def tell(self, topics: Iterable[str]) -> None:
        self._untold.update(topics)
        self._something.set()

    async def send(self) -> None:
        """Whatever rang while the last notification was under way goes out as one."""
        async with await self._connect("gpuaas-core bell") as connection:
            while True:
                await self._something.wait()
                self._something.clear()
                topics, self._untold = sorted(self._untold), set()
                for start in range(0, len(topics), MOST_TOPICS):
                    words = " ".join([self._me, *topics[start : start + MOST_TOPICS]])
                    await connection.execute("select pg_notify(%s, %s)", (CHANNEL, words))

    async def listen(self) -> None:
        async with await self._connect("gpuaas-core ear") as connection:
            await connection.execute(f"listen {CHANNEL}")
            self._wakeups.ring_all_here()  # what rang while nobody listened
            while True:
                async for heard in connection.notifies(timeout=QUIET_S):
                    who, *topics = heard.payload.split()
                    if who != self._me:
                        self._wakeups.ring_here(topics)
                await connection.execute("select 1")  # is anybody still there?

    async def _connect(self, name: str) -> psycopg.AsyncConnection[tuple[object, ...]]:
        return await psycopg.AsyncConnection.connect(
            self._address, autocommit=True, application_name=name, connect_timeout=5
        )


async def _forever(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except (psycopg.Error, OSError) as error:
            log.warning("no wake-ups between processes for now, everybody polls", why=str(error))
        await asyncio.sleep(AGAIN_S)
