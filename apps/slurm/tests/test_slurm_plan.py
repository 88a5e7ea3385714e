"""The plan follows from members and inputs, and refuses what it cannot build."""

import pytest
from gpuaas_sdk.host_steps.validate import BadWord
from gpuaas_slurm.errors import BadPlan
from gpuaas_slurm.plan import Plan, account_for, make
from gpuaas_slurm.steps.catalog import Member

from apps.slurm.tests.support.slurm_examples import INSTANCE, PROJECT, member


def test_controller_and_worker_may_share_an_allocation(plan: Plan) -> None:
    assert plan.allocations == ("alloc_00000001",)
    assert plan.workers_on("alloc_00000001") == plan.workers


def test_several_hosts_make_the_same_kind_of_plan() -> None:
    spread = [
        member("worker", 3, ordinal=1, allocation="alloc_00000003"),
        member("controller", 1),
        member("worker", 2, allocation="alloc_00000002"),
    ]
    made = make(INSTANCE, "training", {}, spread, PROJECT)
    assert made.allocations == ("alloc_00000001", "alloc_00000002", "alloc_00000003")
    assert [w.ordinal for w in made.workers] == [0, 1]


def test_every_worker_has_a_name_of_its_own() -> None:
    workers = [member("worker", n, ordinal=0) for n in (2, 3, 4)]
    made = make(INSTANCE, "x1", {}, [member("controller", 1), *workers], PROJECT)
    assert len({w.node for w in made.workers}) == 3


def test_names_left_out_follow_the_instance_and_the_project(plan: Plan) -> None:
    assert (plan.cluster, plan.account, plan.partition, plan.partitions[0].minutes) == (
        "training",
        "team-a",
        "main",
        90,
    )


def test_a_project_without_a_usable_slug_gets_an_account_from_its_id() -> None:
    assert account_for(PROJECT, None) == account_for(PROJECT, "!!") == "prj-zzzzzzzzzz"
    assert account_for(PROJECT, "root") == "prj-zzzzzzzzzz"


@pytest.mark.parametrize(
    "inputs",
    [
        {"partition": "main\nPartitionName=x"}, {"cluster_name": "a;b"}, {"gpu_type": "a100:8"}, {"default_time_limit_minutes": "1"},
        {"surprise": 1},
    ],
)  # fmt: skip
def test_bad_inputs_never_become_a_plan(inputs: dict[str, object], members: list[Member]) -> None:
    with pytest.raises(BadWord):
        make(INSTANCE, "training", inputs, members, PROJECT)


@pytest.mark.parametrize("keys", [[], ["worker"], ["controller"], ["controller", "controller", "worker"]])
def test_a_cluster_needs_one_controller_and_a_worker(keys: list[str]) -> None:
    with pytest.raises(BadPlan):
        make(INSTANCE, "training", {}, [member(k, n) for n, k in enumerate(keys)], PROJECT)


def test_a_member_without_a_machine_is_not_placed() -> None:
    with pytest.raises(BadPlan, match="no machine"):
        make(INSTANCE, "training", {}, [member("controller", 1, address=""), member("worker", 2)], PROJECT)
