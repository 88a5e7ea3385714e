"""The core's own log lines about requests: collected in memory, written in batches in the background.

A request never waits for its log line and never fails because of it. Unwritten lines are lost when the process dies, or
dropped while the database is slow (docs/limits.md). The complete record of changes is the audit trail.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator

import structlog

from ..http.request_log import Seen
from ..kit.clock import Clock
from ..kit.db import Database
from ..kit.json_types import JsonValue
from .rows import OwnedLine
from .service import add_lines

log = structlog.get_logger("gpuaas.triage")
MOST_WAITING = 5_000
BATCH = 500
EVERY_S = 0.5
# Frequent reports with events of their own: only their failures are logged.
QUIET = {"apps.operation.work", "ledger.telemetry.write", "capacity.node.report", "public"}


class RequestLines:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock
        self._waiting: deque[OwnedLine] = deque(maxlen=MOST_WAITING)

    def __call__(self, seen: Seen) -> None:
        if _worth_keeping(seen):
            self._waiting.append(_row(seen))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        task = asyncio.create_task(self._loop())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.flush()

    async def _loop(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.flush()

    async def flush(self) -> None:
        while self._waiting:
            rows = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            now = self._clock()
            received: list[OwnedLine] = [{**row, "received_at": now} for row in rows]
            try:
                await self._db.write(lambda tx, lines=received: add_lines(tx, lines))
            except Exception as error:
                log.error("dropped request log lines", lines=len(rows), exc_info=error)
                return


def _worth_keeping(seen: Seen) -> bool:
    if seen.status >= 400:
        return True
    return seen.method == "POST" and seen.permission not in QUIET and seen.status != 204


def _row(seen: Seen) -> OwnedLine:
    level = "error" if seen.status >= 500 else "warning" if seen.status >= 400 else "info"
    fields: dict[str, JsonValue] = {
        "method": seen.method,
        "path": seen.path[:300],
        "status": seen.status,
        "ms": seen.ms,
    }
    if seen.problem:
        fields["problem"] = seen.problem
    return {
        "at": seen.at,
        "level": level,
        "source": "core",
        "message": f"{seen.method} {seen.path[:300]} was answered with {seen.status} in {seen.ms:.0f} ms",
        "correlation_id": seen.correlation.correlation_id,
        "trace_id": seen.correlation.trace_id,
        "tenant_id": seen.tenant_id,
        "project_id": seen.project_id,
        "operation_id": None,
        "principal_id": seen.principal_id,
        "received_at": seen.at,  # replaced when it is written
        "fields": fields,
    }
