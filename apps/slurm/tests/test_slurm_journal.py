"""The journal is written before the next thing happens, whatever kills the process, on a file and in a database."""

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from gpuaas_sdk.host_steps import failpoints
from gpuaas_sdk.host_steps.journal import Journal, Key, Setback

KEY = Key("op_00000001", "inst_00000001", "alloc_00000001", "database", 1)

KILLED = """
import os, signal, sys
from pathlib import Path
from gpuaas_sdk.host_steps.journal import Journal, Key
key = Key("op_00000001", "inst_00000001", "alloc_00000001", "database", 1)
journal = Journal(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1]))
attempt = journal.acting(key)
if sys.argv[2] == "after":
    journal.verified(key, attempt, {"seen": 1})
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(place: Path | str, moment: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(place), moment], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL


def test_an_act_that_was_cut_short_is_still_written_down(place: Path | str) -> None:
    killed(place, "before")
    (row,) = Journal(place).rows("op_00000001")
    assert (row["phase"], row["attempt"], row["finished"]) == ("acting", 1, None)


def test_a_verified_step_stays_verified(place: Path | str) -> None:
    killed(place, "after")
    journal = Journal(place)
    assert journal.rows("op_00000001")[0]["phase"] == "verified"
    assert journal.details(KEY) == [{"seen": 1}]


def test_every_kill_and_resume_is_a_new_attempt(place: Path | str) -> None:
    for _ in range(2):
        killed(place, "before")
    journal = Journal(place)
    assert journal.acting(KEY) == 3
    journal.failed(KEY, 3, {"code": "disk_full"})
    assert [row["phase"] for row in journal.rows("op_00000001")] == ["acting"] * 2 + ["failed"]


def test_patience_with_a_host_is_counted_across_restarts(place: Path | str) -> None:
    now = [100.0]
    assert Journal(place, clock=lambda: now[0]).wait("op_00000001", "alloc_00000001") == (0.0, 1)
    now[0] = 130.0
    journal = Journal(place, clock=lambda: now[0])
    assert journal.wait("op_00000001", "alloc_00000001") == (30.0, 2)
    journal.reached("op_00000001", "alloc_00000001")
    assert journal.wait("op_00000001", "alloc_00000001") == (0.0, 1)


def test_a_step_that_is_found_done_again_and_again_is_written_down_once(place: Path | str) -> None:
    journal = Journal(place)
    journal.acting(KEY)
    for _ in range(3):
        journal.probed(KEY)
    assert [row["phase"] for row in journal.rows("op_00000001")] == ["acting", "probed"]


def test_times_are_kept_to_the_millisecond(place: Path | str) -> None:
    journal = Journal(place, clock=lambda: 1_793_000_000.123)
    journal.probed(KEY)
    assert journal.rows("op_00000001")[0]["started"] == 1_793_000_000.123


def test_the_journal_keeps_the_newest_operations_and_does_not_grow_for_ever(place: Path | str) -> None:
    journal = Journal(place)
    for number in range(60):
        operation = f"op_{number:08d}"
        journal.acting(replace(KEY, operation_id=operation))
        journal.wait(operation, "alloc_00000001")
        journal.forget_old(keep=20)
    assert not journal.rows("op_00000039")
    assert len(journal.rows("op_00000040")) == 1
    assert journal.wait("op_00000039", "alloc_00000001")[1] == 1, "its patience is forgotten, too"
    assert journal.wait("op_00000059", "alloc_00000001")[1] == 2


def test_what_failed_on_a_host_is_told_once_per_operation_with_its_last_words(place: Path | str) -> None:
    journal = Journal(place)
    for words in ("first", "second \0 and last"):
        found = Setback("op_00000001", "alloc_00000001", "1.0", "step_failed", words, {"log": ["x\0y"]})
        journal.setback(found, keep_s=60)
    (kept,) = Journal(place).setbacks("1.0", within_s=60)
    assert (kept.message.split()[-1], kept.detail) == ("last", {"log": ["x\0y"]})


async def test_without_the_variable_a_failpoint_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(failpoints.VARIABLE, raising=False)
    await failpoints.reach("database", "before_act")


async def test_a_failpoint_holds_until_it_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, str(tmp_path))
    mark = tmp_path / "database.after_act"
    mark.touch()
    held = asyncio.create_task(failpoints.reach("database", "after_act"))
    async with asyncio.timeout(60):
        while mark.read_text() != "here":  # noqa: ASYNC110 - a file sends no event
            await asyncio.sleep(0.01)
    assert not held.done()
    mark.unlink()
    await asyncio.wait_for(held, 60)
