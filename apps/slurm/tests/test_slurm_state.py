"""The controller's own state: shared by several, gone for a while, hanging, or lost in the middle of a step."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpuaas_lab.postgres import Cluster
from gpuaas_sdk import Again, Done, Failed, Work
from gpuaas_sdk.client.errors import MachineUnreachable
from gpuaas_sdk.host_steps import failpoints, journal_copy, store
from gpuaas_sdk.host_steps import postgres_store as database
from gpuaas_sdk.host_steps.journal import TABLES, Journal, Key, Setback
from gpuaas_sdk.host_steps.outcomes import translate_errors
from gpuaas_slurm.reconcile.context import Tools

from apps.slurm.tests.support import two_steps

KEY = Key("op_00000001", "inst_00000001", "alloc_00000001", "database", 1)
PROGRAM = Path(sys.executable).parent / "gpuaas-slurm"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 1.0)
    monkeypatch.setattr(database, "REST_S", 0.3)


@pytest.fixture
def halted(postgresql: Cluster, hasty: None) -> Iterator[Cluster]:
    """Serves again afterwards, for the others."""
    yield postgresql
    if postgresql.process is None:
        postgresql.serve()


def lives(where: Path | str, root: Path, epoch: int) -> int:
    argv = [sys.executable, two_steps.__file__, str(where), str(root), str(epoch)]
    return subprocess.run(argv, timeout=60, check=False).returncode


@pytest.mark.parametrize(
    ("moment", "phases"), [("before_act", ["acting", "verified"]), ("after_act", ["acting", "probed"])]
)
def test_a_controller_killed_in_a_step_goes_on_where_the_host_is(
    place: Path | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, phases: list[str]
) -> None:
    points, root = tmp_path / "points", tmp_path / "host"
    points.mkdir()
    (points / f"service.{moment}").write_text("die")
    monkeypatch.setenv(failpoints.VARIABLE, str(points))
    assert lives(place, root, 1) == -signal.SIGKILL
    assert lives(place, root, 2) == 0
    assert [(root / name).read_text() for name in two_steps.NAMES] == ["x\n", "x\n"], "each was done once"
    rows = [row for row in Journal(place).rows(two_steps.OPERATION) if row["step"] == "service"]
    assert [row["phase"] for row in rows] == phases
    assert [row["epoch"] for row in rows] == [1, 2]


async def test_nothing_is_done_on_a_host_whose_step_cannot_be_written_down_first(
    halted: Cluster, shared: str, tmp_path: Path
) -> None:
    journal = Journal(shared)
    halted.halt()
    with pytest.raises(store.StateAway):
        await two_steps.run_with(journal, tmp_path / "second", 1)
    assert not [path for path in (tmp_path / "second").iterdir() if path.name in two_steps.NAMES]
    halted.serve()
    await asyncio.sleep(0.4)
    await two_steps.run_with(journal, tmp_path / "second", 1)
    assert {path.name for path in (tmp_path / "second").iterdir()} >= set(two_steps.NAMES)


async def test_a_database_that_is_away_is_waited_for_then_told_and_a_retry_works_when_it_is_back(
    halted: Cluster, shared: str
) -> None:
    tools = Tools(Journal(shared), patience_s=60)

    async def body() -> Any:
        tools.journal.acting(KEY)
        return Done("written down, then done")

    halted.halt()
    waiting = await translate_errors(work(), tools, body)
    assert isinstance(waiting, Again)
    assert "own state (PostgreSQL postgres at" in waiting.why
    tools.patience_s = 0.0
    failed = await translate_errors(work(), tools, body)
    assert isinstance(failed, Failed)
    assert (failed.code, failed.retryable) == ("state_unavailable", True)
    assert "operation retry op_00000001" in failed.way_out
    halted.serve()
    await asyncio.sleep(0.4)
    assert isinstance(await translate_errors(work(), tools, body), Done), "the connection is made again by itself"


async def test_trouble_with_a_host_and_with_the_state_at_once_is_told_as_well(halted: Cluster, shared: str) -> None:
    tools = Tools(Journal(shared), patience_s=0.0)

    async def body() -> Any:
        halted.halt()
        raise MachineUnreachable("gpu1 cannot be reached.")

    failed = await translate_errors(work(), tools, body)
    assert isinstance(failed, Failed)
    assert failed.code == "state_unavailable"


def work() -> Work:
    member = SimpleNamespace(id="mem_00000001", allocation_id="alloc_00000001", node_name="gpu1")
    operation = SimpleNamespace(id="op_00000001", kind="add_member", member_id=member.id, params={}, correlation_id="c")
    return cast(Work, SimpleNamespace(operation=operation, members=lambda: [member]))


def test_a_database_that_hangs_blocks_no_reader_for_long(hasty: None, shared: str) -> None:
    journal = Journal(shared)
    (server,) = journal._store.execute("SELECT pg_backend_pid() AS pid")
    os.kill(server["pid"], signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(store.StateAway, match="no answer within"):
            journal.acting(KEY)
        waited = time.monotonic() - started
        with pytest.raises(store.StateAway, match="no answer within"):
            journal.acting(KEY)
        assert time.monotonic() - started - waited < database.PATIENCE_S, "a statement right after is refused at once"
    finally:
        os.kill(server["pid"], signal.SIGCONT)
    time.sleep(0.4)
    assert journal.acting(KEY) >= 1
    assert journal.away_for() == 0


def test_controllers_that_start_at_once_share_one_set_of_tables_and_no_attempt(shared: str) -> None:
    with ThreadPoolExecutor(6) as crowd:
        journals = list(crowd.map(lambda _: Journal(shared), range(6)))
        attempts = list(crowd.map(lambda one: one.acting(KEY), journals))
    assert sorted(attempts) == [1, 2, 3, 4, 5, 6]


def test_what_failed_for_one_controller_is_known_to_the_other(shared: str) -> None:
    here, there = Journal(shared), Journal(shared)
    here.setback(Setback("op_00000001", "alloc_00000001", "1.0", "step_failed", "it broke", {}), keep_s=60)
    assert [one.message for one in there.setbacks("1.0", within_s=60)] == ["it broke"]
    there.set_up("1.0", ["alloc_00000001"])
    assert not here.setbacks("1.0", within_s=60)
    assert here.worked_at("1.0") > 0


def test_a_file_that_cannot_be_used_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_text("no database at all, but long enough to be looked at " * 40)
    with pytest.raises(store.StateAway, match=r"journal\.db\) cannot be used: file is not a database"):
        Journal(tmp_path / "journal.db")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("postgresql://ann:hush-hush@127.0.0.1:1/journal", "PostgreSQL journal at 127.0.0.1"),
        ("postgresql://ann:hush-hush@/journal?nonsense=1", "its address cannot be read"),
        ("mysql://ann:hush-hush@db/journal", "a folder or an address that begins with postgresql://"),
    ],
)
def test_a_place_that_is_none_is_refused_without_its_password(output: str, words: str) -> None:
    with pytest.raises(store.StateAway) as refused:
        Journal(store.place(output))
    assert words in str(refused.value)
    assert "hush-hush" not in str(refused.value)


def test_a_controller_does_not_start_without_its_state_and_says_so(tmp_path: Path) -> None:
    identity = tmp_path / "identity.json"
    identity.write_text("{}")
    argv = [str(PROGRAM), "run", "--identity", str(identity)]
    env = os.environ | {"GPUAAS_SLURM_STATE": "postgresql://ann:hush-hush@127.0.0.1:1/journal"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no operation was taken up" in done.stderr
    assert "Traceback" not in done.stderr
    assert "hush-hush" not in done.stderr + done.stdout


def test_a_folder_is_the_usual_place(tmp_path: Path) -> None:
    assert store.place(str(tmp_path)) == tmp_path / "journal.db"


def remembering(where: Path | str) -> Journal:
    journal = Journal(where)
    journal.verified(KEY, journal.acting(KEY), {"found": "Zażółć \0"})
    journal.wait("op_00000002", "alloc_00000002")
    journal.setback(Setback("op_00000003", "alloc_00000003", "0.3.0", "disk_full", "full", {"a": 1}), 3600)
    journal.set_up("0.2.0", ["alloc_00000001"])
    return journal


def everything(where: Path | str) -> dict[str, Any]:
    held = store.open_store(where, TABLES)
    try:
        return {name: held.execute(f"SELECT * FROM {name}") for name in journal_copy.NAMES}
    finally:
        held.close()


def test_what_is_remembered_goes_to_a_database_and_back_again(shared: str, tmp_path: Path) -> None:
    remembering(tmp_path / "first" / "journal.db").close()
    before = everything(tmp_path / "first" / "journal.db")
    assert all(before.values())
    for _again in range(2):
        assert "1 steps, 1 waits for hosts" in journal_copy.copy(str(tmp_path / "first"), shared)
        assert everything(shared) == before
    journal_copy.copy(shared, str(tmp_path / "second"))
    assert everything(tmp_path / "second" / "journal.db") == before
    assert Journal(tmp_path / "first" / "journal.db").rows(KEY.operation_id), "the old place works as before"


def test_state_that_a_controller_uses_is_not_copied(place: Path | str, tmp_path: Path) -> None:
    journal, output = remembering(place), str(place.parent if isinstance(place, Path) else place)
    for old, new in ((output, str(tmp_path / "new")), (str(tmp_path / "old"), output)):
        Journal(tmp_path / "old" / "journal.db").close()
        with pytest.raises(journal_copy.NotCopied, match="is in use"):
            journal_copy.copy(old, new)
    journal.close()
    assert journal_copy.copy(output, str(tmp_path / "new"))


def test_two_journals_are_not_merged_and_a_missing_one_is_named(tmp_path: Path) -> None:
    remembering(tmp_path / "a" / "journal.db").close()
    remembering(tmp_path / "b" / "journal.db").close()
    done = subprocess.run(
        [PROGRAM, "state", "copy", tmp_path / "a", tmp_path / "b"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "two journals are not merged" in done.stderr
    with pytest.raises(journal_copy.NotCopied, match="no journal"):
        journal_copy.copy(str(tmp_path / "typo"), str(tmp_path / "c"))
    assert not (tmp_path / "typo").exists()


def test_the_journal_is_readable_by_its_own_user_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0o022)
    try:
        for _ in ("a new journal", "one that others could read"):
            journal = store.open_store(tmp_path / "journal.db", TABLES)
            journal.execute("PRAGMA user_version=1")
            modes = {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()}
            assert modes == dict.fromkeys(("journal.db", "journal.db-wal", "journal.db-shm"), "0o600")
            journal.close()
            (tmp_path / "journal.db").chmod(0o644)
        deeper = store.open_store(tmp_path / "new" / "journal.db", TABLES)
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        deeper.close()
    finally:
        os.umask(before)
