"""The journal is on disk before the next thing happens, whatever kills the process."""

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from gpuaas_slurm import failpoints
from gpuaas_slurm.state.journal import Journal, Key

KEY = Key("op_00000001", "inst_00000001", "alloc_00000001", "database", 1)

KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from gpuaas_slurm.state.journal import Journal, Key
key = Key("op_00000001", "inst_00000001", "alloc_00000001", "database", 1)
journal = Journal(Path(sys.argv[1]))
attempt = journal.acting(key)
if sys.argv[2] == "after":
    journal.verified(key, attempt, {"seen": 1})
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(path: Path, moment: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), moment], timeout=20, check=False)
    assert done.returncode == -signal.SIGKILL


def test_an_act_that_was_cut_short_is_still_written_down(tmp_path: Path) -> None:
    killed(tmp_path / "journal.db", "before")
    (row,) = Journal(tmp_path / "journal.db").rows("op_00000001")
    assert (row["phase"], row["attempt"], row["finished"]) == ("acting", 1, None)


def test_a_verified_step_stays_verified(tmp_path: Path) -> None:
    killed(tmp_path / "journal.db", "after")
    journal = Journal(tmp_path / "journal.db")
    assert journal.rows("op_00000001")[0]["phase"] == "verified"
    assert journal.details(KEY) == [{"seen": 1}]


def test_every_kill_and_resume_is_a_new_attempt(tmp_path: Path) -> None:
    for _ in range(3):
        killed(tmp_path / "journal.db", "before")
    journal = Journal(tmp_path / "journal.db")
    assert journal.acting(KEY) == 4
    journal.failed(KEY, 4, {"code": "disk_full"})
    assert [row["phase"] for row in journal.rows("op_00000001")] == ["acting"] * 3 + ["failed"]


def test_patience_with_a_host_is_counted_across_restarts(tmp_path: Path) -> None:
    now = [100.0]
    assert Journal(tmp_path / "j.db", clock=lambda: now[0]).wait("op_00000001", "alloc_00000001") == (0.0, 1)
    now[0] = 130.0
    journal = Journal(tmp_path / "j.db", clock=lambda: now[0])
    assert journal.wait("op_00000001", "alloc_00000001") == (30.0, 2)
    journal.reached("op_00000001", "alloc_00000001")
    assert journal.wait("op_00000001", "alloc_00000001") == (0.0, 1)


def test_a_step_that_is_found_done_again_and_again_is_written_down_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.acting(KEY)
    for _ in range(3):
        journal.probed(KEY)
    assert [row["phase"] for row in journal.rows("op_00000001")] == ["acting", "probed"]


def test_the_journal_keeps_the_newest_operations_and_does_not_grow_for_ever(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    for number in range(250):
        operation = f"op_{number:08d}"
        journal.acting(replace(KEY, operation_id=operation))
        journal.wait(operation, "alloc_00000001")
        journal.forget_old(keep=100)
    assert not journal.rows("op_00000149")
    assert len(journal.rows("op_00000150")) == 1
    assert journal.wait("op_00000149", "alloc_00000001")[1] == 1, "its patience is forgotten, too"
    assert journal.wait("op_00000249", "alloc_00000001")[1] == 2


async def test_without_the_variable_a_failpoint_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(failpoints.VARIABLE, raising=False)
    await failpoints.reach("database", "before_act")


async def test_a_failpoint_holds_until_it_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, str(tmp_path))
    mark = tmp_path / "database.after_act"
    mark.touch()
    held = asyncio.create_task(failpoints.reach("database", "after_act"))
    await asyncio.sleep(0.2)
    assert (mark.read_text(), held.done()) == ("here", False)
    mark.unlink()
    await asyncio.wait_for(held, 5)
