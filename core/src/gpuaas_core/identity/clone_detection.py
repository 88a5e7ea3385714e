"""Records the use of a superseded node key. This takes a separate transaction, because the transaction of the rejected
request is rolled back."""

from collections.abc import Awaitable

from fastapi import Response
from sqlalchemy import Connection

from ..http.call import Call
from ..kit.problems import Problem
from .errors import IdentityCloned, IdentitySuperseded


async def detect_clones(call: Call, request: Awaitable[Response]) -> Response:
    try:
        return await request
    except (IdentitySuperseded, IdentityCloned) as problem:
        await _record(call, problem)
        raise


async def _record(call: Call, problem: Problem) -> None:
    def record(tx: Connection) -> set[str]:
        ctx = call.context(tx)
        address = call.request.client.host if call.request.client else "unknown address"
        if call.platform.suspicion:
            call.platform.suspicion(ctx, problem, address)
        ctx.flush(audited=False)
        return ctx.topics

    call.platform.wakeups.notify(await call.platform.db.write(record))
