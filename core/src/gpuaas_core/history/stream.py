"""The event stream: everything after a sequence, in order, no hole, until the reader leaves or loses the right to read.

The rows are the record, so a stream is only a patient reader of the table; wake-ups make it fast, not correct.
"""

import json
from collections.abc import AsyncIterator

from ..edge.call import Call
from ..kit.problems import Problem
from ..ledger import events

PING_MS = 15_000
RECHECK_MS = 5_000
BATCH = 200


async def follow(call: Call, tenant_id: str, sequence: int) -> AsyncIterator[str]:
    clock = call.platform.clock
    epoch = await call.read(lambda ctx: events.store_epoch(ctx.tx))
    pinged = checked = clock()
    yield "retry: 1000\n\n"
    while not await call.request.is_disconnected():
        start, heard = sequence, call.platform.wakeups.rings
        batch = await call.read(
            lambda ctx, start=start: events.after(
                ctx.tx, tenant_id, start, project_id=ctx.scope.project_id, limit=BATCH
            )
        )
        for event in batch:
            sequence = event["sequence"]
            yield f"id: {epoch}.{sequence}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
        if clock() - checked > RECHECK_MS:
            checked = clock()
            if not await _still_allowed(call):
                return
        if batch:
            pinged = clock()
            continue
        if clock() - pinged > PING_MS:
            pinged = clock()
            yield f": at {sequence}\n\n"
        await call.platform.wakeups.wait(f"events:{tenant_id}", 1.0, since=heard)


async def _still_allowed(call: Call) -> bool:
    call.now = call.platform.clock()
    try:
        await call.admit()
    except Problem:
        return False
    return True
