"""Forwards events to NATS JetStream (GPUAAS_CORE_NATS).
This is optional; the events table stays the authoritative record.

The position is stored after the broker's acknowledgement, so an event may be sent twice, with the same id, but is never
lost. An event is acknowledged before the next one of its tenant is sent, so they stay in order. While the broker is
unreachable events wait in their table.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncGenerator
from typing import Protocol

import structlog
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

from ..kit.clock import Clock
from ..kit.db import Database
from . import event_log, fanout
from .rows import CloudEvent

log = structlog.get_logger("gpuaas.fanout")
STREAM, SUBJECTS = "gpuaas-events", "gpuaas.events"
TWICE_WITHIN_S = 600  # the broker drops duplicates of an id within this time
BATCH = 100
LOOK_EVERY_S = 0.25
ACK_S = 5.0
PATIENCE_S = (
    0.5,
    1.0,
    2.0,
    5.0,
)  # after the first failure, the second …; the last also while another replica has the lease


class Fanout:
    def __init__(self, db: Database, clock: Clock, url: str) -> None:
        self._db, self._clock, self._url = db, clock, url
        self._me = secrets.token_hex(8)
        self._failures = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        task = asyncio.create_task(self._loop())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _loop(self) -> None:
        while True:
            try:
                if await self._mine():
                    await self._hand_on()
            except Exception as error:
                self._log_failure(error)
            await asyncio.sleep(PATIENCE_S[min(self._failures, len(PATIENCE_S)) - 1])

    def _log_failure(self, error: Exception) -> None:
        self._failures += 1
        if self._failures == 1:  # logged once, not every second: the metrics show the duration
            log.warning("cannot reach the broker; events are queued", reason=str(error) or type(error).__name__)

    async def _mine(self) -> bool:
        now = self._clock()
        return await self._db.write(lambda tx: fanout.take_lease(tx, self._me, now))

    async def _hand_on(self) -> None:
        """Forward events until another replica has the lease.
        Raises an exception if the connection to the broker is lost."""
        broker = Client()
        await broker.connect(self._url, connect_timeout=3, allow_reconnect=False, error_cb=_quiet)
        try:
            stream = JetStreamContext(broker, timeout=ACK_S)
            await _ensure(stream)
            log.info("forwarding events", stream=STREAM, after_failures=self._failures)
            self._failures = 0
            while await self._mine():
                for waiting in await self._db.read(fanout.waiting):
                    if not await self._some(stream, waiting):
                        return
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            await broker.close()

    async def _some(self, stream: JetStreamContext, waiting: fanout.Waiting) -> bool:
        """Forward at most one batch of a tenant's events to NATS, so that a tenant with many events does not delay the
        others. Return False if another core process holds the lease of the forwarder."""
        tenant_id, last = waiting.tenant_id, waiting.position
        batch = await self._db.read(lambda tx: event_log.after(tx, tenant_id, last, project_id=None, limit=BATCH))
        if batch and batch[0]["sequence"] > last + 1:
            log.error("events expired before they were forwarded", tenant_id=tenant_id, after=last)
        sent = last
        try:
            for event in batch:
                await stream.publish(_subject(tenant_id, event), json.dumps(event).encode(), headers=_headers(event))
                sent = event["sequence"]
        finally:
            kept = sent == last or await self._keep(tenant_id, sent)
        return kept

    async def _keep(self, tenant_id: str, sequence: int) -> bool:
        now = self._clock()
        return await self._db.write(lambda tx: fanout.moved(tx, self._me, tenant_id, sequence, now))


def _subject(tenant_id: str, event: CloudEvent) -> str:
    return f"{SUBJECTS}.{tenant_id}.{event['type']}"


def _headers(event: CloudEvent) -> dict[str, str]:
    return {"Nats-Msg-Id": event["id"], "Content-Type": "application/cloudevents+json"}


class _Streams(Protocol):
    """The methods of JetStream that `_ensure` uses.
    They are declared here because the library does not type their arguments."""

    async def stream_info(self, name: str) -> object: ...

    async def add_stream(self, config: StreamConfig) -> object: ...


async def _ensure(stream: _Streams) -> None:
    """Create the stream if it does not exist. A stream created by the operator is not changed."""
    try:
        await stream.stream_info(STREAM)
    except NotFoundError:
        wanted = StreamConfig(name=STREAM, subjects=[f"{SUBJECTS}.>"], duplicate_window=TWICE_WITHIN_S)
        await stream.add_stream(wanted)


async def _quiet(_error: Exception) -> None:
    """Ignore errors of the NATS client, because the forwarding loop logs them."""
