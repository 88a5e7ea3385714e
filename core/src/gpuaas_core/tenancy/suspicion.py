"""What a former key of a machine tells is kept, though the request that showed it is refused and rolls back."""

from collections.abc import Awaitable

from fastapi import Response
from sqlalchemy import Connection

from ..edge.call import Call
from ..kit.problems import Problem
from .errors import IdentityCloned, IdentitySuperseded


async def watched(call: Call, proof: Awaitable[Response]) -> Response:
    try:
        return await proof
    except (IdentitySuperseded, IdentityCloned) as shown:
        await _tell(call, shown)
        raise


async def _tell(call: Call, shown: Problem) -> None:
    def told(tx: Connection) -> set[str]:
        ctx = call.context(tx)
        call.platform.suspicion(ctx, shown, call.request.client.host if call.request.client else "somebody")
        ctx.flush(audited=False)
        return ctx.topics

    call.platform.wakeups.notify(await call.platform.db.write(told))
