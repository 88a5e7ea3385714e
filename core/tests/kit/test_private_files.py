"""What the core keeps is readable by its own user alone, wherever it is told to keep it."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_core.kit.db import Database
from gpuaas_core.migrations.migrate import migrate
from sqlalchemy import text

from core.tests.support import postgres
from core.tests.support.fixtures import Store
from core.tests.support.served import PROGRAM, serving

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """As a shell has it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_new_store_is_private_in_a_folder_that_others_can_read(open_folder: Path) -> None:
    migrate(f"sqlite:///{open_folder}/core.db")
    db = Database(f"sqlite:///{open_folder}/core.db")
    db.write_now(lambda tx: tx.execute(text("update store_facts set name = name")))
    found = {file.name: mode(file) for file in open_folder.iterdir()}
    db.close()
    assert found == {"core.db": 0o600, "core.db-wal": 0o600, "core.db-shm": 0o600}


def test_a_store_that_others_could_read_is_private_from_the_next_start_on(open_folder: Path) -> None:
    url = f"sqlite:///{open_folder}/core.db"
    migrate(url)
    first = Database(url)
    first.write_now(lambda tx: tx.execute(text("update store_facts set name = name")))
    for file in open_folder.iterdir():
        file.chmod(0o644)
    second = Database(url)
    second.write_now(lambda tx: tx.execute(text("update store_facts set name = name")))
    found = {file.name: mode(file) for file in open_folder.iterdir()}
    second.close()
    first.close()
    assert found == {"core.db": 0o600, "core.db-wal": 0o600, "core.db-shm": 0o600}


def test_a_served_core_leaves_no_file_that_others_can_read(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    with serving(store, folder):
        own = [path for path in folder.rglob("*") if path.is_file() and path.name != "core.log"]  # the test's own log
        if not postgres.CHOSEN:
            assert {"core.db", "core.db-wal", "core.db-shm"} <= {path.name for path in own}
        found = {str(path.relative_to(folder)): oct(mode(path)) for path in own if mode(path) & OTHERS}
    assert not found


def test_a_command_of_the_operator_writes_private_files_too(open_folder: Path) -> None:
    settings = {"GPUAAS_CORE_DATA": str(open_folder), "GPUAAS_CORE_DATABASE": f"sqlite:///{open_folder}/core.db"}
    command = [str(PROGRAM), "admin", "admin@example.com", "--password-stdin"]
    password = "correct horse battery"
    subprocess.run(command, env=os.environ | settings, input=password, text=True, timeout=120, check=True)
    assert {file.name for file in open_folder.iterdir() if mode(file) & OTHERS} == set()
