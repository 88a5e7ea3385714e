"""Killed at every system call that writes or syncs a file of the SQLite store, by strace: nothing acknowledged is lost.

The request is a deploy; after its answer the log is folded into the store, so the calls of a checkpoint are among them.
Only on SQLite: PostgreSQL has processes of its own for its files.
"""

from pathlib import Path

import pytest

from core.tests.crash.test_crash_matrix import REQUESTS, asked_again
from core.tests.support import kill_points
from core.tests.support.fixtures import Store

pytestmark = [pytest.mark.sqlite_only, pytest.mark.slow]

WRITES = "pwrite64,pwritev,write,writev,ftruncate,fsync,fdatasync,msync,rename,unlink"


@pytest.mark.timeout(1800)
def test_killed_at_every_system_call_that_writes_nothing_acknowledged_is_lost(store: Store, tmp_path: Path) -> None:
    (tmp_path / "prepared").mkdir()
    what, place = kill_points.prepared(store, tmp_path / "prepared", REQUESTS[0]), tmp_path / "cell"
    before = kill_points.row_counts(what.fresh(place))
    kill_points.points(what, place)
    after, cells, acknowledged = kill_points.row_counts(place), 0, 0
    while True:
        here = what.fresh(place)
        paths = [word for name in ("core.db", "core.db-wal", "core.db-shm") for word in ("-P", str(here / name))]
        inject = f"inject={WRITES}:signal=KILL:when={cells + 1}"
        life = kill_points.live(what, here, trace=["-e", f"trace={WRITES}", "-e", inject, *paths])
        found = kill_points.row_counts(here)
        assert found in (before, after), f"half of a transaction after call {cells + 1}"
        assert life.answer is None or found == after, f"acknowledged and lost at call {cells + 1}"
        assert kill_points.violations(what, here) == [], f"call {cells + 1}"
        asked_again(what, here, f"call {cells + 1}", after, kept=found == after)
        if not life.killed:
            break
        cells, acknowledged = cells + 1, acknowledged + (life.answer is not None)
    assert cells > 20, "strace killed nothing: the test did not test"
    assert acknowledged, "no cell was after the answer: the checkpoint of the log was not reached"
    print(f"{cells} system calls, {acknowledged} of them after the answer")
