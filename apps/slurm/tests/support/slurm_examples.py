"""Ids and members the unit tests share."""

from gpuaas_slurm.steps.catalog import Member

INSTANCE = "inst_01k9zzzzzzzzzzzzzzzzzzzzzz"
PROJECT = "prj_01k9zzzzzzzzzzzzzzzzzzzzzz"


def member(
    key: str, number: int, *, ordinal: int = 0, allocation: str = "alloc_00000001", address: str = "10.88.0.11"
) -> Member:
    return Member(f"mem_0000000{number}", key, ordinal, allocation, "gpu1", address)
