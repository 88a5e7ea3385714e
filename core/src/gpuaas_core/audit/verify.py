"""Verification of the audit trail: compares a tenant's hash chain with its signed checkpoints.

Rows and checkpoints are added during the verification, so the order of the reads matters: first the anchored position
in the database, then the checkpoint files, then the rows. In this order an intact trail is never reported as broken.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.exc import DBAPIError

from ..counters.reads import COUNTERS, all_counters, anchored
from ..kit.clock import rfc3339
from ..kit.rows import Query
from .chain import GENESIS, link
from .checkpoints import BadCheckpoint, Checkpoint, Checkpoints
from .rows import AuditRow
from .tables import audit

PAGE = 1000
BEFORE_ALL = -(2**62)
KEEP = "Keep the database and the checkpoint files unchanged, and find out who could write to them."
RESTORED = "If a backup was restored on purpose: `gpuaas-core audit restart TENANT --reason …` starts new checkpoints."

T = TypeVar("T")


class Read(Protocol):
    """A function that calls its argument with a database connection and returns the result.
    Each call reads one snapshot."""

    def __call__(self, fn: Callable[[Connection], T], /) -> T: ...


@dataclass(frozen=True)
class _TrailRow(AuditRow):
    """An audit row joined with its tenant's counter.
    Where the trail ends, `found` and the columns of the audit row are None."""

    head_sequence: int
    head_hash: str
    found: int | None


_MINE = (audit.c.tenant_id == COUNTERS.c.tenant_id) & (audit.c.sequence > bindparam("after"))
_NEXT = Query(
    select(
        audit,
        COUNTERS.c.audit_sequence.label("head_sequence"),
        COUNTERS.c.audit_hash.label("head_hash"),
        audit.c.sequence.label("found"),
    )
    .select_from(COUNTERS.outerjoin(audit, _MINE))
    .where(COUNTERS.c.tenant_id == bindparam("tenant"))
    .order_by(audit.c.sequence)
    .limit(PAGE),
    _TrailRow,
)
_OWNERS = select(audit.c.tenant_id).distinct()


@dataclass(frozen=True)
class Break:
    """The first place where a trail is broken:
    the row's sequence number, or 0 if the checkpoints themselves are invalid."""

    sequence: int
    sentence: str
    way_out: str = KEEP


@dataclass(frozen=True)
class Verdict:
    tenant_id: str
    rows: int  # number of valid rows
    hash: str  # of the last valid row
    checkpoints: int  # that agree with the rows
    anchored: int  # sequence of the newest checkpoint that agrees with the rows
    anchored_at: int | None
    broken: Break | None = None

    @property
    def ok(self) -> bool:
        return self.broken is None

    @property
    def sentence(self) -> str:
        if self.broken:
            return self.broken.sentence
        summary = f"{self.rows} rows are intact"
        if not self.anchored:
            return f"{summary}; none is covered by a checkpoint yet."
        when = f"{self.anchored} (checkpoint of {rfc3339(self.anchored_at)})"
        return f"{summary}, and up to {when} nothing was removed or rewritten."


