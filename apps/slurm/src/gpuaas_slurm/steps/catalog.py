"""The names of all steps in order, for `gpuaas-slurm steps` and for tests that kill the controller at each step.

The order does not depend on the plan, so the names are read from the stages of an example plan.
"""

from dataclasses import dataclass
from typing import Any

from gpuaas_sdk.host_steps.host import Claim, Host, MachineLike, ResultLike
from gpuaas_sdk.host_steps.step import Stage, Task

from gpuaas_slurm import plan
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.profile import PROFILE
from gpuaas_slurm.steps import deploy, keys, packages, teardown


@dataclass(frozen=True)
class Member:
    id: str
    component_key: str
    ordinal: int = 0
    allocation_id: str = "alloc_00000001"
    node_name: str = "gpu1"
    address: str = "10.88.0.11"
    facts: Any = None


class NoMachine(MachineLike):
    async def run(self, argv: list[str], *, input: bytes | str | None = None, timeout: float = 60) -> ResultLike:  # noqa: ASYNC109
        raise NotImplementedError("an example has no machine")


def example_plan() -> plan.Plan:
    members = [Member("mem_00000001", "controller"), Member("mem_00000002", "worker")]
    return plan.make("inst_00000001", "example", {}, members, "prj_00000001", "team-a")


def example_host() -> Host:
    return Host(NoMachine(), Claim("inst_00000001", "op_00000001", 1), "alloc_00000001", "gpu1", "10.88.0.11", PROFILE)


def listing() -> dict[str, list[dict[str, Any]]]:
    host, facts = example_host(), HostFacts(hostname="gpu1", gpus=("/dev/nvidia0",))
    made: list[Stage] = [(Task(host, packages.install("0" * 64)),)]
    made += deploy.stages(example_plan(), {host.allocation_id: host}, {host.allocation_id: facts})
    rotation: list[Stage] = [(Task(host, keys.make()),), *keys.stages(host, [host], keys.NewKey(b"an example"))]
    return {
        "deploy": _rows(made),
        "rotate_keys": _rows(rotation),
        "decommission": _rows(teardown.stages([host])),
    }


def _rows(stages: list[Stage]) -> list[dict[str, Any]]:
    turns = [
        [task for task in stage if task.turn == turn] for stage in stages for turn in sorted({t.turn for t in stage})
    ]
    return [
        {
            "stage": number,
            "name": task.step.name,
            "title": task.step.title,
            "undo": task.step.undo or None,
            "when": task.step.when or None,
        }
        for number, together in enumerate(turns, 1)
        for task in together
    ]
