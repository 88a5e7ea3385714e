"""Every few seconds: silent nodes become unknown, stuck operations are marked, what expires is ended. Every minute: old
rows are deleted.

Each duty is one transaction under a lock of its own, so that a slow or failing duty does not undo or delay the others.
A duty that deletes takes at most `AT_ONCE` rows per transaction and repeats while there is more.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import structlog
from sqlalchemy import Connection

from ..artifacts import deliveries, uploads
from ..authz.context import Context
from ..authz.evaluate import Principal, Scope
from ..capacity.node_admin import lose_silent_nodes
from ..catalog.service import expire_entitlements
from ..custody import credentials, redemptions
from ..http.call import Platform
from ..iam import break_glass
from ..idempotency import requests
from ..identity import assertions, login_throttle, node_keys, oidc, sessions
from ..instances import leases
from ..kit.correlation import correlate
from ..kit.db import AT_ONCE, try_name
from ..kit.loop import every
from ..node_tasks import service as tasks
from ..operations import watchdog
from ..triage import service as telemetry

log = structlog.get_logger("gpuaas.housekeeping")
EVERY_S = 5.0
CLEANUP_EVERY_S = 60.0
MOST_REPEATS = 20  # transactions of one duty in one round
ITSELF = Principal("platform", "platform", "platform housekeeping")

Duty = Callable[[Context], object]
DUTIES: dict[str, Duty] = {
    "silent nodes": lose_silent_nodes,
    "break-glass": break_glass.expire_due,
    "leases": leases.end_due,
    "expired tasks": tasks.expire_due,
    "stuck operations": watchdog.check_live,
    "old operations": watchdog.delete_old,
    "entitlements": expire_entitlements,
    "credential overlaps": credentials.end_overlaps,
}
DELETIONS: dict[str, Callable[[Connection, int], int]] = {
    "deliveries of secrets": redemptions.forget_old_answers,
    "uploads": uploads.forget_unused,
    "deliveries": deliveries.forget_old,
    "idempotency keys": requests.forget_old,
    "tasks": tasks.forget_old,
    "sessions": sessions.forget_old_sessions,
    "assertions": assertions.forget_old_assertions,
    "wrong passwords": login_throttle.forget_old,
    "node keys": node_keys.forget_old_keys,
    "sign-in attempts": oidc.forget_old,
    "telemetry": telemetry.forget_old,
}


def housekeeping(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(EVERY_S, lambda: _in_thread(platform, do_duties), name="housekeeping")


def cleanup(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(CLEANUP_EVERY_S, lambda: _in_thread(platform, delete_old), name="cleanup")


async def _in_thread(platform: Platform, work: Callable[[Platform, int], set[str]]) -> None:
    platform.wakeups.notify(await asyncio.to_thread(work, platform, platform.clock()))


def tidy(platform: Platform, now: int) -> None:
    """One round of everything, for tests: waiters are not woken."""
    do_duties(platform, now)
    delete_old(platform, now)


def do_duties(platform: Platform, now: int) -> set[str]:
    """Returns the topics to wake. A duty that fails is logged and tried again in the next round; the others go on."""
    topics: set[str] = set()
    for name, duty in DUTIES.items():
        topics |= _repeat(platform, name, lambda tx, duty=duty: _act(tx, duty, now))
    return topics


def delete_old(platform: Platform, now: int) -> set[str]:
    topics: set[str] = set()
    for name, delete in DELETIONS.items():
        topics |= _repeat(platform, f"old {name}", lambda tx, delete=delete: (delete(tx, now), set[str]()))
    return topics


def _repeat(platform: Platform, name: str, once: Callable[[Connection], tuple[int, set[str]]]) -> set[str]:
    topics: set[str] = set()
    try:
        for _ in range(MOST_REPEATS):
            done, woken = platform.db.write_now(
                lambda tx: once(tx) if try_name(tx, f"duty: {name}") else (0, set[str]())
            )
            topics |= woken
            if done < AT_ONCE:
                break
    except Exception as error:
        log.error("housekeeping duty failed; retrying", duty=name, exc_info=error)
    return topics


def _locked(tx: Connection, name: str, once: Callable[[Connection], tuple[int, set[str]]]) -> tuple[int, set[str]]:
    """Nothing is done while another replica holds the lock of this duty."""
    return once(tx) if try_name(tx, f"duty: {name}") else (0, set())


def _act(tx: Connection, duty: Duty, now: int) -> tuple[int, set[str]]:
    ctx = Context(tx, ITSELF, Scope(), "platform.housekeeping", correlate(None, None), now)
    done = duty(ctx)
    ctx.flush(audited=False)
    return done if isinstance(done, int) else 0, ctx.topics
