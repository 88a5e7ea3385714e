"""How a cluster is, between operations: what breaks is shown within a few looks with what to do, what is mended is shown
healthy again by itself, and what a person did is told and left alone. Through the public API only."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from gpuaas_sdk.client.models import InstanceView

from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(11)]

HEAD, FIRST, SECOND, THIRD = "gpu1", "gpu2", "gpu4", "gpu5"
SQUAT = """setsid python3 -c 'import socket,time; s=socket.socket(); s.bind(("", 6817)); s.listen(); time.sleep(3000)' \\
  >/dev/null 2>&1 & echo $!"""


@pytest.fixture(scope="module")
def cluster(ground: Ground) -> Iterator[InstanceView]:
    ground.controller_restarted_with({"GPUAAS_SLURM_OBSERVE_S": "1"})
    made = ground.demo.boss.deploy(
        ground.research,
        name="watched",
        app_slug="slurm",
        topology="multi_node",
        placement_intent={"controller": [ground.allocations[HEAD]], "worker": [ground.allocations[FIRST]]},
        inputs={"gpu_type": "a100"},
    )
    assert ground.ended(made.operation.id).status == "succeeded"
    yield ground.instance(made.instance.id)
    ground.gone(ground.instance(made.instance.id))
    ground.controller_restarted_with({})


def shown(ground: Ground, cluster: InstanceView, status: str, *words: str, timeout: float = 240) -> InstanceView:
    """Waits until the platform shows it so; a busy machine looks late."""
    deadline = time.monotonic() + timeout
    while True:
        now = ground.instance(cluster.id)
        if now.health.status == status and all(word in now.health.sentence for word in words):
            return now
        assert time.monotonic() < deadline, f"not {status} {words}: {now.health}\n{_log(ground)}"
        time.sleep(0.2)


def _log(ground: Ground) -> str:
    return ground.stack.log_tail("slurm-controller", 20)


def condition(now: InstanceView, kind: str) -> Any:
    return next(one for one in now.conditions if one.type == kind)


def drift(now: InstanceView) -> list[dict[str, Any]]:
    return (now.adapter_detail or {}).get("drift", [])


def bundle(now: InstanceView) -> dict[str, Any]:
    return now.access or {}


def node(ground: Ground) -> str:
    return ground.on_host(HEAD, "sinfo", "-h", "-N", "-o", "%N").split()[0]


def test_all_that_is_wrong_with_the_hosts_is_told_at_once_and_nothing_is_touched(
    ground: Ground, cluster: InstanceView
) -> None:
    pid = ground.on_host(SECOND, "sh", "-c", SQUAT).strip()
    taken = "ss -ltnH 'sport = :6817' | grep -q ."
    wait_until(lambda: ground.lab.exec(SECOND, ["bash", "-c", taken]).exit == 0, 60, "the port to be taken")
    ground.on_host(THIRD, "mv", "/usr/sbin/slurmd", "/root/slurmd")
    try:
        made = ground.demo.boss.deploy(
            ground.research,
            name="two-reds",
            app_slug="slurm",
            topology="multi_node",
            placement_intent={"controller": [ground.allocations[SECOND]], "worker": [ground.allocations[THIRD]]},
        )
        done = ground.ended(made.operation.id)
        assert done.error
        assert "Port 6817 of gpu4" in done.error.message
        assert "gpu5 lacks the package slurmd" in done.error.message
        matrix = (done.adapter_detail or {})["preflight"]
        rows = {one["host"]: {row["check"]: row["ok"] for row in one["checks"]} for one in matrix}
        assert [name for name, ok in rows[SECOND].items() if not ok] == ["ports_free"]
        assert [name for name, ok in rows[THIRD].items() if not ok] == ["packages_present"]
        assert ground.lab.exec(THIRD, ["ls", "/etc/slurm/slurm.conf"], timeout=60).exit != 0
        printed = ground.cli("operation", "show", done.id, "--project", "research")
        assert "ports_free" in printed.stdout, printed.stderr
        assert "Port 6817 of gpu4" in printed.stdout
    finally:
        ground.on_host(THIRD, "mv", "/root/slurmd", "/usr/sbin/slurmd")
        ground.on_host(SECOND, "kill", pid)
        for left in ground.demo.boss.list_instances(ground.research, limit=200).items:
            if left.name == "two-reds":
                ground.gone(left)


def test_a_cluster_is_healthy_by_name_and_equal_looks_leave_no_trace(ground: Ground, cluster: InstanceView) -> None:
    now = shown(ground, cluster, "healthy", "1 of 1 worker takes jobs")
    wait_until(lambda: len(ground.instance(cluster.id).conditions) >= 6, 180, "a look to have told its conditions")
    now = ground.instance(cluster.id)
    assert {one.type: one.status for one in now.conditions} == dict.fromkeys(
        ("accounting", "scheduler", "worker", "jobs", "configuration", "clock"), "True"
    )
    assert drift(now) == []
    events, looks = _news(ground), _looks(ground)
    wait_until(lambda: _looks(ground) >= looks + 3, 240, "three more looks")
    assert ground.instance(cluster.id).etag == now.etag
    assert _news(ground) == events


def _news(ground: Ground) -> int:
    return sum(event.type.startswith(("apps.instance.", "apps.member.")) for event in ground.events())


def _looks(ground: Ground) -> int:
    """How many logins the controller's host has had, by sshd's journal."""
    said = ground.on_host(HEAD, "sh", "-c", "journalctl -q -u ssh -o cat | grep -c 'Accepted publickey' || true")
    return int(said)


@pytest.mark.parametrize(
    ("unit", "status", "kind"),
    [
        ("slurmdbd", "degraded", "accounting"),
        ("mariadb", "degraded", "accounting"),
        ("slurmctld", "failed", "scheduler"),
    ],
)
def test_a_service_that_stops_is_named_with_what_to_do_and_forgotten_when_it_is_back(
    ground: Ground, cluster: InstanceView, unit: str, status: str, kind: str
) -> None:
    called = "MariaDB" if unit == "mariadb" else unit
    ground.on_host(HEAD, "systemctl", "stop", unit)
    now = shown(ground, cluster, status, f"{called} on {HEAD} is inactive", f"systemctl start {unit}")
    assert condition(now, kind).status == "False"
    assert ("stale" in bundle(now)) == (unit == "slurmctld")
    ground.on_host(HEAD, "systemctl", "start", unit)
    now = shown(ground, cluster, "healthy")
    assert condition(now, kind).status == "True"
    assert "stale" not in bundle(now)


def test_a_worker_whose_service_is_dead_is_named(ground: Ground, cluster: InstanceView) -> None:
    ground.on_host(FIRST, "systemctl", "stop", "slurmd")
    now = shown(ground, cluster, "failed", f"slurmd on {FIRST} is inactive", "gpuaas member restart watched worker/0")
    assert next(m for m in now.members if m.component_key == "worker").runtime_state == "down"
    ground.on_host(FIRST, "systemctl", "start", "slurmd")
    shown(ground, cluster, "healthy")


def test_a_persons_drain_is_told_with_who_and_why_and_is_never_undone(ground: Ground, cluster: InstanceView) -> None:
    name = node(ground)
    ground.on_host(HEAD, "scontrol", "update", f"nodename={name}", "state=drain", "reason=fan is loud")
    now = shown(ground, cluster, "drained", "drained by root since", "fan is loud", "left alone")
    (entry,) = drift(now)
    assert (entry["what"], entry["kind"]) == (name, "person")
    assert "gpuaas member drain watched worker/0" in entry["adopt"]
    looks = _looks(ground)
    wait_until(lambda: _looks(ground) >= looks + 3, 240, "three more looks")
    assert ground.on_host(HEAD, "sinfo", "-h", "-n", name, "-o", "%t").strip() == "drain"


def test_work_on_another_worker_hides_nothing_and_the_bundle_counts_it(ground: Ground, cluster: InstanceView) -> None:
    try:
        wanted = [ground.allocations[SECOND]]
        batch = ground.demo.boss.add_members(ground.research, cluster.id, component_key="worker", allocation_ids=wanted)
        done = ground.ended(batch.operations[0].id)
        assert done.status == "succeeded", done.error
        assert "is a worker of watched" in done.progress.message
        assert "fan is loud" in ground.instance(cluster.id).health.sentence
        shown(ground, cluster, "degraded", "1 of 2 workers take jobs", "fan is loud")
        wait_until(lambda: bundle(ground.instance(cluster.id))["workers"] == 2, 180, "the bundle to count both")
        now = shown(ground, cluster, "degraded", "1 of 2 workers take jobs")
        assert bundle(now)["versions"]["members"].keys() == {HEAD, FIRST, SECOND}
        assert {m.runtime_version for m in now.members} == {now.runtime_version}
    finally:
        drained = _of(ground.instance(cluster.id), FIRST)
        ground.on_host(HEAD, "scontrol", "update", f"nodename={drained}", "state=undrain")
    assert drift(shown(ground, cluster, "healthy", "2 of 2 workers take jobs")) == []


def _of(now: InstanceView, host: str) -> str:
    return (next(m for m in now.members if m.node_name == host).adapter_detail or {})["node"]


def test_headers_of_the_bundle_begin_a_job_that_runs(ground: Ground, cluster: InstanceView) -> None:
    headers = bundle(ground.instance(cluster.id))["sbatch_headers"]
    assert [(one["partition"], one["gpu"]) for one in headers] == [("main", None), ("main", "a100")]
    script = f"#!/bin/bash\n{headers[1]['header']}printenv CUDA_VISIBLE_DEVICES\n"
    run = f"cat >/tmp/job.sh <<'J'\n{script}J\nrunuser -u gpuaas -- sbatch --wait -o /tmp/job.out /tmp/job.sh"
    ground.on_host(HEAD, "sh", "-c", f"cd /tmp && {run}", timeout=240)


def test_a_worker_whose_host_is_off_is_named_and_comes_back_by_itself(ground: Ground, cluster: InstanceView) -> None:
    ground.lab.poweroff(SECOND)
    try:
        shown(ground, cluster, "degraded", "1 of 2 workers", f"{SECOND} does not answer")
    finally:
        ground.lab.boot(SECOND)
    shown(ground, cluster, "healthy", "2 of 2 workers", timeout=240)


def test_what_a_person_changed_is_in_the_ledger_and_the_same_settings_put_it_back(
    ground: Ground, cluster: InstanceView
) -> None:
    ground.on_host(HEAD, "sh", "-c", "echo '# mine' >>/etc/slurm/cgroup.conf")
    ground.on_host(HEAD, "scontrol", "update", "partitionname=main", "state=down")
    ground.on_host(HEAD, "sacctmgr", "-i", "add", "account", "physics")
    shown(ground, cluster, "degraded", "/etc/slurm/cgroup.conf on gpu1 was changed by hand", "instance update")
    wait_until(lambda: len(drift(ground.instance(cluster.id))) == 3, 180, "the ledger to have all three")
    found = {entry["what"]: entry for entry in drift(ground.instance(cluster.id))}
    assert found.keys() == {"/etc/slurm/cgroup.conf", "main", "physics"}
    assert "State is DOWN" in found["main"]["said"]
    done = ground.cli("instance", "update", "watched", "--project", "research")
    assert done.returncode == 0, done.stdout + done.stderr
    shown(ground, cluster, "healthy")
    wait_until(
        lambda: _named(ground, cluster) == ["physics"], 180, "only the person's account to be left in the ledger"
    )
    ground.on_host(HEAD, "sacctmgr", "-i", "delete", "account", "physics")


def _named(ground: Ground, cluster: InstanceView) -> list[str]:
    return [entry["what"] for entry in drift(ground.instance(cluster.id))]
