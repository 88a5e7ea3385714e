"""Hosts that go dark, come back as strangers, lose a GPU, a key or their database, while people work on their cluster.

One cluster, in order: every failure has a code, a sentence and a way out, which is then taken, through the API only.
The controller keeps its state in PostgreSQL here.
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from gpuaas_lab.postgres import Cluster, remove_leftovers
from gpuaas_sdk.client.errors import GpuaasError
from gpuaas_sdk.client.models import InstanceView, MemberView, OperationView
from gpuaas_slurm.errors import FAILURES

from tests.support.jobs import HeldJob
from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(3)]

HEAD, FIRST, SECOND, THIRD, SPARE = "gpu1", "gpu2", "gpu4", "gpu5", "gpu6"
PLANT = "head -c 128 /dev/urandom >/etc/munge/munge.key && systemctl restart munge"
NEW_HOST_KEY = "cd /etc/ssh && cp -a ssh_host_ed25519_key /root/k && cp -a gpuaas/host-cert.pub /root/c && ssh-keygen -q -t ed25519 -N '' -f new && mv new ssh_host_ed25519_key && mv new.pub ssh_host_ed25519_key.pub && rm gpuaas/host-cert.pub && systemctl restart ssh"
OLD_HOST_KEY = "cd /etc/ssh && cp -a /root/k ssh_host_ed25519_key && ssh-keygen -y -f ssh_host_ed25519_key > ssh_host_ed25519_key.pub && cp -a /root/c gpuaas/host-cert.pub && systemctl restart ssh"


@pytest.fixture(scope="module")
def state() -> Iterator[str]:
    remove_leftovers()
    database = Cluster()
    try:
        database.start()
        yield database.address()
    finally:
        database.stop()


@pytest.fixture(scope="module")
def points(ground: Ground, state: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file `<step>.<moment>` in this folder stops the controller there; it gives an unreachable host 2 s only."""
    folder = tmp_path_factory.mktemp("failpoints")
    more = {"GPUAAS_SLURM_UNREACHABLE_S": "2", "GPUAAS_SLURM_STATE": state}
    ground.controller_restarted_with({"GPUAAS_FAILPOINT_DIR": str(folder)} | more)
    yield folder
    ground.controller_restarted_with({})


@pytest.fixture(scope="module")
def cluster(ground: Ground, points: Path) -> Iterator[InstanceView]:
    """Deployed in spite of a database that does not start, and of a worker's host that loses power in the middle."""
    ground.on_host(HEAD, "sh", "-c", "systemctl stop mariadb; mv /var/lib/mysql /root/mysql && touch /var/lib/mysql")
    made = ground.demo.boss.deploy(
        ground.research,
        name="in-trouble",
        app_slug="slurm",
        topology="multi_node",
        placement_intent={"controller": [ground.allocations[HEAD]], "worker": [ground.allocations[FIRST]]},
        inputs={},
    )
    try:
        failed = bad(ground, made.operation, "accounting_not_ready")
    finally:
        ground.on_host(HEAD, "sh", "-c", "rm /var/lib/mysql && mv /root/mysql /var/lib/mysql")
    (points / "accounts.before_act").write_text("stay")
    again = ground.demo.boss.retry_operation(ground.research, failed.id).operation
    wait_until(lambda: (points / "accounts.before_act").read_text() == "here", 120, "the deploy to be in the middle")
    ground.lab.poweroff(FIRST)
    ground.lab.boot(FIRST)
    (points / "accounts.before_act").unlink()
    good(ground, again)
    yield ground.instance(made.instance.id)
    now = ground.instance(made.instance.id)
    if now.state != "deleted":
        ground.gone(now)


def power_lost(ground: Ground, host: str) -> None:
    """The controller's namespace forgets where the host was, so that it need not wait until it would forget by itself."""
    ground.lab.poweroff(host)
    subprocess.run([*ground.space.prefix, "ip", "neigh", "flush", "all"], check=True, timeout=20)


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


def checks(operation: OperationView) -> list[bool]:
    return [check["ok"] for host in (operation.evidence or {}).values() for check in host["checks"]]


def worker(ground: Ground, cluster: InstanceView, host: str) -> MemberView:
    living = [m for m in ground.instance(cluster.id).members if m.state != "removed"]
    return next(m for m in living if m.component_key == "worker" and m.node_name == host)


def node(member: MemberView) -> str:
    return f"worker{member.ordinal}-{member.id[-8:]}"


