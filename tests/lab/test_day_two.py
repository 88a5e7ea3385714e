"""The smoke journey of a cluster, in order, through the public API only: it comes, works, grows, empties, shrinks, rests,
comes back, changes, and goes with a certificate per machine. Each test stands on the one before."""

import time
from collections.abc import Iterator

import pytest
from gpuaas_sdk.client.errors import GpuaasError
from gpuaas_sdk.client.models import DepartureCertificateView, InstanceView, MemberView, OperationView

from tests.support.jobs import HeldJob
from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(5)]

HEAD, FIRST, SECOND, THIRD, FOURTH = "gpu1", "gpu2", "gpu4", "gpu5", "gpu6"
# Comes back as soon as it is ended, and looks like a job of the cluster: what no teardown may overlook.
STRAY = ["systemd-run", "-q", "--unit=slurm-leftover", "-p", "Restart=always", "-p", "StartLimitIntervalSec=0"]
STRAY += ["--setenv=SLURM_JOB_ID=1", "sleep", "1000"]


@pytest.fixture(scope="module")
def cluster(ground: Ground) -> Iterator[InstanceView]:
    workers = [ground.allocations[host] for host in (FIRST, SECOND)]
    made = ground.demo.boss.deploy(
        ground.research,
        name="day-two",
        app_slug="slurm",
        topology="multi_node",
        placement_intent={"controller": [ground.allocations[HEAD]], "worker": workers},
        inputs={"gpu_type": "a100"},
    )
    good(ground, made.operation)
    yield ground.instance(made.instance.id)
    if ground.instance(made.instance.id).state != "deleted":
        ground.gone(ground.instance(made.instance.id))


def good(ground: Ground, operation: OperationView) -> OperationView:
    done = ground.ended(operation.id)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"
    return done


def worker(ground: Ground, cluster: InstanceView, host: str) -> MemberView:
    living = [m for m in ground.instance(cluster.id).members if m.state != "removed"]
    return next(m for m in living if m.component_key == "worker" and m.node_name == host)


def srun(ground: Ground, *words: str) -> list[str]:
    return sorted(ground.as_user(HEAD, "srun", *words).split())


def node_of(ground: Ground, cluster: InstanceView, host: str) -> str:
    """What Slurm calls the worker on this host."""
    tail = worker(ground, cluster, host).id[-8:]
    return next(name for name in nodes(ground) if name.endswith(tail))


def nodes(ground: Ground) -> dict[str, str]:
    text = ground.on_host(HEAD, "sinfo", "-h", "-N", "-o", "%N=%t")
    return dict(line.split("=") for line in text.split())


def at_rest(ground: Ground, workers: int) -> None:
    """A worker counts as idle again a moment after its last job."""
    wait_until(lambda: list(nodes(ground).values()) == ["idle"] * workers, 120, f"{workers} idle workers")


def add(ground: Ground, cluster: InstanceView, *hosts: str) -> str:
    """One request for all of them; the id of the batch."""
    wanted = [ground.allocations[host] for host in hosts]
    batch = ground.demo.boss.add_members(ground.research, cluster.id, component_key="worker", allocation_ids=wanted)
    for accepted in batch.operations:
        good(ground, accepted)
    return batch.batch_id


def certified(ground: Ground, operation: OperationView) -> dict[str, DepartureCertificateView]:
    """By host name: nothing is left there, and the operation's certificates open it no longer."""

    def found() -> list[DepartureCertificateView]:
        return ground.demo.boss.list_departure_certificates(ground.research, operation_id=operation.id).items

    wait_until(
        lambda: all(one.access.open_grants + one.access.grants_not_yet_refused == 0 for one in found()),
        180,
        "the hosts to refuse what the operation came in with",
    )
    for one in found():
        assert one.statement.checks
        assert all(check.ok for check in one.statement.checks)
    return {one.statement.host.name: one for one in found()}


def test_a_fresh_cluster_runs_jobs_of_every_kind(ground: Ground, cluster: InstanceView) -> None:
    at_rest(ground, 2)
    assert srun(ground, "-N2", "hostname") == [FIRST, SECOND]
    assert srun(ground, "--gres=gpu:1", "printenv", "CUDA_VISIBLE_DEVICES") == ["0"]
    assert srun(ground, "--gres=gpu:a100:1", "printenv", "CUDA_VISIBLE_DEVICES") == ["0"]
    job = HeldJob(ground, HEAD)
    job.let_go(FIRST, SECOND)
    job.ended_well()
    assert ground.lab.exec(HEAD, ["pgrep", "-x", "slurmd"], timeout=20).exit != 0, "the controller's host runs no jobs"


