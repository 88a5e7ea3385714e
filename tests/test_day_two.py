"""A cluster with workers of their own, through the public API only: it grows, empties, shrinks, rests and comes back."""

import time
from collections.abc import Iterator

import pytest
from gpuaas_sdk.errors import GpuaasError
from gpuaas_sdk.models import InstanceView, MemberView, OperationView
from ground import Ground, wait_until

pytestmark = pytest.mark.lab
HEAD, FIRST, SECOND, THIRD = "gpu1", "gpu2", "gpu4", "gpu5"


@pytest.fixture(scope="module")
def cluster(ground: Ground) -> Iterator[InstanceView]:
    made = ground.demo.boss.deploy(
        ground.research,
        name="day-two",
        app_slug="slurm",
        topology="multi_node",
        placement_intent={"controller": [ground.allocations[HEAD]], "worker": [ground.allocations[FIRST]]},
        inputs={"gpu_type": "a100"},
    )
    good(ground, made.operation)
    yield ground.instance(made.instance.id)
    gone = ground.gone(ground.instance(made.instance.id))
    assert all(check["ok"] for host in gone.evidence.values() for check in host["checks"])


def good(ground: Ground, operation: OperationView) -> OperationView:
    done = ground.ended(operation.id)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"
    return done


def worker(ground: Ground, cluster: InstanceView, host: str) -> MemberView:
    living = [m for m in ground.instance(cluster.id).members if m.state != "removed"]
    return next(m for m in living if m.component_key == "worker" and m.node_name == host)


def srun(ground: Ground, *words: str) -> list[str]:
    return sorted(ground.as_user(HEAD, "srun", *words).split())


def nodes(ground: Ground) -> dict[str, str]:
    text = ground.on_host(HEAD, "sinfo", "-h", "-N", "-o", "%N=%t")
    return dict(line.split("=") for line in text.split())


def add(ground: Ground, cluster: InstanceView, *hosts: str) -> None:
    wanted = [ground.allocations[host] for host in hosts]
    batch = ground.demo.boss.add_members(ground.research, cluster.id, component_key="worker", allocation_ids=wanted)
    for accepted in batch.operations:
        good(ground, accepted)


def test_the_first_job_runs_on_the_worker_apart_from_the_controller(ground: Ground, cluster: InstanceView) -> None:
    assert srun(ground, "hostname") == [FIRST]
    assert srun(ground, "--gres=gpu:a100:1", "printenv", "CUDA_VISIBLE_DEVICES") == ["0"]
    assert ground.lab.exec(HEAD, ["pgrep", "-x", "slurmd"], timeout=20).exit != 0, "the controller's host runs no jobs"


def test_two_workers_are_added_at_once_and_the_scheduler_is_not_restarted(
    ground: Ground, cluster: InstanceView
) -> None:
    before = ground.on_host(HEAD, "systemctl", "show", "-P", "MainPID", "slurmctld")
    add(ground, cluster, SECOND, THIRD)
    assert srun(ground, "-N3", "hostname") == [FIRST, SECOND, THIRD]
    assert ground.on_host(HEAD, "systemctl", "show", "-P", "MainPID", "slurmctld") == before
    assert set(nodes(ground).values()) == {"idle"}


def test_a_drain_waits_for_the_job_and_says_whose_it_is(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, SECOND)
    name = next(n for n in nodes(ground) if n.endswith(member.id[-8:]))
    job = ground.as_user(HEAD, "sbatch", "--parsable", "-w", name, "--output", "/dev/null", "--wrap", "sleep 6").strip()
    wait_until(lambda: nodes(ground)[name] in ("mix", "alloc"), 20, "the job to run")
    accepted = ground.demo.boss.drain_member(ground.research, cluster.id, member.id, reason="a new disk")
    wait_until(
        lambda: f"job {job} of gpuaas" in (ground.operation(accepted.operation.id).progress.message or ""),
        20,
        "the drain to say what it waits for",
    )
    assert "gpuaas:" in ground.on_host(HEAD, "sinfo", "-h", "-n", name, "-o", "%E")
    done = good(ground, accepted.operation)
    assert done.status == "succeeded"
    state = ground.on_host(HEAD, "sacct", "-X", "-n", "-P", "-j", job, "-o", "State").strip()
    assert state == "COMPLETED", "the job was not hurt"
    assert worker(ground, cluster, SECOND).state == "drained"


def test_a_drained_worker_is_given_back(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, SECOND)
    good(ground, ground.demo.boss.undrain_member(ground.research, cluster.id, member.id).operation)
    assert worker(ground, cluster, SECOND).state == "ready"
    assert srun(ground, "-N3", "hostname") == [FIRST, SECOND, THIRD]


