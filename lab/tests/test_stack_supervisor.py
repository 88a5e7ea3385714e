"""The small supervisor, with real processes: what is wanted runs, what dies comes back, what is not wanted goes."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gpuaas_lab.processes import Process
from gpuaas_lab.stack import supervisor
from gpuaas_lab.stack.services import Folder, Service

FOREVER = [sys.executable, "-c", "import time; print('hello', flush=True); time.sleep(600)"]


def eventually(holds: Callable[[], object], what: str, timeout: float = 90) -> None:
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / "run")
    supervisor.start(made)
    yield made
    supervisor.stop(made)


def running(folder: Folder, name: str) -> Process:
    eventually(lambda: folder.process(name), f"{name} runs")
    process = folder.process(name)
    assert process
    return process


def test_what_is_wanted_runs_and_writes_its_log(folder: Folder) -> None:
    folder.want(Service("one", FOREVER))
    running(folder, "one")
    eventually(lambda: "hello" in folder.log("one").read_text(), "the log has its line")


def test_what_was_killed_is_started_again(folder: Folder) -> None:
    folder.want(Service("one", FOREVER))
    first = running(folder, "one")
    os.kill(first.pid, signal.SIGKILL)
    eventually(lambda: folder.process("one") not in (None, first), "a new process")


def test_what_is_no_longer_wanted_is_stopped(folder: Folder) -> None:
    folder.want(Service("one", FOREVER))
    first = running(folder, "one")
    folder.unwant("one")
    assert first.wait_gone(15)


def test_a_changed_service_is_restarted(folder: Folder) -> None:
    folder.want(Service("one", FOREVER))
    first = running(folder, "one")
    folder.want(Service("one", FOREVER, {"COLOUR": "green"}))
    eventually(lambda: folder.process("one") not in (None, first), "a new process")
    second = running(folder, "one")
    assert b"COLOUR=green" in Path(f"/proc/{second.pid}/environ").read_bytes()


def test_a_second_start_leaves_the_first_supervisor_alone(folder: Folder) -> None:
    before = folder.process(supervisor.NAME)
    supervisor.start(folder)
    assert folder.process(supervisor.NAME) == before


def test_stop_ends_everything(tmp_path: Path) -> None:
    made = Folder(tmp_path / "run")
    supervisor.start(made)
    made.want(Service("one", FOREVER))
    child = running(made, "one")
    supervisor.stop(made)
    assert child.wait_gone(5)
    assert made.noted() == []


def test_children_die_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    made = Folder(tmp_path / "run")
    supervisor.start(made)
    made.want(Service("one", FOREVER))
    child = running(made, "one")
    boss = made.process(supervisor.NAME)
    assert boss
    boss.kill()
    assert child.wait_gone(10)
    supervisor.stop(made)