def nodes(ground: Ground) -> set[str]:
    return set(ground.on_host(HEAD, "sinfo", "-h", "-N", "-o", "%N").split())


def key_of(ground: Ground, host: str) -> str:
    return ground.on_host(host, "sha256sum", "/etc/munge/munge.key").split()[0]


def srun(ground: Ground, *words: str) -> list[str]:
    return sorted(ground.as_user(HEAD, "srun", *words).split())


def queue(ground: Ground) -> list[str]:
    """Jobs and their states, one after the other."""
    return ground.on_host(HEAD, "squeue", "-h", "-o", "%A %t").split()


def added(ground: Ground, cluster: InstanceView, host: str) -> OperationView:
    wanted = [ground.allocations[host]]
    boss = ground.demo.boss
    return boss.add_members(ground.research, cluster.id, component_key="worker", allocation_ids=wanted).operations[0]


def replaced(ground: Ground, cluster: InstanceView, member: MemberView) -> OperationView:
    """As if its host were gone."""
    wanted = {"allocation_id": ground.allocations[SPARE], "host_is_gone": True, "reason": "it burned"}
    return ground.demo.boss.replace_member(ground.research, cluster.id, member.id, **wanted).operation


def retried(ground: Ground, operation: OperationView) -> OperationView:
    return ground.demo.boss.retry_operation(ground.research, operation.id).operation


def test_a_worker_is_added_though_its_host_is_off_then_a_stranger_then_lacks_a_gpu(
    ground: Ground, cluster: InstanceView
) -> None:
    power_lost(ground, SECOND)
    try:
        failed = bad(ground, added(ground, cluster, SECOND), "host_unreachable")
    finally:
        ground.lab.boot(SECOND)
    assert worker(ground, cluster, SECOND).state == "failed"

    ground.on_host(SECOND, "sh", "-c", f"systemctl stop gpuaas-agent; {NEW_HOST_KEY}")
    try:
        failed = bad(ground, retried(ground, failed), "host_identity_wrong")
    finally:
        ground.on_host(SECOND, "sh", "-c", f"{OLD_HOST_KEY}; systemctl start gpuaas-agent")

    ground.on_host(SECOND, "mv", "/dev/nvidia1", "/dev/was-nvidia1")
    try:
        failed = bad(ground, retried(ground, failed), "preflight_failed")
    finally:
        ground.on_host(SECOND, "mv", "/dev/was-nvidia1", "/dev/nvidia1")
    assert failed.error
    assert "/dev/nvidia1" in failed.error.message

    ground.on_host(HEAD, "systemctl", "stop", "slurmdbd")
    try:
        good(ground, retried(ground, failed))
        assert srun(ground, "-N2", "hostname") == [FIRST, SECOND], "slurmctld knows the accounts by heart"
    finally:
        ground.on_host(HEAD, "systemctl", "start", "slurmdbd")


def test_the_key_is_changed_under_a_running_job_by_a_controller_that_dies_in_the_middle(
    ground: Ground, cluster: InstanceView, points: Path, state: str
) -> None:
    before = key_of(ground, HEAD)
    assert key_of(ground, FIRST) == key_of(ground, SECOND) == before
    job = HeldJob(ground, HEAD)
    (points / "switch_key.after_act").write_text("die")
    asked = ground.demo.boss.rotate_instance_keys(ground.research, cluster.id, reason="a colleague left the team")
    assert asked.instance.state == "updating"
    good(ground, asked.operation)
    assert not list(points.iterdir()), "the controller was killed between the hosts' switch and its own record of it"
    with psycopg.connect(state) as journal:
        mine = "SELECT DISTINCT epoch, phase FROM steps WHERE operation_id = %s AND step = 'switch_key' ORDER BY epoch"
        lives = journal.execute(mine, (asked.operation.id,)).fetchall()
    first, *later = [phase for _, phase in lives]
    assert (first, set(later)) == ("acting", {"probed"}), "what the first life left is what the second one found"
    assert key_of(ground, HEAD) == key_of(ground, FIRST) == key_of(ground, SECOND) != before
    assert srun(ground, "-N2", "hostname") == [FIRST, SECOND]
    job.let_go(FIRST, SECOND)
    job.ended_well()
    assert ground.instance(cluster.id).state == "running"


