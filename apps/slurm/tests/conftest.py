"""Things the unit tests share: a plan, facts of a host, the places of a journal."""

import pytest
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan, make
from gpuaas_slurm.steps.catalog import Member

from apps.slurm.tests.support.journal_places import place, postgresql, shared
from apps.slurm.tests.support.slurm_examples import INSTANCE, PROJECT, member

__all__ = ["place", "postgresql", "shared"]


@pytest.fixture
def members() -> list[Member]:
    return [member("controller", 1), member("worker", 2)]


@pytest.fixture
def plan(members: list[Member]) -> Plan:
    inputs = {"partition": "main", "default_time_limit_minutes": 90, "gpu_type": "a100"}
    return make(INSTANCE, "training", inputs, members, PROJECT, "team-a")


@pytest.fixture
def facts() -> HostFacts:
    return HostFacts(
        hostname="gpu1",
        virt="systemd-nspawn",
        cpus=8,
        memory_mb=16000,
        gpus=("/dev/nvidia0", "/dev/nvidia1"),
        disk_kb={"/": 4_000_000},
    )
