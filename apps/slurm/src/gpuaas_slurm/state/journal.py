"""The app's own journal of acts on hosts: SQLite, written before the next thing happens (survives kill -9).

Not forced to the disk each time (3 ms, twice per step and host): a power cut can lose the last rows, nothing else.

A row is written before an act (`acting`) and after its verification (`verified`). The host is the truth, so a resumed
process always probes; the journal tells how often something was tried, what was found and how long it took.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS steps (
  operation_id TEXT NOT NULL, instance_id TEXT NOT NULL, allocation_id TEXT NOT NULL, step TEXT NOT NULL,
  attempt INTEGER NOT NULL, phase TEXT NOT NULL CHECK (phase IN ('probed','acting','verified','failed')),
  epoch INTEGER NOT NULL, started REAL NOT NULL, finished REAL, detail TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY (operation_id, allocation_id, step, attempt)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS waits (
  operation_id TEXT NOT NULL, allocation_id TEXT NOT NULL, since REAL NOT NULL, times INTEGER NOT NULL,
  PRIMARY KEY (operation_id, allocation_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS setbacks (
  operation_id TEXT NOT NULL PRIMARY KEY, allocation_id TEXT NOT NULL, version TEXT NOT NULL, at REAL NOT NULL,
  code TEXT NOT NULL, message TEXT NOT NULL, detail TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS worked (version TEXT NOT NULL PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
"""
KEPT_OPERATIONS = 100


@dataclass(frozen=True)
class Key:
    """Which step, of which operation, on which allocation, under which claim."""

    operation_id: str
    instance_id: str
    allocation_id: str
    step: str
    epoch: int


@dataclass(frozen=True)
class Setback:
    """A host that could not be set up, with what was seen then."""

    operation_id: str
    allocation_id: str
    version: str
    code: str
    message: str
    detail: dict[str, Any]
    at: float = 0.0


class Journal:
    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=5000"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.executescript(SCHEMA)

    def acting(self, key: Key) -> int:
        """Opens a new attempt, written before the act starts."""
        attempt = self._last(key)[0] + 1
        self._insert(key, attempt, "acting", None, {})
        return attempt

    def probed(self, key: Key) -> None:
        """The step was found done; a row only if the last attempt does not say so already."""
        attempt, phase = self._last(key)
        if phase not in ("probed", "verified"):
            self._insert(key, attempt + 1, "probed", self._clock(), {})

    def verified(self, key: Key, attempt: int, detail: dict[str, Any] | None = None) -> None:
        self._close(key, attempt, "verified", detail or {})

    def failed(self, key: Key, attempt: int, detail: dict[str, Any]) -> None:
        self._close(key, attempt, "failed", detail)

    def rows(self, operation_id: str) -> list[dict[str, Any]]:
        found = self._db.execute("SELECT * FROM steps WHERE operation_id=? ORDER BY started, attempt", (operation_id,))
        return [{**dict(row), "detail": json.loads(row["detail"])} for row in found]

    def details(self, key: Key) -> list[dict[str, Any]]:
        """What the verified attempts of this step found, oldest first."""
        found = self._db.execute(
            "SELECT detail FROM steps WHERE operation_id=? AND allocation_id=? AND step=? AND phase='verified' "
            "ORDER BY attempt",
            (key.operation_id, key.allocation_id, key.step),
        )
        return [json.loads(row["detail"]) for row in found]

    def wait(self, operation_id: str, allocation_id: str) -> tuple[float, int]:
        """Counts one more failed try to reach a host; returns (seconds since the first, how many)."""
        now = self._clock()
        self._db.execute(
            "INSERT INTO waits VALUES (?,?,?,1) ON CONFLICT DO UPDATE SET times = times + 1",
            (operation_id, allocation_id, now),
        )
        row = self._db.execute(
            "SELECT since, times FROM waits WHERE operation_id=? AND allocation_id=?", (operation_id, allocation_id)
        ).fetchone()
        return now - row["since"], row["times"]

    def reached(self, operation_id: str, allocation_id: str) -> None:
        self._db.execute("DELETE FROM waits WHERE operation_id=? AND allocation_id=?", (operation_id, allocation_id))

    def setback(self, found: Setback, keep_s: float) -> None:
        """Setting up a host failed. Rows older than `keep_s` are dropped."""
        self._db.execute("DELETE FROM setbacks WHERE at < ?", (self._clock() - keep_s,))
        self._db.execute(
            "INSERT OR REPLACE INTO setbacks VALUES (?,?,?,?,?,?,?)",
            (found.operation_id, found.allocation_id, found.version, self._clock(), found.code, found.message,
             json.dumps(found.detail)),
        )  # fmt: skip

    def setbacks(self, version: str, within_s: float) -> list[Setback]:
        """Of this version, oldest first; hosts on which it has worked since have none."""
        found = self._db.execute(
            "SELECT * FROM setbacks WHERE version=? AND at>=? ORDER BY at", (version, self._clock() - within_s)
        )
        return [Setback(**{**dict(row), "detail": json.loads(row["detail"])}) for row in found]

    def set_up(self, version: str, allocations: Iterable[str]) -> None:
        """It worked on these."""
        self._db.executemany("DELETE FROM setbacks WHERE allocation_id=?", [(one,) for one in allocations])
        self._db.execute("INSERT OR REPLACE INTO worked VALUES (?,?)", (version, self._clock()))

    def worked_at(self, version: str) -> float:
        row = self._db.execute("SELECT at FROM worked WHERE version=?", (version,)).fetchone()
        return row["at"] if row else 0.0

    def now(self) -> float:
        return self._clock()

    def forget_old(self, keep: int = KEPT_OPERATIONS) -> None:
        """Only the newest operations stay (their ids are ordered by time), so that the file does not grow for ever."""
        newest = "SELECT DISTINCT operation_id FROM steps ORDER BY operation_id DESC LIMIT 1 OFFSET ?"
        row = self._db.execute(newest, (keep,)).fetchone()
        if row is not None:
            self._db.execute("DELETE FROM steps WHERE operation_id <= ?", tuple(row))
            self._db.execute("DELETE FROM waits WHERE operation_id <= ?", tuple(row))

    def close(self) -> None:
        self._db.close()

    def _last(self, key: Key) -> tuple[int, str]:
        row = self._db.execute(
            "SELECT attempt, phase FROM steps WHERE operation_id=? AND allocation_id=? AND step=?"
            " ORDER BY attempt DESC LIMIT 1",
            (key.operation_id, key.allocation_id, key.step),
        ).fetchone()
        return (row["attempt"], row["phase"]) if row else (0, "")

    def _insert(self, key: Key, attempt: int, phase: str, finished: float | None, detail: dict[str, Any]) -> None:
        self._db.execute(
            "INSERT INTO steps (operation_id, instance_id, allocation_id, step, attempt, phase, epoch, started,"
            " finished, detail) VALUES (?,?,?,?,?,?,?,?,?,?)",
            (key.operation_id, key.instance_id, key.allocation_id, key.step, attempt, phase, key.epoch,
             self._clock(), finished, json.dumps(detail)),
        )  # fmt: skip

    def _close(self, key: Key, attempt: int, phase: str, detail: dict[str, Any]) -> None:
        self._db.execute(
            "UPDATE steps SET phase=?, finished=?, detail=? "
            "WHERE operation_id=? AND allocation_id=? AND step=? AND attempt=?",
            (phase, self._clock(), json.dumps(detail), key.operation_id, key.allocation_id, key.step, attempt),
        )
