"""The app's own journal of acts on hosts. Each row is committed before the work continues, so it survives kill -9.

A row is written before an act (`acting`) and after its verification (`verified`). The state of the host decides, so a
resumed process always probes; the journal records how often a step was tried, what was found and how long it took. If
the first row cannot be written, the act does not start. store.py describes where rows are stored.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from ..client.request import JsonObject
from .store import DEFAULT_APP, Rows, StateAway, Value, open_store

TABLES = (
    """CREATE TABLE IF NOT EXISTS steps (
  operation_id TEXT NOT NULL, instance_id TEXT NOT NULL, allocation_id TEXT NOT NULL, step TEXT NOT NULL,
  attempt INTEGER NOT NULL, phase TEXT NOT NULL CHECK (phase IN ('probed','acting','verified','failed')),
  epoch BIGINT NOT NULL, started DOUBLE PRECISION NOT NULL, finished DOUBLE PRECISION,
  detail TEXT NOT NULL DEFAULT '{}', PRIMARY KEY (operation_id, allocation_id, step, attempt)
)""",
    """CREATE TABLE IF NOT EXISTS waits (
  operation_id TEXT NOT NULL, allocation_id TEXT NOT NULL, since DOUBLE PRECISION NOT NULL, times INTEGER NOT NULL,
  PRIMARY KEY (operation_id, allocation_id)
)""",
    """CREATE TABLE IF NOT EXISTS setbacks (
  operation_id TEXT NOT NULL PRIMARY KEY, allocation_id TEXT NOT NULL, version TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, detail TEXT NOT NULL
)""",
    "CREATE TABLE IF NOT EXISTS worked (version TEXT NOT NULL PRIMARY KEY, at DOUBLE PRECISION NOT NULL)",
)
KEPT_OPERATIONS = 100


@dataclass(frozen=True)
class Key:
    """Identifies a step by operation, allocation, step name and claim."""

    operation_id: str
    instance_id: str
    allocation_id: str
    step: str
    epoch: int


class StepRow(TypedDict):
    operation_id: str
    instance_id: str
    allocation_id: str
    step: str
    attempt: int
    phase: str
    epoch: int
    started: float
    finished: float | None
    detail: dict[str, Any]


@dataclass(frozen=True)
class Setback:
    """A failed attempt to set up a host, with its evidence. The circuit breaker counts setbacks."""

    operation_id: str
    allocation_id: str
    version: str
    code: str
    message: str
    detail: JsonObject
    at: float = 0.0


class Journal:
    def __init__(self, where: Path | str, clock: Callable[[], float] = time.time, *, app: str = DEFAULT_APP) -> None:
        """Open the journal. `where` is a file or the address of a database; `app` names its database connections."""
        self._clock = clock
        self._away_since: float | None = None
        self._store = open_store(where, TABLES, app)
        self.name = self._store.name

    def acting(self, key: Key) -> int:
        """Record a new attempt of a step before its act starts. Returns the number of the attempt."""
        for _ in range(10):  # another controller may open one in the same moment
            if (attempt := self._insert(key, "acting", None)) is not None:
                return attempt
        raise StateAway(self.name, f"other controllers write about {key.operation_id} all the time")

    def probed(self, key: Key) -> None:
        """Record that the step was found done, unless its last attempt already records that."""
        last = self._ask(
            "SELECT phase FROM steps WHERE operation_id=? AND allocation_id=? AND step=? ORDER BY attempt DESC LIMIT 1",
            _step(key),
        )
        if not last or last[0]["phase"] not in ("probed", "verified"):
            self._insert(key, "probed", self._clock())

    def verified(self, key: Key, attempt: int, detail: JsonObject | None = None) -> None:
        self._close(key, attempt, "verified", detail or {})

    def held(self, key: Key, attempt: int) -> None:
        """Close the attempt as `probed`: the command found the step done and did not run its act."""
        self._close(key, attempt, "probed", {})

    def failed(self, key: Key, attempt: int, detail: JsonObject) -> None:
        self._close(key, attempt, "failed", detail)

    def not_begun(self, key: Key, attempt: int) -> None:
        """Delete the attempt: another step of the same command failed first, so the host did not start this one."""
        self._ask(
            "DELETE FROM steps WHERE operation_id=? AND allocation_id=? AND step=? AND attempt=?",
            (*_step(key), attempt),
        )

    def rows(self, operation_id: str) -> list[StepRow]:
        found = self._ask("SELECT * FROM steps WHERE operation_id=? ORDER BY started, attempt", (operation_id,))
        return [StepRow(**{**row, "detail": json.loads(row["detail"])}) for row in found]

    def details(self, key: Key) -> list[dict[str, Any]]:
        """Return the recorded details of the verified attempts of this step, oldest first."""
        found = self._ask(
            "SELECT detail FROM steps WHERE operation_id=? AND allocation_id=? AND step=? AND phase='verified' "
            "ORDER BY attempt",
            _step(key),
        )
        return [json.loads(row["detail"]) for row in found]

    def wait(self, operation_id: str, allocation_id: str) -> tuple[float, int]:
        """Count another failed attempt to reach a host. Returns the seconds since the first one, and the count."""
        now = self._clock()
        (row,) = self._ask(
            "INSERT INTO waits VALUES (?,?,?,1) ON CONFLICT (operation_id, allocation_id)"
            " DO UPDATE SET times = waits.times + 1 RETURNING since, times",
            (operation_id, allocation_id, now),
        )
        return now - row["since"], row["times"]

    def reached(self, operation_id: str, allocation_id: str) -> None:
        self._ask("DELETE FROM waits WHERE operation_id=? AND allocation_id=?", (operation_id, allocation_id))

    def setback(self, found: Setback, keep_s: float) -> None:
        """Record a failed attempt to set up a host, and delete rows older than `keep_s`."""
        self._ask("DELETE FROM setbacks WHERE at < ? OR operation_id=?", (self._clock() - keep_s, found.operation_id))
        self._ask(
            "INSERT INTO setbacks VALUES (?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
            (found.operation_id, found.allocation_id, found.version, self._clock(), found.code,
             found.message.replace("\0", ""), json.dumps(found.detail)),
        )  # fmt: skip

    def setbacks(self, version: str, within_s: float) -> list[Setback]:
        """Return the setbacks of this version in the last `within_s` seconds, oldest first. A success on a host deletes
        its setbacks."""
        found = self._ask(
            "SELECT * FROM setbacks WHERE version=? AND at>=? ORDER BY at", (version, self._clock() - within_s)
        )
        return [Setback(**{**row, "detail": json.loads(row["detail"])}) for row in found]

    def set_up(self, version: str, allocations: Iterable[str]) -> None:
        """Record that this version was set up on these allocations, and delete their setbacks."""
        for one in allocations:
            self._ask("DELETE FROM setbacks WHERE allocation_id=?", (one,))
        statement = "INSERT INTO worked VALUES (?,?) ON CONFLICT (version) DO UPDATE SET at = excluded.at"
        self._ask(statement, (version, self._clock()))

    def worked_at(self, version: str) -> float:
        found = self._ask("SELECT at FROM worked WHERE version=?", (version,))
        return found[0]["at"] if found else 0.0

    def now(self) -> float:
        return self._clock()

    def away_for(self) -> float:
        """Return the seconds since the journal became unavailable; 0 if it is available."""
        return 0.0 if self._away_since is None else time.monotonic() - self._away_since

    def forget_old(self, keep: int = KEPT_OPERATIONS) -> None:
        """Delete the rows of all but the newest operations (operation ids are ordered by time), so that the journal
        does not grow without limit."""
        newest = "SELECT DISTINCT operation_id FROM steps ORDER BY operation_id DESC LIMIT 1 OFFSET ?"
        for row in self._ask(newest, (keep,)):
            self._ask("DELETE FROM steps WHERE operation_id <= ?", (row["operation_id"],))
            self._ask("DELETE FROM waits WHERE operation_id <= ?", (row["operation_id"],))

    def close(self) -> None:
        self._store.close()

    def _ask(self, statement: str, values: tuple[Value, ...]) -> Rows:
        try:
            found = self._store.execute(statement, values)
        except StateAway:
            self._away_since = self._away_since or time.monotonic()
            raise
        self._away_since = None
        return found

    def _insert(self, key: Key, phase: str, finished: float | None) -> int | None:
        """Insert the next attempt of a step and return its number; None if another controller has just inserted the
        same attempt."""
        found = self._ask(
            "INSERT INTO steps (operation_id, instance_id, allocation_id, step, attempt, phase, epoch, started,"
            " finished) VALUES (?,?,?,?,1 + (SELECT COALESCE(MAX(attempt), 0) FROM steps"
            " WHERE operation_id=? AND allocation_id=? AND step=?),?,?,?,?)"
            " ON CONFLICT DO NOTHING RETURNING attempt",
            (key.operation_id, key.instance_id, key.allocation_id, key.step, *_step(key), phase, key.epoch,
             self._clock(), finished),
        )  # fmt: skip
        return found[0]["attempt"] if found else None

    def _close(self, key: Key, attempt: int, phase: str, detail: JsonObject) -> None:
        self._ask(
            "UPDATE steps SET phase=?, finished=?, detail=? "
            "WHERE operation_id=? AND allocation_id=? AND step=? AND attempt=?",
            (phase, self._clock(), json.dumps(detail), *_step(key), attempt),
        )


def _step(key: Key) -> tuple[str, str, str]:
    return key.operation_id, key.allocation_id, key.step
