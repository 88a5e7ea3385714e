"""The types of the doctor's invariants and findings, and helpers for the checks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..audit.checkpoints import Checkpoints
from ..audit.verify import Read
from ..kit.rows import RawRow, Statement


@dataclass(frozen=True)
class Patient:
    """The database and files that a check may read. Each call of `read` sees one snapshot."""

    read: Read
    checkpoints: Checkpoints
    now: int

    def rows(self, query: Statement) -> Sequence[RawRow]:
        return self.read(lambda tx: tx.execute(query).all())


@dataclass(frozen=True)
class Violation:
    sentence: str
    rows: list[str]  # ids, for manual inspection
    way_out: str


@dataclass(frozen=True)
class Invariant:
    number: int
    title: str
    check: Callable[[Patient], list[Violation]] | None = None
    not_yet: str = ""  # why there is nothing to check


@dataclass(frozen=True)
class Finding:
    invariant: Invariant
    violations: list[Violation]

    @property
    def status(self) -> str:
        if self.invariant.check is None:
            return "not applicable yet"
        return "violated" if self.violations else "holds"


REPORT = "A bug or a manual change of the database: keep a copy of it and report these ids."


def each(rows: Sequence[RawRow], sentence: Callable[[RawRow], str], way_out: str = REPORT) -> list[Violation]:
    """Return one violation per row; the row's first column is the id."""
    return [Violation(sentence(row), [str(row[0])], way_out) for row in rows]
