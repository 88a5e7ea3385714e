"""Every second, revokes access grants whose reason has ended,
continues rotations of SSH authorities and renews host certificates.

This is a separate loop, so that a key provider that does not respond cannot stop housekeeping.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from sqlalchemy import Connection

from ..authz.context import Context
from ..authz.evaluate import Principal, Scope
from ..authz.ids import PrincipalId, ProjectId, TenantId
from ..http.call import Platform
from ..kit.correlation import correlate
from ..kit.db import try_name
from ..kit.loop import every
from ..machine_access import authorities, authority_rotation, host_certificates, revocation

EVERY_S = 1.0
ITSELF = Principal(PrincipalId("platform"), "platform", "platform trust keeping")


def trust_keeping(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(EVERY_S, lambda: _round(platform), name="machine access")


async def _round(platform: Platform) -> None:
    platform.wakeups.notify(await asyncio.to_thread(keep, platform))


def keep(platform: Platform) -> set[str]:
    """Run one round and return the topics to wake.

    Each step that has work to do runs in a transaction of its own; the steps that need the vault come last.
    """
    now, vault = platform.clock(), platform.vault
    parts: list[tuple[Callable[[Connection], object], Callable[[Context], object]]] = [
        (lambda tx: revocation.any_stale(tx, now), revocation.revoke_stale),
        (authorities.under_way, lambda ctx: authority_rotation.go_on(ctx, vault)),
        (lambda tx: host_certificates.renewal_due(tx, now), lambda ctx: host_certificates.renew_due(ctx, vault)),
    ]
    topics: set[str] = set()
    acts = platform.db.read_now(lambda tx: [act for due, act in parts if due(tx)])
    for act in acts:
        topics |= platform.db.write_now(lambda tx, act=act: _run(tx, act, now))
    return topics


def _run(tx: Connection, act: Callable[[Context], object], now: int) -> set[str]:
    if not try_name(tx, "trust_keeping"):  # another replica holds the lock
        return set()
    ctx = Context(tx, ITSELF, Scope(), "platform.trust_keeping", correlate(None, None), now)
    act(ctx)
    for event in ctx.pending:
        scope = Scope(
            tenant_id=TenantId(event.tenant_id),
            project_id=ProjectId(event.project_id) if event.project_id else None,
        )
        ctx.note_own(scope, event.subject, str(event.data.get("reason") or event.type))
    ctx.flush(audited=False)
    return ctx.topics
