"""Fixtures of the core's tests live in support/, so that test files can import their types by name."""

import pytest
import structlog
from argon2 import PasswordHasher
from gpuaas_core.identity import passwords

from core.tests.support import postgres
from core.tests.support.audit_trail import here, trail
from core.tests.support.event_schemas import every_event_fits
from core.tests.support.fixtures import admin, api, clock, platform, refilled, store, store_folder, world
from core.tests.support.served import served

__all__ = [
    "admin",
    "api",
    "clock",
    "every_event_fits",
    "here",
    "platform",
    "refilled",
    "served",
    "store",
    "store_folder",
    "trail",
    "world",
]

_cluster = pytest.StashKey[postgres.Cluster]()


def pytest_configure(config: pytest.Config) -> None:
    """The session's own PostgreSQL, if it is asked for; the workers of a parallel run share it. Tests kill cores and
    connections, not the machine: nothing needs to reach its disk."""
    if postgres.CHOSEN and not hasattr(config, "workerinput"):
        postgres.remove_leftovers()
        config.stash[_cluster] = postgres.Cluster(flushed=False)
        config.stash[_cluster].start()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _cluster in config.stash:
        config.stash[_cluster].stop()


# Hashing that costs a thief years costs these tests minutes.
passwords._hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)  # pyright: ignore[reportPrivateUsage]
# As the core logs in production; structlog's default draws every local variable of every frame of an error.
structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()])
ON_POSTGRESQL_ONLY = ["kit/test_postgresql.py", "operations/test_claim_cost.py", "read_ahead/test_reads.py"]
collect_ignore = [] if postgres.CHOSEN else ON_POSTGRESQL_ONLY
