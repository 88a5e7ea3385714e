"""Keeps machine access true, every second: grants whose reason is gone end, authorities rotate, host certificates are
renewed. Its own loop, because a holder of keys that is away must not stop the rest of the house.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import structlog
from sqlalchemy import Connection

from ..access.context import Context
from ..access.evaluate import Principal, Scope
from ..capacity import authority_rotation, certifying
from ..custody import authorities
from ..edge.call import Platform
from ..instances import access
from ..kit.db import try_name
from ..ledger.audit import Entry
from ..ledger.correlation import correlate
from ..ledger.events import Pending

log = structlog.get_logger("gpuaas.trust")
EVERY_S = 1.0
ITSELF = Principal("platform", "platform", "platform trust keeping")


@contextlib.asynccontextmanager
async def trust_keeping(platform: Platform) -> AsyncIterator[None]:
    task = asyncio.create_task(_loop(platform))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _loop(platform: Platform) -> None:
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            platform.wakeups.ring(await asyncio.to_thread(keep, platform))
        except Exception as error:
            log.error("keeping machine access true failed, trying again", exc_info=error)


def keep(platform: Platform) -> set[str]:
    """One round; returns whom to wake. A transaction each, where something is to be done; what needs the vault last."""
    now, vault = platform.clock(), platform.vault
    parts: list[tuple[Callable[[Connection], object], Callable[[Context], object]]] = [
        (lambda tx: access.any_stale(tx, now), access.revoke_stale),
        (authorities.under_way, lambda ctx: authority_rotation.go_on(ctx, vault)),
        (lambda tx: certifying.renewal_due(tx, now), lambda ctx: certifying.renew_due(ctx, vault)),
    ]
    topics: set[str] = set()
    for due, act in parts:
        if platform.db.read_now(due):
            topics |= platform.db.write_now(lambda tx, act=act: _done(tx, act, now))
    return topics


def _done(tx: Connection, act: Callable[[Context], object], now: int) -> set[str]:
    if not try_name(tx, "trust_keeping"):  # another core is at it
        return set()
    ctx = Context(tx, ITSELF, Scope(), "platform.trust_keeping", correlate(None, None), now)
    act(ctx)
    for event in ctx.pending:
        ctx.note(_entry(ctx, event))
    ctx.flush(audited=False)
    return ctx.topics


def _entry(ctx: Context, event: Pending) -> Entry:
    """Nobody asked at this moment, so the trail of whom it concerns says who did it and why."""
    who = {"actor_id": ctx.principal.id, "actor_kind": ctx.principal.kind, "permission": ctx.permission}
    where = {"tenant_id": event.tenant_id, "project_id": event.project_id, "resource_id": event.subject}
    return Entry(**who, **where, outcome="allowed", reason=event.data.get("reason") or event.type)
