"""Every second: revoke grants whose reason no longer holds, continue rotations of authorities, renew host certificates.

A loop of its own: a key provider that does not answer must not stop housekeeping.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from sqlalchemy import Connection

from ..authz.context import Context
from ..authz.evaluate import Principal, Scope
from ..capacity import authority_rotation, host_certificates
from ..custody import authorities
from ..http.call import Platform
from ..instances import access
from ..kit.correlation import correlate
from ..kit.db import try_name
from ..kit.loop import every

EVERY_S = 1.0
ITSELF = Principal("platform", "platform", "platform trust keeping")


def trust_keeping(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(EVERY_S, lambda: _round(platform), name="machine access")


async def _round(platform: Platform) -> None:
    platform.wakeups.notify(await asyncio.to_thread(keep, platform))


def keep(platform: Platform) -> set[str]:
    """One round; returns the topics to wake.

    One transaction per step with work to do; steps that need the vault come last.
    """
    now, vault = platform.clock(), platform.vault
    parts: list[tuple[Callable[[Connection], object], Callable[[Context], object]]] = [
        (lambda tx: access.any_stale(tx, now), access.revoke_stale),
        (authorities.under_way, lambda ctx: authority_rotation.go_on(ctx, vault)),
        (lambda tx: host_certificates.renewal_due(tx, now), lambda ctx: host_certificates.renew_due(ctx, vault)),
    ]
    topics: set[str] = set()
    for due, act in parts:
        if platform.db.read_now(due):
            topics |= platform.db.write_now(lambda tx, act=act: _run(tx, act, now))
    return topics


def _run(tx: Connection, act: Callable[[Context], object], now: int) -> set[str]:
    if not try_name(tx, "trust_keeping"):  # another replica holds the lock
        return set()
    ctx = Context(tx, ITSELF, Scope(), "platform.trust_keeping", correlate(None, None), now)
    act(ctx)
    for event in ctx.pending:
        scope = Scope(tenant_id=event.tenant_id, project_id=event.project_id)
        ctx.note_own(scope, event.subject, event.data.get("reason") or event.type)
    ctx.flush(audited=False)
    return ctx.topics
