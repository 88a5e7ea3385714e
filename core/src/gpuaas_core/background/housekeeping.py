"""Runs the periodic duties of the core. Every few seconds it marks silent nodes as unknown, marks stuck operations and
ends what has expired; every minute it deletes old rows.

Each duty is one transaction under a lock of its own, so that a slow or failing duty does not undo or delay the others.
A duty that deletes handles at most `AT_ONCE` rows per transaction and repeats while there are more.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import structlog
from sqlalchemy import Connection, select

from ..artifacts import deliveries, uploads
from ..authz.context import Context
from ..authz.evaluate import Principal, Scope
from ..authz.ids import PrincipalId
from ..capacity import allocation_service, silence
from ..catalog.service import expire_entitlements
from ..credentials import key_pairs
from ..credentials.deliveries import forget_old_answers
from ..http.call import Platform
from ..iam import break_glass
from ..idempotency import requests
from ..identity import assertions, login_throttle, node_keys, sessions
from ..kit.correlation import correlate
from ..kit.db import AT_ONCE, try_name
from ..kit.loop import every
from ..machine_access import grants
from ..node_tasks import service as tasks
from ..oidc import sign_in
from ..operations import watchdog
from ..triage import service as telemetry
from .node_contacts import write_contacts

log = structlog.get_logger("gpuaas.housekeeping")
EVERY_S = 5.0
CLEANUP_EVERY_S = 60.0
MOST_REPEATS = 20  # transactions of one duty in one round
BREAK_MS = 15_000  # a longer time between two rounds counts as an interruption
ITSELF = Principal(PrincipalId("platform"), "platform", "platform housekeeping")

SILENT_NODES = "silent nodes"

Duty = Callable[[Context], object]
DUTIES: dict[str, Duty] = {
    SILENT_NODES: silence.lose_silent_nodes,
    "break-glass": break_glass.expire_due,
    "leases": allocation_service.end_leases,
    "expired tasks": tasks.expire_due,
    "stuck operations": watchdog.check_live,
    "old operations": watchdog.delete_old,
    "entitlements": expire_entitlements,
    "credential overlaps": key_pairs.end_overlaps,
}
FULL = {SILENT_NODES: silence.AT_ONCE, "expired tasks": tasks.AT_ONCE}  # duties whose limit is not `AT_ONCE`
DELETIONS: dict[str, Callable[[Connection, int], int]] = {
    "deliveries of secrets": forget_old_answers,
    "access grants": grants.delete_ended,
    "uploads": uploads.forget_unused,
    "deliveries": deliveries.forget_old,
    "idempotency keys": requests.forget_old,
    "tasks": tasks.forget_old,
    "sessions": sessions.forget_old_sessions,
    "assertions": assertions.forget_old_assertions,
    "wrong passwords": login_throttle.forget_old,
    "node keys": node_keys.forget_old_keys,
    "sign-in attempts": sign_in.forget_old,
    "telemetry": telemetry.forget_old,
}


class Served:
    """Records since when this process has reached the database without interruption. During an interruption no node can
    report, so that time does not count as silence of the node."""

    def __init__(self) -> None:
        self.since: int | None = None
        self._last = 0

    def round(self, now: int) -> int:
        """Record that a round begins and that the database responds;
        return the time since which there was no interruption."""
        if self.since is None or now - self._last > BREAK_MS:
            self.since = now
        self._last = now
        return self.since


def housekeeping(platform: Platform) -> AbstractAsyncContextManager[None]:
    served = Served()

    def work(platform: Platform, now: int) -> set[str]:
        platform.db.read_now(lambda tx: tx.execute(select(1)).scalar())
        return do_duties(platform, now, served.round(now))

    return every(EVERY_S, lambda: _in_thread(platform, work), name="housekeeping")


def cleanup(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(CLEANUP_EVERY_S, lambda: _in_thread(platform, delete_old), name="cleanup")


async def _in_thread(platform: Platform, work: Callable[[Platform, int], set[str]]) -> None:
    platform.wakeups.notify(await asyncio.to_thread(work, platform, platform.clock()))


def tidy(platform: Platform, now: int) -> None:
    """Run one round of all duties, for tests. Waiting requests are not woken."""
    do_duties(platform, now)
    delete_old(platform, now)


def do_duties(platform: Platform, now: int, served_since: int = 0) -> set[str]:
    """Run all duties and return the topics to wake. A duty that fails is logged and retried in the next round."""
    write_contacts(platform)
    topics: set[str] = set()
    silent = partial(silence.lose_silent_nodes, served_since=served_since)
    for name, duty in (DUTIES | {SILENT_NODES: silent}).items():
        topics |= _repeat(platform, name, lambda tx, duty=duty: _act(tx, duty, now), FULL.get(name, AT_ONCE))
    return topics


def delete_old(platform: Platform, now: int) -> set[str]:
    topics: set[str] = set()
    for name, delete in DELETIONS.items():
        topics |= _repeat(platform, f"old {name}", lambda tx, delete=delete: (delete(tx, now), set[str]()), AT_ONCE)
    return topics


def _repeat(platform: Platform, name: str, once: Callable[[Connection], tuple[int, set[str]]], full: int) -> set[str]:
    """Run a duty, and repeat it as long as it handles `full` rows, the most in one transaction. Return the topics to
    wake. A failure is logged, not raised."""
    topics: set[str] = set()
    try:
        for _ in range(MOST_REPEATS):
            done, woken = platform.db.write_now(
                lambda tx: once(tx) if try_name(tx, f"duty: {name}") else (0, set[str]())
            )
            topics |= woken
            if done < full:
                break
    except Exception as error:
        log.error("housekeeping duty failed; retrying", duty=name, exc_info=error)
    return topics


def _act(tx: Connection, duty: Duty, now: int) -> tuple[int, set[str]]:
    ctx = Context(tx, ITSELF, Scope(), "platform.housekeeping", correlate(None, None), now)
    done = duty(ctx)
    ctx.flush(audited=False)
    return done if isinstance(done, int) else 0, ctx.topics
