"""Writes signed checkpoints of the audit chains: a tenant gets one when its oldest uncovered row is five minutes old,
or when a thousand rows are uncovered.

Before signing, the rows since the last checkpoint are verified: a broken chain is reported, not signed. If the core
dies between a commit and its checkpoint, the next round writes the checkpoint.
"""

from typing import Protocol

import structlog
from sqlalchemy import Connection, bindparam, select

from ..counters import service as counters
from ..counters.reads import COUNTERS
from ..kit.clock import Clock, rfc3339
from ..kit.db import Database
from ..kit.rows import Query
from .chain import GENESIS, link
from .checkpoints import BadCheckpoint, Checkpoints, Signer
from .rows import AuditRow
from .tables import audit
from .verify import newest_checkpoint

log = structlog.get_logger("gpuaas.anchoring")
EVERY_S = 5.0
AGE_MS = 5 * 60 * 1000
ROWS = 1000

_FIRST = (audit.c.tenant_id == COUNTERS.c.tenant_id) & (audit.c.sequence == COUNTERS.c.audit_anchored + 1)
_WAITING = (
    select(COUNTERS.c.tenant_id, COUNTERS.c.audit_sequence - COUNTERS.c.audit_anchored, audit.c.at)
    .select_from(COUNTERS.outerjoin(audit, _FIRST))
    .where(COUNTERS.c.audit_sequence > COUNTERS.c.audit_anchored)
    .order_by(COUNTERS.c.tenant_id)
)
_HASH = select(audit.c.hash).where(audit.c.tenant_id == bindparam("tenant"), audit.c.sequence == bindparam("at"))
_AFTER = (
    Query(select(audit), AuditRow)
    .where(audit.c.tenant_id == bindparam("tenant"), audit.c.sequence > bindparam("after"))
    .order_by(audit.c.sequence)
)


class Store(Protocol):
    """The parts of the platform that anchoring uses."""

    @property
    def db(self) -> Database: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def vault(self) -> Signer: ...

    @property
    def checkpoints(self) -> Checkpoints | None: ...


def anchor_due(store: Store, *, everything: bool = False) -> list[str]:
    """Write the checkpoints that are due, or with `everything` those of all uncovered rows;
    return the tenants that got one."""
    now, checkpoints = store.clock(), store.checkpoints
    if checkpoints is None:
        return []
    waiting = store.db.read_now(lambda tx: _waiting(tx, now, everything=everything))
    return [tenant_id for tenant_id in waiting if _anchor(store, checkpoints, tenant_id, now)]


def _waiting(tx: Connection, now: int, *, everything: bool) -> list[str]:
    """Return the tenants whose rows after the newest checkpoint are too many, too old, or (because of a wrong clock)
    dated in the future. `everything`: all tenants with rows after their newest checkpoint."""
    due: list[str] = []
    for tenant_id, rows, at in tx.execute(_WAITING):
        if everything or rows >= ROWS or at is None or abs(now - at) >= AGE_MS:
            due.append(tenant_id)
    return due


def _anchor(store: Store, checkpoints: Checkpoints, tenant_id: str, now: int) -> bool:
    try:
        newest = newest_checkpoint(store.db.read_now, checkpoints, tenant_id)
        start = (newest.sequence, newest.hash) if newest else (0, GENESIS)
        sequence, digest = store.db.read_now(lambda tx: _follow(tx, tenant_id, *start))
        written = sequence > start[0] and checkpoints.append(store.vault, tenant_id, sequence, digest, now)
    except BadCheckpoint as error:
        log.error("audit checkpoint not signed: run `gpuaas-core audit verify`", tenant_id=tenant_id, reason=str(error))
        return False
    store.db.write_now(lambda tx: counters.mark_anchored(tx, tenant_id, sequence))
    if written:
        log.info("audit checkpoint", tenant_id=tenant_id, sequence=sequence, hash=digest, at=rfc3339(now))
    return written


def _follow(tx: Connection, tenant_id: str, last: int, digest: str) -> tuple[int, str]:
    """Verify the rows after the last checkpoint and return the sequence and hash of the last row. Raises BadCheckpoint
    at a changed or missing row, so that a rewritten chain is never signed."""
    if last and tx.execute(_HASH, {"tenant": tenant_id, "at": last}).scalar() != digest:
        raise BadCheckpoint(f"Row {last} does not match the newest checkpoint.")
    for row in _AFTER.stream(tx, tenant=tenant_id, after=last):
        following = link(digest, vars(row))
        if row.sequence != last + 1 or row.hash != following:
            raise BadCheckpoint(f"Row {last + 1} is missing or was changed.")
        last, digest = row.sequence, following
    return last, digest