def test_a_wrong_key_on_the_controllers_host_is_named_and_mended_by_a_restart_of_the_instance(
    ground: Ground, cluster: InstanceView
) -> None:
    ground.on_host(HEAD, "sh", "-c", PLANT)
    member = worker(ground, cluster, FIRST)
    asked = ground.demo.boss.restart_member(ground.research, cluster.id, member.id)
    bad(ground, asked.operation, "keys_differ")
    good(ground, ground.demo.boss.restart_instance(ground.research, cluster.id).operation)
    assert key_of(ground, HEAD) == key_of(ground, FIRST) == key_of(ground, SECOND)
    good(ground, ground.demo.boss.retry_member(ground.research, cluster.id, member.id).operation)
    assert srun(ground, "-N2", "hostname") == [FIRST, SECOND]


def test_a_start_whose_database_goes_away_says_so_and_a_retry_brings_it_back(
    ground: Ground, cluster: InstanceView, points: Path
) -> None:
    boss, project = ground.demo.boss, ground.research
    good(ground, boss.stop_instance(project, cluster.id).operation)
    (points / "accounts.before_act").write_text("stay")
    asked = boss.start_instance(project, cluster.id)
    wait_until(lambda: (points / "accounts.before_act").read_text() == "here", 120, "the start to be in the middle")
    ground.on_host(HEAD, "systemctl", "stop", "mariadb")
    (points / "accounts.before_act").unlink()
    failed = bad(ground, asked.operation, "accounting_not_ready")
    assert failed.error
    assert failed.error.retryable
    good(ground, retried(ground, failed))
    assert ground.instance(cluster.id).state == "running"
    assert srun(ground, "-N2", "hostname") == [FIRST, SECOND]


def test_work_on_a_host_that_lost_power_says_so_and_how_to_go_on_without_it(
    ground: Ground, cluster: InstanceView
) -> None:
    boss, project, member = ground.demo.boss, ground.research, worker(ground, cluster, SECOND)
    job = HeldJob(ground, HEAD, "-x", node(worker(ground, cluster, FIRST)))
    good(ground, added(ground, cluster, THIRD))
    power_lost(ground, THIRD)
    power_lost(ground, SECOND)
    other = node(worker(ground, cluster, THIRD))  # so that no job is sent there before Slurm notices
    ground.on_host(HEAD, "scontrol", "update", f"nodename={other}", "state=down", "reason=silent")
    late = bad(ground, boss.drain_member(project, cluster.id, member.id, deadline_s=1).operation, "drain_deadline")
    assert late.error
    assert f"job {job.id}" in late.error.message, "as far as Slurm knows, it still runs"
    failed = bad(ground, boss.remove_member(project, cluster.id, member.id).operation, "host_unreachable")
    assert failed.error
    assert "--host-is-gone" in failed.error.way_out


def test_a_wrong_key_on_a_worker_is_found_told_and_mended_by_a_restart(ground: Ground, cluster: InstanceView) -> None:
    ground.on_host(FIRST, "sh", "-c", PLANT)
    shut_out = ground.lab.exec(FIRST, ["sinfo"], timeout=180)
    assert shut_out.exit != 0
    known = FAILURES.recognise(shut_out.error_text + shut_out.text, FIRST)
    assert known, f"not understood: {shut_out.error_text} {shut_out.text}"
    assert known[0] == "keys_differ", known
    asked = ground.demo.boss.restart_member(ground.research, cluster.id, worker(ground, cluster, FIRST).id)
    done = good(ground, asked.operation)
    assert done.adapter_detail
    assert "had another munge key" in str(done.adapter_detail["notes"])
    assert key_of(ground, FIRST) == key_of(ground, HEAD)
    assert srun(ground, "hostname") == [FIRST]


def test_what_munge_says_about_a_wrong_clock_is_understood(ground: Ground, cluster: InstanceView) -> None:
    """Of a clock that is off by less than our certificates live; the same words come from a credential that is too old.
    Ten minutes are in test_faults.py."""
    said = ground.lab.exec(FIRST, ["sh", "-c", "munge -n --ttl=1 >/tmp/c && sleep 2.1 && unmunge </tmp/c"], timeout=60)
    assert FAILURES.recognise(said.error_text + said.text, FIRST), said
    assert (FAILURES.recognise(said.error_text + said.text, FIRST) or ("",))[0] == "clock_wrong"


def test_a_worker_that_lost_a_gpu_is_named_and_comes_back_with_it(ground: Ground, cluster: InstanceView) -> None:
    member = worker(ground, cluster, FIRST)
    ground.on_host(FIRST, "mv", "/dev/nvidia1", "/dev/was-nvidia1")
    try:
        asked = ground.demo.boss.restart_member(ground.research, cluster.id, member.id)
        failed = bad(ground, asked.operation, "gpus_missing")
        assert failed.error
        assert "/dev/nvidia1" in failed.error.message
    finally:
        ground.on_host(FIRST, "mv", "/dev/was-nvidia1", "/dev/nvidia1")
    good(ground, retried(ground, failed))
    assert srun(ground, "--gres=gpu:2", "hostname") == [FIRST]


