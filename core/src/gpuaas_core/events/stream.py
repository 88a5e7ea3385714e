"""The event stream: everything after a sequence, in order, without gaps, until the reader disconnects or loses access.

The rows are the record, so a stream polls the table; wake-ups make it fast, not correct. Events
are read together with the reader's permission, in one transaction: events created after a session, a key or a role
ended are not delivered. The end itself sends a notification, and the stream closes.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

from ..authz.context import Context
from ..http.call import SOON_S, Call
from ..kit.problems import Problem
from . import event_log

PING_S = 15.0
RECHECK_MS = 30_000  # only where a wake-up was lost
BATCH = 200


async def follow(call: Call, tenant_id: str, sequence: int) -> AsyncIterator[str]:
    clock, wakeups = call.platform.clock, call.platform.wakeups
    epoch = await call.read(lambda ctx: event_log.store_epoch(ctx.tx))
    pinged = checked = clock()
    heard = wakeups.sequence
    yield "retry: 1000\n\n"
    while not await call.request.is_disconnected():
        if _due(call, checked, heard):
            checked = clock()
            call.check_again()
        heard = wakeups.sequence
        try:
            batch = await _next(call, tenant_id, sequence)
        except Problem:
            return
        for event in batch:
            sequence = event["sequence"]
            yield f"id: {epoch}.{sequence}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
        if batch:
            pinged = clock()
            continue
        if clock() - pinged >= PING_S * 1000:
            pinged = clock()
            yield f": at {sequence}\n\n"
        await wakeups.wait(f"events:{tenant_id}", *call.rights_topics, timeout_s=_longest(call), since=heard)


def _longest(call: Call) -> float:
    """Until the next ping, or until the session runs out by itself."""
    ends_at = call.principal.session_ends_at
    return PING_S if ends_at is None else min(PING_S, max(ends_at - call.platform.clock(), 0) / 1000 + SOON_S)


def _due(call: Call, checked: int, heard: int) -> bool:
    now, ends_at = call.platform.clock(), call.principal.session_ends_at
    over = ends_at is not None and ends_at <= now
    return over or now - checked > RECHECK_MS or call.platform.wakeups.notified_since(call.rights_topics, heard)


async def _next(call: Call, tenant_id: str, sequence: int) -> list[dict[str, Any]]:
    def read(ctx: Context) -> list[dict[str, Any]]:
        return event_log.after(ctx.tx, tenant_id, sequence, project_id=ctx.scope.project_id, limit=BATCH)

    return await call.read(read, deliver=True)