def test_two_workers_are_added_in_one_call_and_the_scheduler_is_not_restarted(
    ground: Ground, cluster: InstanceView
) -> None:
    before = ground.on_host(HEAD, "systemctl", "show", "-P", "MainPID", "slurmctld")
    batch = add(ground, cluster, THIRD, FOURTH)
    asked = ground.demo.boss.list_operations(ground.research, batch_id=batch).items
    assert [(one.kind, one.status) for one in asked] == [("add_member", "succeeded")] * 2
    fresh = [node_of(ground, cluster, host) for host in (THIRD, FOURTH)]
    assert srun(ground, "-N2", "-w", ",".join(fresh), "hostname") == [THIRD, FOURTH]
    assert srun(ground, "-N4", "hostname") == [FIRST, SECOND, THIRD, FOURTH]
    assert ground.on_host(HEAD, "systemctl", "show", "-P", "MainPID", "slurmctld") == before
    at_rest(ground, 4)


def test_a_drain_waits_for_the_job_and_says_whose_it_is(ground: Ground, cluster: InstanceView) -> None:
    member, name = worker(ground, cluster, SECOND), node_of(ground, cluster, SECOND)
    job = HeldJob(ground, HEAD, "-w", name)
    accepted = ground.demo.boss.drain_member(ground.research, cluster.id, member.id, reason="a new disk")
    wait_until(
        lambda: f"job {job.id} of gpuaas" in (ground.operation(accepted.operation.id).progress.message or ""),
        120,
        "the drain to say what it waits for",
    )
    assert "gpuaas:" in ground.on_host(HEAD, "sinfo", "-h", "-n", name, "-o", "%E")
    assert job.state == "RUNNING", "the job was not hurt"
    job.let_go(SECOND)
    good(ground, accepted.operation)
    job.ended_well()
    assert worker(ground, cluster, SECOND).state == "drained"


def test_a_drained_worker_is_given_back(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, SECOND)
    good(ground, ground.demo.boss.undrain_member(ground.research, cluster.id, member.id).operation)
    assert worker(ground, cluster, SECOND).state == "ready"
    assert srun(ground, "-N4", "hostname") == [FIRST, SECOND, THIRD, FOURTH]


def test_a_persons_drain_is_shown_and_left_alone(ground: Ground, cluster: InstanceView) -> None:
    member, name = worker(ground, cluster, THIRD), node_of(ground, cluster, THIRD)
    ground.on_host(HEAD, "scontrol", "update", f"nodename={name}", "state=drain", "reason=fan is loud")
    good(ground, ground.demo.boss.drain_member(ground.research, cluster.id, member.id).operation)
    refused = ground.ended(ground.demo.boss.undrain_member(ground.research, cluster.id, member.id).operation.id)
    assert refused.status == "failed"
    assert refused.error
    assert refused.error.code == "drained_by_person"
    assert "fan is loud" in refused.error.message
    assert nodes(ground)[name] == "drain"
    ground.on_host(HEAD, "scontrol", "update", f"nodename={name}", "state=undrain")
    good(ground, ground.demo.boss.retry_operation(ground.research, refused.id).operation)
    assert worker(ground, cluster, THIRD).state == "ready"


def test_a_removed_worker_is_gone_with_a_certificate_and_cannot_come_back(
    ground: Ground, cluster: InstanceView
) -> None:
    member, name = worker(ground, cluster, THIRD), node_of(ground, cluster, THIRD)
    done = good(ground, ground.demo.boss.remove_member(ground.research, cluster.id, member.id).operation)
    (said,) = [one.statement for one in certified(ground, done).values()]
    assert (said.host.name, said.members[0].id, said.operation.kind) == (THIRD, member.id, "remove_member")
    about = {check.check: check.detail for check in said.checks}
    assert {"processes", "services", "key", "configuration", "packages", "user", "notes", "node"} <= about.keys()
    assert name in about["node"], "the scheduler was asked"
    assert name not in nodes(ground)
    ground.lab.exec(THIRD, ["systemctl", "restart", "slurmd"], timeout=180)
    time.sleep(2)
    assert len(nodes(ground)) == 3
    assert ground.lab.exec(THIRD, ["ls", "/etc/munge/munge.key", "/etc/slurm/slurm.conf"], timeout=20).exit != 0
    printed = ground.cli("operation", "certificate", done.id, "--project", "research")
    assert printed.returncode == 0, printed.stderr
    for words in (THIRD, cluster.id, "verified", "revoked and confirmed by the host", "ok  node:"):
        assert words in printed.stdout


