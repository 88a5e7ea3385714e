"""Hosts that go dark, come back as strangers, lose a GPU, a key or their clock, while somebody works on their cluster.

One cluster for all of it: every failure has a code, a sentence and a way out that is then taken, through the API only.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_sdk.models import InstanceView, MemberView, OperationView
from ground import Ground, wait_until

pytestmark = pytest.mark.lab
HEAD, FIRST, SECOND, THIRD = "gpu1", "gpu2", "gpu4", "gpu5"


@pytest.fixture(scope="module")
def points(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file `<step>.<moment>` in this folder stops the controller there; it gives an unreachable host 3 s only."""
    folder = tmp_path_factory.mktemp("failpoints")
    ground.controller_restarted_with({"GPUAAS_SLURM_FAILPOINT_DIR": str(folder), "GPUAAS_SLURM_UNREACHABLE_S": "3"})
    yield folder
    ground.controller_restarted_with({})


@pytest.fixture(scope="module")
def cluster(ground: Ground, points: Path) -> Iterator[InstanceView]:
    made = ground.demo.boss.deploy(
        ground.research,
        name="in-trouble",
        app_slug="slurm",
        topology="multi_node",
        placement_intent={"controller": [ground.allocations[HEAD]], "worker": [ground.allocations[FIRST]]},
        inputs={},
    )
    good(ground, made.operation)
    yield ground.instance(made.instance.id)
    gone = ground.gone(ground.instance(made.instance.id))
    assert all(check["ok"] for host in gone.evidence.values() for check in host["checks"])


def good(ground: Ground, operation: OperationView) -> OperationView:
    done = ground.ended(operation.id)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"
    return done


def bad(ground: Ground, operation: OperationView, code: str) -> OperationView:
    done = ground.ended(operation.id)
    assert done.status == "failed", done
    assert done.error
    assert (done.error.code, bool(done.error.message), bool(done.error.way_out)) == (code, True, True), done.error
    return done


def worker(ground: Ground, cluster: InstanceView, host: str) -> MemberView:
    living = [m for m in ground.instance(cluster.id).members if m.state != "removed"]
    return next(m for m in living if m.component_key == "worker" and m.node_name == host)


def node(member: MemberView) -> str:
    return f"worker{member.ordinal}-{member.id[-8:]}"


def key_of(ground: Ground, host: str) -> str:
    return ground.on_host(host, "sha256sum", "/etc/munge/munge.key").split()[0]


def srun(ground: Ground, *words: str) -> list[str]:
    return sorted(ground.as_user(HEAD, "srun", *words).split())


def job_state(ground: Ground, job: str) -> str:
    return ground.on_host(HEAD, "sacct", "-X", "-n", "-P", "-j", job, "-o", "State").strip()


def test_the_key_is_changed_under_a_running_job_by_a_controller_that_dies_in_the_middle(
    ground: Ground, cluster: InstanceView, points: Path
) -> None:
    before = key_of(ground, HEAD)
    assert key_of(ground, FIRST) == before
    job = ground.as_user(HEAD, "sbatch", "--parsable", "--output", "/dev/null", "--wrap", "sleep 6").strip()
    wait_until(lambda: "R" in ground.on_host(HEAD, "squeue", "-h", "-j", job, "-o", "%t"), 30, "the job to run")
    (points / "switch_key.after_act").touch()
    asked = ground.demo.boss.rotate_instance_keys(ground.research, cluster.id, reason="somebody left the team")
    assert asked.instance.state == "updating"
    good(ground, asked.operation)
    assert not list(points.iterdir()), "the controller was killed between the hosts' switch and its own record of it"
    assert key_of(ground, HEAD) == key_of(ground, FIRST) != before
    assert srun(ground, "hostname") == [FIRST]
    wait_until(lambda: job_state(ground, job) == "COMPLETED", 40, "the job to end well")
    assert ground.instance(cluster.id).state == "running"


def test_a_wrong_key_on_a_worker_is_found_told_and_mended_by_a_restart(ground: Ground, cluster: InstanceView) -> None:
    plant = "head -c 128 /dev/urandom >/etc/munge/munge.key && systemctl restart munge"
    ground.on_host(FIRST, "sh", "-c", plant)
    assert ground.lab.exec(FIRST, ["sinfo"], timeout=30).exit != 0, "it is shut out"
    member = worker(ground, cluster, FIRST)
    asked = ground.demo.boss.restart_member(ground.research, cluster.id, member.id)
    done = good(ground, asked.operation)
    assert done.adapter_detail
    assert "had another munge key" in str(done.adapter_detail["notes"])
    assert key_of(ground, FIRST) == key_of(ground, HEAD)
    assert srun(ground, "hostname") == [FIRST]