def test_a_worker_whose_host_is_gone_is_taken_out_and_comes_back_a_stranger(
    ground: Ground, cluster: InstanceView
) -> None:
    boss, project, member = ground.demo.boss, ground.research, worker(ground, cluster, SECOND)
    alive = worker(ground, cluster, FIRST)
    with pytest.raises(GpuaasError, match="its agent reports"):
        replaced(ground, cluster, alive)
    for name in (SECOND, THIRD):
        wait_until(lambda name=name: boss.get_node(ground.nodes[name]).state == "unknown", 180, f"{name} to be silent")
    living = {node(alive), put_in_its_place(ground, cluster, THIRD)}
    before = key_of(ground, HEAD)
    words = ("member", "remove", cluster.name, member.id, "--host-is-gone", "--reason", "it burned", "--yes")
    done = ground.cli(*words, "--project", "research")
    assert done.returncode == 0, f"{done.stderr}\n{ground.stack.log_tail('slurm-controller', 30)}"
    removed = boss.get_member(project, cluster.id, member.id)
    operation = ground.operation(removed.last_operation_id or "")
    assert checks(operation) == [True, True, True, False], "the host itself was not seen clean"
    assert key_of(ground, HEAD) == key_of(ground, FIRST) == key_of(ground, SPARE) != before
    assert nodes(ground) == living
    wait_until(lambda: queue(ground)[1:] in (["PD"], ["R"]), 120, "its job to wait for another worker, or to have it")
    ground.as_user(HEAD, "scancel", queue(ground)[0])

    running = ["sh", "-c", "systemctl is-active munge && systemctl restart --no-block slurmd"]
    for name in (SECOND, THIRD):
        ground.lab.boot(name)
    for name in (SECOND, THIRD):
        wait_until(lambda name=name: ground.lab.exec(name, running, timeout=60).exit == 0, 180, f"munge on {name}")
    time.sleep(3)
    assert nodes(ground) == living, "their slurmds are strangers"
    with pytest.raises(GpuaasError, match="not inspected since"):
        added(ground, cluster, SECOND)
    for orphan in boss.list_orphans(project).items:
        if orphan.instance_id == cluster.id:
            boss.resolve_orphan(project, orphan.id, reason="switched on again and looked at")
    for operation in [added(ground, cluster, name) for name in (SECOND, THIRD)]:
        good(ground, operation)
    back = [worker(ground, cluster, name) for name in (SECOND, THIRD)]
    assert nodes(ground) == living | {node(one) for one in back}, "each has run its acceptance job"
    for operation in [boss.remove_member(project, cluster.id, one.id).operation for one in back]:
        assert all(checks(good(ground, operation)))


def put_in_its_place(ground: Ground, cluster: InstanceView, host: str) -> str:
    """The spare host, instead of one that is really off, while a second one is off, too. Returns the new node."""
    old, before = worker(ground, cluster, host), key_of(ground, HEAD)
    operation = good(ground, replaced(ground, cluster, old))
    proven = (operation.evidence or {})[ground.allocations[host]]
    found = {one["check"]: one["ok"] for one in proven["checks"]}
    assert found == {"node": True, "key": True, "other_workers": False, "host": False}, "the other one is off, too"
    assert key_of(ground, HEAD) == key_of(ground, FIRST) == key_of(ground, SPARE) != before
    assert ground.demo.boss.get_member(ground.research, cluster.id, old.id).state == "removed"
    assert node(old) not in nodes(ground)
    new = worker(ground, cluster, SPARE)
    assert srun(ground, "-w", node(new), "hostname") == [SPARE]
    return node(new)


def test_a_decommission_waits_for_a_host_that_is_off_and_ends_well_when_it_is_back(
    ground: Ground, cluster: InstanceView
) -> None:
    power_lost(ground, FIRST)
    try:
        asked = ground.demo.boss.decommission(ground.research, cluster.id)
        failed = bad(ground, asked.operation, "host_unreachable")
    finally:
        ground.lab.boot(FIRST)
    assert failed.error
    assert "abandon" in failed.error.way_out
    assert all(checks(good(ground, retried(ground, failed))))
    assert ground.instance(cluster.id).state == "deleted"
