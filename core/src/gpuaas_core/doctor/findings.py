"""Results of the doctor, and the helpers its checks share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from ..audit.checkpoints import Checkpoints


@dataclass(frozen=True)
class Patient:
    """What a check may read. `read` runs a function with a connection: one call sees one snapshot."""

    read: Callable[[Callable[[Connection], Any]], Any]
    checkpoints: Checkpoints
    now: int

    def rows(self, query: Any) -> list[Any]:
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


def each(rows: list[Any], sentence: Callable[[Any], str], way_out: str = REPORT) -> list[Violation]:
    """One violation per row; its first column is the id."""
    return [Violation(sentence(row), [str(row[0])], way_out) for row in rows]
