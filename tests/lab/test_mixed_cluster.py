"""One worker beside the controller and one on a machine of its own, because the operator named that machine twice."""

from collections.abc import Iterator

import pytest
from gpuaas_sdk.client.errors import GpuaasError
from gpuaas_sdk.client.models import InstanceView

from tests.support.lab_stack import Ground

pytestmark = pytest.mark.lab
HEAD, APART = "gpu1", "gpu2"


@pytest.fixture(scope="module")
def mixed(ground: Ground) -> Iterator[InstanceView]:
    head, apart = (ground.allocations[host] for host in (HEAD, APART))
    made = ground.demo.boss.deploy(
        ground.research,
        name="mixed",
        app_slug="slurm",
        topology="multi_node",
        placement_intent={"controller": [head], "worker": [head, apart]},
        inputs={},
    )
    done = ground.ended(made.operation.id)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"
    yield ground.instance(made.instance.id)
    gone = ground.gone(ground.instance(made.instance.id))
    left = ground.demo.boss.list_departure_certificates(ground.research, operation_id=gone.id).items
    assert {one.statement.host.name for one in left} == {HEAD, APART}


def test_jobs_run_beside_the_controller_and_apart(ground: Ground, mixed: InstanceView) -> None:
    assert sorted(ground.as_user(HEAD, "srun", "-N2", "hostname").split()) == [HEAD, APART]
    assert ground.as_user(HEAD, "srun", "-N1", "--gres=gpu:1", "printenv", "CUDA_VISIBLE_DEVICES").strip() == "0"


def test_the_worker_beside_the_controller_is_drained_and_restarted_but_does_not_leave_alone(
    ground: Ground, mixed: InstanceView
) -> None:
    boss, project = ground.demo.boss, ground.research
    beside = next(m for m in mixed.members if m.component_key == "worker" and m.node_name == HEAD)
    assert ground.ended(boss.drain_member(project, mixed.id, beside.id).operation.id).status == "succeeded"
    assert ground.as_user(HEAD, "srun", "-N1", "hostname").split() == [APART]
    with pytest.raises(GpuaasError) as refused:
        boss.remove_member(project, mixed.id, beside.id)
    assert refused.value.code == "machine_shared"
    assert ground.ended(boss.undrain_member(project, mixed.id, beside.id).operation.id).status == "succeeded"
    assert ground.ended(boss.restart_member(project, mixed.id, beside.id).operation.id).status == "succeeded"
    assert sorted(ground.as_user(HEAD, "srun", "-N2", "hostname").split()) == [HEAD, APART]