def test_a_host_that_is_not_clean_gets_no_certificate_until_it_is(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, FOURTH)
    ground.on_host(FOURTH, *STRAY)
    asked = ground.demo.boss.remove_member(ground.research, cluster.id, member.id).operation
    refused = ground.ended(asked.id)
    assert refused.error
    assert (refused.status, refused.error.code) == ("failed", "teardown_incomplete")
    assert "slurm-leftover" in refused.error.message, "what is left is named"
    assert certified(ground, refused) == {}
    printed = ground.cli("operation", "certificate", refused.id, "--project", "research")
    assert (printed.returncode, "slurm-leftover" in printed.stdout) == (1, True)
    ground.on_host(FOURTH, "systemctl", "stop", "slurm-leftover")
    again = good(ground, ground.demo.boss.retry_operation(ground.research, refused.id).operation)
    assert certified(ground, again).keys() == {FOURTH}


def test_it_can_be_added_again(ground: Ground, cluster: InstanceView) -> None:
    add(ground, cluster, THIRD)
    assert srun(ground, "-N3", "hostname") == [FIRST, SECOND, THIRD]


def test_a_worker_is_restarted_while_its_job_goes_on(ground: Ground, cluster: InstanceView) -> None:
    member, name = worker(ground, cluster, FIRST), node_of(ground, cluster, FIRST)
    job = HeldJob(ground, HEAD, "-w", name)
    good(ground, ground.demo.boss.restart_member(ground.research, cluster.id, member.id).operation)
    assert job.state == "RUNNING"
    job.let_go(FIRST)
    job.ended_well()


def test_one_worker_takes_the_place_of_another(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, SECOND)
    accepted = ground.demo.boss.replace_member(
        ground.research, cluster.id, member.id, allocation_id=ground.allocations[FOURTH], reason="bad memory"
    )
    done = good(ground, accepted.operation)
    assert srun(ground, "-N3", "hostname") == [FIRST, THIRD, FOURTH]
    assert len(nodes(ground)) == 3
    assert certified(ground, done)[SECOND].statement.members[0].id == member.id
    assert ground.lab.exec(SECOND, ["pgrep", "-x", "slurmd"], timeout=20).exit != 0


def test_it_stops_starts_and_restarts(ground: Ground, cluster: InstanceView) -> None:
    boss, project = ground.demo.boss, ground.research
    job = ground.as_user(HEAD, "sbatch", "--parsable", "--output", "/dev/null", "--wrap", "sleep 60").strip()
    good(ground, boss.stop_instance(project, cluster.id).operation)
    assert ground.instance(cluster.id).state == "stopped"
    for host in (HEAD, FIRST, THIRD, FOURTH):
        assert ground.lab.exec(host, ["pgrep", "-f", "slurmd|slurmctld|slurmstepd|sleep 60"], timeout=20).exit != 0
    good(ground, boss.start_instance(project, cluster.id).operation)
    assert srun(ground, "-N3", "hostname") == [FIRST, THIRD, FOURTH]
    assert ground.on_host(HEAD, "squeue", "-h", "-j", job, "-o", "%A").strip() == job, "the job was kept"
    good(ground, boss.restart_instance(project, cluster.id).operation)
    assert srun(ground, "-N3", "hostname") == [FIRST, THIRD, FOURTH]
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


# Upgrade and rollback have a place here, before the end: they are written where package sets of two versions are at hand.


def test_it_is_decommissioned_with_a_certificate_for_every_machine(ground: Ground, cluster: InstanceView) -> None:
    done = ground.gone(ground.instance(cluster.id))
    given = certified(ground, done)
    assert given.keys() == {HEAD, FIRST, THIRD, FOURTH}
    assert {one.statement.operation.requested_by for one in given.values()} == {done.requested_by}
    assert len({one.digest for one in given.values()}) == 4
    for host in given:
        left = "pgrep -x 'slurm.*|munged|mariadbd'; ls /etc/slurm/slurm.conf /etc/munge/munge.key /var/lib/gpuaas-slurm"
        assert ground.lab.exec(host, ["bash", "-c", left], timeout=20).text == "", "as the certificate says"
