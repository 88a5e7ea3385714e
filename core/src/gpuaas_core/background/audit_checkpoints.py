"""Writes checkpoints of the audit chains: no row stays uncovered for more than five minutes or a thousand rows.

Before signing, it verifies the rows since the last checkpoint: a broken chain is reported, not signed.
If the core dies between a commit and its checkpoint nothing is lost; the next round covers it.
"""

import asyncio
from contextlib import AbstractAsyncContextManager

import structlog
from sqlalchemy import Connection, select, update

from ..audit.chain import GENESIS, link
from ..audit.checkpoints import BadCheckpoint, Checkpoints
from ..audit.tables import audit
from ..audit.verify import known_checkpoints
from ..events.tables import event_heads
from ..http.call import Platform
from ..kit.clock import rfc3339
from ..kit.loop import every

log = structlog.get_logger("gpuaas.anchoring")
EVERY_S = 5.0
AGE_MS = 5 * 60 * 1000
ROWS = 1000


def anchoring(platform: Platform) -> AbstractAsyncContextManager[None]:
    return every(EVERY_S, lambda: asyncio.to_thread(anchor_due, platform), name="audit checkpoints")


def anchor_due(platform: Platform, *, everything: bool = False) -> list[str]:
    """Returns the tenants that got a checkpoint."""
    now = platform.clock()
    waiting = platform.db.read_now(lambda tx: _waiting(tx, now, everything=everything))
    return [tenant_id for tenant_id in waiting if _anchor(platform, tenant_id, now)]


def _waiting(tx: Connection, now: int, *, everything: bool) -> list[str]:
    """Tenants with too many or too old rows beyond the newest checkpoint (or, by a wrong clock, of the future)."""
    h = event_heads.c
    first = (audit.c.tenant_id == h.tenant_id) & (audit.c.sequence == h.audit_anchored + 1)
    query = select(h.tenant_id, h.audit_sequence - h.audit_anchored, audit.c.at)
    query = query.select_from(event_heads.outerjoin(audit, first)).where(h.audit_sequence > h.audit_anchored)
    due = []
    for tenant_id, rows, at in tx.execute(query.order_by(h.tenant_id)):
        if everything or rows >= ROWS or at is None or abs(now - at) >= AGE_MS:
            due.append(tenant_id)
    return due


def _anchor(platform: Platform, tenant_id: str, now: int) -> bool:
    checkpoints: Checkpoints = platform.checkpoints
    try:
        known = known_checkpoints(platform.db.read_now, checkpoints, tenant_id)
        start = (known[-1].sequence, known[-1].hash) if known else (0, GENESIS)
        sequence, digest = platform.db.read_now(lambda tx: _follow(tx, tenant_id, *start))
        written = sequence > start[0] and checkpoints.append(platform.vault, tenant_id, sequence, digest, now)
    except BadCheckpoint as error:
        log.error("audit checkpoint not signed: run `gpuaas-core audit verify`", tenant_id=tenant_id, reason=str(error))
        return False
    platform.db.write_now(lambda tx: _mark(tx, tenant_id, sequence))
    if written:
        log.info("audit checkpoint", tenant_id=tenant_id, sequence=sequence, hash=digest, at=rfc3339(now))
    return written


def _follow(tx: Connection, tenant_id: str, last: int, digest: str) -> tuple[int, str]:
    """The end of the chain, verified row by row from the last checkpoint, so that no rewritten row is ever signed."""
    anchored = select(audit.c.hash).where(audit.c.tenant_id == tenant_id, audit.c.sequence == last)
    if last and tx.execute(anchored).scalar() != digest:
        raise BadCheckpoint(f"Row {last} does not match the newest checkpoint.")
    query = select(audit).where(audit.c.tenant_id == tenant_id, audit.c.sequence > last).order_by(audit.c.sequence)
    for row in tx.execute(query):
        following = link(digest, row._asdict())
        if row.sequence != last + 1 or row.hash != following:
            raise BadCheckpoint(f"Row {last + 1} is missing or was changed.")
        last, digest = row.sequence, following
    return last, digest


def _mark(tx: Connection, tenant_id: str, sequence: int) -> None:
    """Only forward, and after the file is durable."""
    behind = (event_heads.c.tenant_id == tenant_id) & (event_heads.c.audit_anchored < sequence)
    tx.execute(update(event_heads).where(behind).values(audit_anchored=sequence))