class _Walk:
    """One pass over a tenant's audit rows, which ends at the first break."""

    def __init__(self, tenant_id: str, checkpoints: Iterable[Checkpoint]) -> None:
        self.tenant_id = tenant_id
        self.ahead = list(checkpoints)
        self.last, self.hash = 0, GENESIS
        self.agreed = 0
        self.newest: Checkpoint | None = None
        self.broken: Break | None = None

    def row(self, row: AuditRow) -> None:
        expected = self.last + 1
        if row.sequence != expected:
            self.broke(expected, f"Row {expected} is missing; row {row.sequence} is in its place.")
            return
        try:
            computed = link(self.hash, vars(row))
        except (TypeError, ValueError):
            computed = "not readable as an audit row"
        if computed != row.hash:
            self.broke(expected, f"Row {expected} was changed: its hash does not match.")
            return
        self.last, self.hash = expected, computed
        self._compare()

    def _compare(self) -> None:
        if not self.ahead or self.ahead[0].sequence != self.last:
            return
        point = self.ahead.pop(0)
        if point.hash == self.hash:
            self.agreed, self.newest = self.agreed + 1, point
            return
        signed = rfc3339(point.at)
        sentence = f"Rows up to {self.last} were rewritten: they differ from the checkpoint signed at {signed}."
        self.broke(self.last, sentence, f"{KEEP} {RESTORED}")

    def end(self, head_sequence: int, head_hash: str) -> None:
        if self.ahead:
            point = self.ahead[0]
            sentence = (
                f"The trail ends at row {self.last}, but the checkpoint signed at {rfc3339(point.at)} saw row"
                f" {point.sequence}: the end was removed."
            )
            self.broke(self.last + 1, sentence, f"{KEEP} {RESTORED}")
        elif (head_sequence, head_hash) != (self.last, self.hash):
            sentence = f"The trail ends at row {self.last}, but the tenant's counter is {head_sequence}."
            if head_sequence == self.last:
                sentence = f"The hash stored with the tenant's counter does not match row {self.last}."
            self.broke(min(head_sequence, self.last) + 1, sentence)

    def broke(self, sequence: int, sentence: str, way_out: str = KEEP) -> None:
        self.broken = Break(sequence, sentence, way_out)

    def verdict(self) -> Verdict:
        newest = self.newest
        where = (newest.sequence, newest.at) if newest else (0, None)
        return Verdict(self.tenant_id, self.last, self.hash, self.agreed, *where, self.broken)


def verify(read: Read, checkpoints: Checkpoints, tenant_id: str) -> Verdict:
    """Verify the whole trail of a tenant. A break is part of the result, not an exception. `read` is called once per
    page, so that no snapshot stays open for long."""
    try:
        points = known_checkpoints(read, checkpoints, tenant_id)
    except BadCheckpoint as error:
        return Verdict(tenant_id, 0, GENESIS, 0, 0, None, Break(0, str(error), f"{KEEP} {RESTORED}"))
    walk = _Walk(tenant_id, points)
    try:
        while not walk.broken and read(lambda tx: _page(tx, walk)):
            pass
    except DBAPIError:
        walk.broke(walk.last + 1, f"The rows after {walk.last} cannot be read as text.")
    return walk.verdict()


def known_checkpoints(read: Read, checkpoints: Checkpoints, tenant_id: str) -> list[Checkpoint]:
    """Return all checkpoints of the tenant. Raises BadCheckpoint if the last one is before the anchored position in the
    database. The position is read first, so that a checkpoint written in between does not fail the check."""
    marked = read(lambda tx: anchored(tx, tenant_id))
    points = checkpoints.read(tenant_id)
    _check_covered(marked, points[-1] if points else None)
    return points


def newest_checkpoint(read: Read, checkpoints: Checkpoints, tenant_id: str) -> Checkpoint | None:
    """Return the newest checkpoint of the tenant, or None.
    Raises BadCheckpoint if it is before the anchored position in the database."""
    marked = read(lambda tx: anchored(tx, tenant_id))
    newest = checkpoints.newest(tenant_id)
    _check_covered(marked, newest)
    return newest


def _check_covered(marked: int, newest: Checkpoint | None) -> None:
    if marked > (newest.sequence if newest else 0):
        raise BadCheckpoint(f"Row {marked} was covered by a checkpoint, but the checkpoint is missing in its file.")


def streams(read: Read, checkpoints: Checkpoints) -> list[str]:
    """Return all tenants with audit rows or checkpoints: a tenant whose rows were all removed still has checkpoints."""
    kept = read(lambda tx: {counter.tenant_id for counter in all_counters(tx)} | _owners(tx))
    return sorted(kept | checkpoints.tenants())


def _owners(tx: Connection) -> set[str]:
    return set(tx.execute(_OWNERS).scalars())


def _page(tx: Connection, walk: _Walk) -> bool:
    """Verify one page of rows; return False at the end of the trail or at a break. One statement reads rows and
    counter, so both come from the same snapshot."""
    rows = _NEXT.all(tx, tenant=walk.tenant_id, after=walk.last if walk.last else BEFORE_ALL)
    if not rows:
        walk.end(0, GENESIS)
        if not walk.broken and walk.tenant_id in _owners(tx):
            walk.broke(1, "There are rows, but the tenant's counter is missing.")
        return False
    for row in rows:
        if row.found is None:
            walk.end(row.head_sequence, row.head_hash)
            return False
        walk.row(row)
        if walk.broken:
            return False
    return True
