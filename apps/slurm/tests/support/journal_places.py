"""A fresh journal in every place it can have: `place` runs each test of a file on SQLite and on PostgreSQL.

One private PostgreSQL per session; the tables are emptied before each test.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from gpuaas_lab.postgres import Cluster, remove_leftovers


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    remove_leftovers()
    cluster = Cluster(flushed=False)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def shared(postgresql: Cluster) -> str:
    """The address of an empty database."""
    with psycopg.connect(postgresql.address(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS steps, waits, setbacks, worked")
    return postgresql.address()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    return tmp_path / "journal.db" if request.param == "sqlite" else request.getfixturevalue("shared")
