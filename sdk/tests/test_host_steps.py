"""The step engine by itself, with a toy app: killed at every point it resumes, an older claim is rejected, undo works."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gpuaas_sdk.host_steps import failpoints
from gpuaas_sdk.host_steps.errors import StaleOnHost, StepFailed
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.step import Step, Task

from sdk.tests.support import toy_app
from sdk.tests.support.toy_app import ALLOCATION, OPERATION

POINTS = [(step, moment) for step in ("greet", "mark") for moment in failpoints.MOMENTS]


def start(tmp: Path, epoch: int, kind: str = "deploy", points: Path | None = None, kill_after: int = 0) -> int:
    """The toy app as a process of its own; its exit code."""
    argv = [sys.executable, toy_app.__file__, str(tmp / "journal.db"), str(tmp / "host"), str(epoch), kind]
    env = (
        dict(os.environ) | {"TOY_KILL_AFTER": str(kill_after)} | ({failpoints.VARIABLE: str(points)} if points else {})
    )
    return subprocess.run(argv, env=env, timeout=60, check=False).returncode


def files(tmp: Path) -> dict[str, str]:
    return {name: path.read_text() for name in ("greeting", "mark") if (path := tmp / "host" / name).exists()}


DONE = {"greeting": "hello\n", "mark": "x\n"}


@pytest.mark.parametrize(("step", "moment"), POINTS)
def test_killed_at_any_point_it_resumes_and_each_act_ran_once(tmp_path: Path, step: str, moment: str) -> None:
    points = tmp_path / "points"
    points.mkdir()
    (points / f"{step}.{moment}").write_text("die")
    assert start(tmp_path, 1, points=points) == -signal.SIGKILL
    assert start(tmp_path, 2, points=points) == 0
    assert files(tmp_path) == DONE
    rows = [row for row in Journal(tmp_path / "journal.db").rows(OPERATION) if row["step"] == step]
    assert [row["phase"] for row in rows] == ["acting", "verified" if moment == "before_act" else "probed"]
    assert [row["epoch"] for row in rows] == [1, 2]


@pytest.mark.parametrize(("kind", "commands"), [("deploy", 4), ("decommission", 3)])
def test_killed_after_each_command_on_the_host_it_ends_the_same(tmp_path: Path, kind: str, commands: int) -> None:
    """Take charge, survey, then the acts: one life per command, and a last one that finds everything done."""
    for number in range(1, commands + 1):
        fresh = tmp_path / str(number)
        fresh.mkdir()
        if kind == "decommission":
            assert start(fresh, 1) == 0
        assert start(fresh, 2, kind, kill_after=number) == -signal.SIGKILL, "there is such a command"
        assert start(fresh, 3, kind) == 0
        assert files(fresh) == (DONE if kind == "deploy" else {})
    assert start(fresh, 4, kind, kill_after=commands) == 0, "a finished host needs fewer commands"


def test_killed_at_every_point_one_after_the_other_it_still_ends_the_same(tmp_path: Path) -> None:
    points = tmp_path / "points"
    points.mkdir()
    for step, moment in POINTS:
        (points / f"{step}.{moment}").write_text("die")
    exits = [start(tmp_path, epoch, points=points) for epoch in range(1, 6)]
    assert exits.count(0) >= 1
    assert exits[-1] == 0
    assert files(tmp_path) == DONE


async def test_a_second_run_probes_and_changes_nothing(tmp_path: Path) -> None:
    journal, root = Journal(tmp_path / "journal.db"), tmp_path / "host"
    first = await toy_app.run(journal, root, 1)
    second = await toy_app.run(journal, root, 2)
    assert [row["acted"] for row in (*first.timeline, *second.timeline)] == [True, True, False, False]
    assert files(tmp_path) == DONE


async def test_an_older_claim_is_rejected_by_the_host_and_changes_nothing(tmp_path: Path) -> None:
    journal, root = Journal(tmp_path / "journal.db"), tmp_path / "host"
    await toy_app.run(journal, root, 2)
    before = {path: path.read_bytes() for path in (root / "lib").rglob("*") if path.is_file()}
    with pytest.raises(StaleOnHost):
        await toy_app.run(journal, root, 1, "decommission")
    assert files(tmp_path) == DONE
    assert {path: path.read_bytes() for path in (root / "lib").rglob("*") if path.is_file()} == before


async def test_undo_removes_what_the_steps_made_and_its_evidence_is_in_the_journal(tmp_path: Path) -> None:
    journal, root = Journal(tmp_path / "journal.db"), tmp_path / "host"
    await toy_app.run(journal, root, 1)
    await toy_app.run(journal, root, 2, "decommission")
    assert files(tmp_path) == {}
    (removed,) = [row for row in journal.rows(OPERATION) if row["step"] == "remove"]
    assert removed["detail"] == {"checks": ["files|yes|both files are deleted"]}
    assert {step.undo for step in toy_app.steps(root)} == {"remove"}


async def test_a_failed_step_has_the_apps_code_sentence_and_way_out(tmp_path: Path) -> None:
    root = tmp_path / "host"
    where, journal = toy_app.host(root, 1), Journal(tmp_path / "journal.db")
    _, mark = toy_app.steps(root)
    with pytest.raises(StepFailed) as failed:
        await run_steps(journal, Task(where, mark))
    assert (failed.value.code, failed.value.message) == ("no_greeting", "There is no greeting.")
    assert toy_app.FAILURES.way_out("no_greeting", OPERATION) == f"Write a greeting, then retry {OPERATION}."
    assert [row["phase"] for row in journal.rows(OPERATION)] == ["failed"]


async def test_an_act_whose_probe_does_not_hold_afterwards_is_a_failure(tmp_path: Path) -> None:
    where, journal = toy_app.host(tmp_path / "host", 1), Journal(tmp_path / "journal.db")
    idle = Step("idle", "Doing nothing", "working", probe="false", act="true", within=1)
    with pytest.raises(StepFailed, match="Doing nothing on local failed"):
        await run_steps(journal, Task(where, idle))


async def run_steps(journal: Journal, *tasks: Task) -> None:
    async def send(*_: object) -> None: ...

    async with toy_app.Reporter(send) as reporter:
        await toy_app.Runner(journal, reporter).run([tasks])


def test_the_host_keeps_its_own_journal_under_the_apps_name(tmp_path: Path) -> None:
    assert start(tmp_path, 1) == 0
    lines = (tmp_path / "host/lib/toy/journal.jsonl").read_text().splitlines()
    assert [line.split('"step":"')[1].split('"')[0] for line in lines] == ["greet", "mark"]
    assert ALLOCATION not in "".join(lines)
