"""The journal is on disk before the next thing happens, whatever kills the process."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gpuaas_slurm import failpoints
from gpuaas_slurm.state.journal import Journal, Key

KEY = Key("op_00000001", "inst_00000001", "alloc_00000001", "database", 1)

KILLED = """
import os, signal, sys
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


async def test_without_the_variable_a_failpoint_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(failpoints.VARIABLE, raising=False)
    await failpoints.reach("database", "before_act")


async def test_a_failpoint_that_says_stay_holds_until_it_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, str(tmp_path))
    mark = tmp_path / "database.after_act"
    mark.write_text("stay")
    held = asyncio.create_task(failpoints.reach("database", "after_act"))
    await asyncio.sleep(0.2)
    assert (mark.read_text(), held.done()) == ("here", False)
    mark.unlink()
    await asyncio.wait_for(held, 5)


def test_a_failpoint_kills_once(tmp_path: Path) -> None:
    (tmp_path / "database.after_act").touch()
    code = (
        "import asyncio; from gpuaas_slurm.failpoints import reach\n"
        "asyncio.run(reach('database', 'before_act')); asyncio.run(reach('database', 'after_act'))"
    )
    env = {**os.environ, failpoints.VARIABLE: str(tmp_path)}
    runs = [subprocess.run([sys.executable, "-c", code], env=env, timeout=20, check=False).returncode for _ in range(2)]
    assert runs == [-signal.SIGKILL, 0]
