"""Verifies the audit trail: walks a tenant's chain and compares it with its signed checkpoints.

The order of reads matters, since rows are added meanwhile: first the anchored position in the database, then the files,
then the rows. Each is at least as new as the previous, so an intact database is never suspected.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import DBAPIError

from ..events.tables import event_heads
from ..kit.clock import rfc3339
from .chain import FIELDS, GENESIS, link
from .checkpoints import BadCheckpoint, Checkpoint, Checkpoints
from .tables import audit

PAGE = 1000
BEFORE_ALL = -(2**62)
KEEP = "Keep the database and the checkpoint files unchanged, and find out who could write to them."
RESTORED = "If a backup was restored on purpose: `gpuaas-core audit restart TENANT --reason …` starts new checkpoints."

Read = Callable[[Callable[[Connection], Any]], Any]


@dataclass(frozen=True)
class Break:
    """The first break of the trail."""

    sequence: int
    sentence: str
    way_out: str = KEEP


@dataclass(frozen=True)
class Verdict:
    tenant_id: str
    rows: int  # number of valid rows
    hash: str  # of the last valid row
    checkpoints: int  # that agree with the rows
    anchored: int  # sequence of the newest one that agrees
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
    """One pass over the rows; ends at the first break."""

    def __init__(self, tenant_id: str, checkpoints: Iterable[Checkpoint]) -> None:
        self.tenant_id = tenant_id
        self.ahead = list(checkpoints)
        self.last, self.hash = 0, GENESIS
        self.agreed = 0
        self.newest: Checkpoint | None = None
        self.broken: Break | None = None

    def row(self, row: Row[Any]) -> None:
        expected = self.last + 1
        if row.sequence != expected:
            self.broke(expected, f"Row {expected} is missing; row {row.sequence} is in its place.")
            return
        try:
            computed = link(self.hash, dict(zip(FIELDS, row, strict=False)))
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
    """`read` runs a function with a connection; it is called once per page, so no snapshot is held for long."""
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
    """Read after the anchored position, so that a checkpoint written in between does not fail the check."""
    marked = read(lambda tx: _marked(tx, tenant_id))
    points = checkpoints.read(tenant_id)
    if marked > (points[-1].sequence if points else 0):
        raise BadCheckpoint(f"Row {marked} was covered by a checkpoint, but the checkpoint is missing in its file.")
    return points


def streams(read: Read, checkpoints: Checkpoints) -> list[str]:
    """Every chain there is or was: a tenant whose rows were all removed still has its checkpoints."""
    kept = read(lambda tx: {*tx.execute(select(event_heads.c.tenant_id)).scalars(), *_owners(tx)})
    return sorted(kept | checkpoints.tenants())


def _owners(tx: Connection) -> set[str]:
    return set(tx.execute(select(audit.c.tenant_id).distinct()).scalars())


def _marked(tx: Connection, tenant_id: str) -> int:
    mark = select(event_heads.c.audit_anchored).where(event_heads.c.tenant_id == tenant_id)
    return tx.execute(mark).scalar() or 0


def _page(tx: Connection, walk: _Walk) -> bool:
    """One statement, so rows and counter are one snapshot on every database. False at the end."""
    after = walk.last if walk.last else BEFORE_ALL
    mine = (audit.c.tenant_id == event_heads.c.tenant_id) & (audit.c.sequence > after)
    columns = [audit.c[name] for name in (*FIELDS, "hash")]
    heads = [event_heads.c.audit_sequence.label("head_sequence"), event_heads.c.audit_hash.label("head_hash")]
    query = select(*columns, *heads).select_from(event_heads.outerjoin(audit, mine))
    query = query.where(event_heads.c.tenant_id == walk.tenant_id).order_by(audit.c.sequence).limit(PAGE)
    rows = tx.execute(query).all()
    if not rows:
        walk.end(0, GENESIS)
        if not walk.broken and walk.tenant_id in _owners(tx):
            walk.broke(1, "There are rows, but the tenant's counter is missing.")
        return False
    for row in rows:
        if row.sequence is None:
            walk.end(row.head_sequence, row.head_hash)
            return False
        walk.row(row)
        if walk.broken:
            return False
    return True