def test_a_persons_drain_is_shown_and_left_alone(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, THIRD)
    name = next(n for n in nodes(ground) if n.endswith(member.id[-8:]))
    ground.on_host(HEAD, "scontrol", "update", f"nodename={name}", "state=drain", "reason=fan is loud")
    good(ground, ground.demo.boss.drain_member(ground.research, cluster.id, member.id).operation)
    refused = ground.ended(ground.demo.boss.undrain_member(ground.research, cluster.id, member.id).operation.id)
    assert refused.status == "failed"
    assert refused.error
    assert refused.error.code == "drained_by_somebody"
    assert "fan is loud" in refused.error.message
    assert nodes(ground)[name] == "drain"
    ground.on_host(HEAD, "scontrol", "update", f"nodename={name}", "state=undrain")
    good(ground, ground.demo.boss.retry_operation(ground.research, refused.id).operation)
    assert worker(ground, cluster, THIRD).state == "ready"


def test_a_removed_worker_is_gone_and_cannot_come_back(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, THIRD)
    done = good(ground, ground.demo.boss.remove_member(ground.research, cluster.id, member.id).operation)
    (evidence,) = done.evidence.values()
    assert all(check["ok"] for check in evidence["checks"])
    assert len(nodes(ground)) == 2
    ground.lab.exec(THIRD, ["systemctl", "restart", "slurmd"], timeout=30)
    time.sleep(2)
    assert len(nodes(ground)) == 2
    assert ground.lab.exec(THIRD, ["ls", "/etc/munge/munge.key", "/etc/slurm/slurm.conf"], timeout=20).exit != 0


def test_it_can_be_added_again(ground: Ground, cluster: InstanceView) -> None:
    add(ground, cluster, THIRD)
    assert srun(ground, "-N3", "hostname") == [FIRST, SECOND, THIRD]


def test_a_worker_is_restarted_while_its_job_goes_on(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, FIRST)
    name = next(n for n in nodes(ground) if n.endswith(member.id[-8:]))
    job = ground.as_user(HEAD, "sbatch", "--parsable", "-w", name, "--output", "/dev/null", "--wrap", "sleep 4").strip()
    wait_until(lambda: nodes(ground)[name] in ("mix", "alloc"), 20, "the job to run")
    good(ground, ground.demo.boss.restart_member(ground.research, cluster.id, member.id).operation)
    wait_until(
        lambda: ground.on_host(HEAD, "sacct", "-X", "-n", "-P", "-j", job, "-o", "State").strip() == "COMPLETED",
        30,
        "the job to end well",
    )


def test_one_worker_takes_the_place_of_another(ground: Ground, cluster: InstanceView) -> None:
    old = worker(ground, cluster, THIRD)
    good(ground, ground.demo.boss.remove_member(ground.research, cluster.id, old.id).operation)
    member = worker(ground, cluster, SECOND)
    accepted = ground.demo.boss.replace_member(
        ground.research, cluster.id, member.id, allocation_id=ground.allocations[THIRD], reason="bad memory"
    )
    good(ground, accepted.operation)
    assert srun(ground, "-N2", "hostname") == [FIRST, THIRD]
    assert len(nodes(ground)) == 2
    assert ground.lab.exec(SECOND, ["pgrep", "-x", "slurmd"], timeout=20).exit != 0


def test_it_stops_starts_and_restarts(ground: Ground, cluster: InstanceView) -> None:
    boss, project = ground.demo.boss, ground.research
    job = ground.as_user(HEAD, "sbatch", "--parsable", "--output", "/dev/null", "--wrap", "sleep 60").strip()
    good(ground, boss.stop_instance(project, cluster.id).operation)
    assert ground.instance(cluster.id).state == "stopped"
    for host in (HEAD, FIRST, THIRD):
        assert ground.lab.exec(host, ["pgrep", "-f", "slurmd|slurmctld|slurmstepd|sleep 60"], timeout=20).exit != 0
    good(ground, boss.start_instance(project, cluster.id).operation)
    assert srun(ground, "-N2", "hostname") == [FIRST, THIRD]
    assert ground.on_host(HEAD, "squeue", "-h", "-j", job, "-o", "%A").strip() == job, "the job was kept"
    good(ground, boss.restart_instance(project, cluster.id).operation)
    assert srun(ground, "-N2", "hostname") == [FIRST, THIRD]
    ground.as_user(HEAD, "scancel", job)


def test_its_settings_change_without_a_restart(ground: Ground, cluster: InstanceView) -> None:
    before = ground.on_host(HEAD, "systemctl", "show", "-P", "MainPID", "slurmctld")
    inputs = {"gpu_type": "a100", "partition": "long", "default_time_limit_minutes": 30}
    now = ground.instance(cluster.id)
    accepted = ground.demo.boss.update_instance(ground.research, cluster.id, inputs=inputs, etag=now.etag)
    good(ground, accepted.operation)
    assert ground.on_host(HEAD, "sinfo", "-h", "-o", "%R").split() == ["long"]
    assert srun(ground, "-p", "long", "hostname") != []
    assert ground.on_host(HEAD, "systemctl", "show", "-P", "MainPID", "slurmctld") == before
    named = inputs | {"cluster_name": "another"}
    now = ground.instance(cluster.id)
    with pytest.raises(GpuaasError) as refused:
        ground.demo.boss.update_instance(ground.research, cluster.id, inputs=named, etag=now.etag)
    assert refused.value.code == "change_refused"
    assert srun(ground, "-p", "long", "hostname") != [], "a refused change changes nothing"
    assert ground.instance(cluster.id).state == "running"
