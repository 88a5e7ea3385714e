"""Settings and versions of a running cluster, through the public API: each change does what its plan said, no more."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpuaas_slurm
import pytest
from gpuaas_sdk.client.models import InstanceView, OperationView
from gpuaas_slurm.packages import build
from gpuaas_slurm.reconcile.context import PACKAGE_SET

from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(6)]

HEAD, WORKER, LACKING = "gpu1", "gpu2", "lacking1"
NEXT = "0.3.1"
BASE = {"gpu_type": "a100", "partitions": [{"name": "fast", "max_time_limit_minutes": 10, "priority_tier": 5}]}


@pytest.fixture(scope="module")
def cluster(ground: Ground) -> Iterator[InstanceView]:
    made = ground.demo.boss.deploy(
        ground.research,
        name="settings",
        app_slug="slurm",
        topology="multi_node",
        placement_intent={"controller": [ground.allocations[HEAD]], "worker": [ground.allocations[WORKER]]},
        inputs=BASE,
    )
    good(ground, made.operation)
    yield ground.instance(made.instance.id)
    ground.gone(ground.instance(made.instance.id))


def good(ground: Ground, operation: OperationView) -> OperationView:
    done = ground.ended(operation.id)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"
    return done


def changed(ground: Ground, cluster: InstanceView, **inputs: Any) -> OperationView:
    etag = ground.instance(cluster.id).etag
    accepted = ground.demo.boss.update_instance(ground.research, cluster.id, inputs=BASE | inputs, etag=etag)
    return ground.ended(accepted.operation.id)


def refused(ended: OperationView) -> str:
    assert ended.status == "failed", ended
    assert ended.error
    return ended.error.code


def pids(ground: Ground) -> tuple[str, str, str]:
    """slurmctld, slurmdbd, slurmd."""
    of = lambda host, unit: ground.on_host(host, "systemctl", "show", "-P", "MainPID", unit).strip()  # noqa: E731
    return of(HEAD, "slurmctld"), of(HEAD, "slurmdbd"), of(WORKER, "slurmd")


def job(ground: Ground, *words: str) -> str:
    asked = ["sbatch", "--parsable", "--output", "/dev/null", *words, "--wrap", "sleep 3000"]
    number = ground.as_user(HEAD, *asked).strip()
    wait_until(lambda: state(ground, number) == "RUNNING", 180, "the job to run")
    return number


def state(ground: Ground, number: str) -> str:
    return ground.on_host(HEAD, "squeue", "-h", "-j", number, "-o", "%T").strip()


def ended(ground: Ground, number: str) -> None:
    ground.as_user(HEAD, "scancel", number)
    wait_until(lambda: ground.on_host(HEAD, "squeue", "-h", "-o", "%A").strip() == "", 180, "the job to be gone")


def healthy(ground: Ground, cluster: InstanceView) -> None:
    wait_until(lambda: ground.instance(cluster.id).health.status == "healthy", 120, "it to be seen healthy")


def srun(ground: Ground, *words: str) -> str:
    return ground.as_user(HEAD, "srun", *words).strip()


def test_a_plan_says_what_each_change_does(ground: Ground, cluster: InstanceView) -> None:
    words = ["--input", 'slurm_conf={"KillWait": 40, "MaxJobCount": 900}', "--input", "gpu_type=h100"]
    words += ["--input", "cluster_name=other", "--plan"]
    said = ground.cli_json("instance", "update", "settings", *words, "--project", "research")
    assert {one["field"]: one["effect"] for one in said["plan"]["changes"]} == {
        "/cluster_name": "refused",
        "/gpu_type": "needs_drain",
        "/slurm_conf/KillWait": "pushed",
        "/slurm_conf/MaxJobCount": "needs_restart",
    }
    assert ground.instance(cluster.id).generation == 1


def test_what_is_pushed_restarts_nothing(ground: Ground, cluster: InstanceView) -> None:
    before = pids(ground)
    more = [*BASE["partitions"], {"name": "long", "gpu_type": "a100", "default_time_limit_minutes": 5}]
    done = changed(ground, cluster, partitions=more, max_time_limit_minutes=600, slurm_conf={"KillWait": 40})
    assert done.status == "succeeded", done.error
    shown = ground.on_host(HEAD, "sinfo", "-h", "-o", "%P %l").split("\n")
    assert {line.strip() for line in shown if line} == {"main* 10:00:00", "fast 10:00", "long 10:00:00"}
    assert "KillWait                = 40 sec" in ground.on_host(HEAD, "scontrol", "show", "config")
    assert srun(ground, "-p", "long", "--gres=gpu:a100:1", "hostname") == WORKER
    late = ground.lab.exec(
        HEAD, ["runuser", "-u", "gpuaas", "--", "srun", "-p", "fast", "-t", "20", "true"], timeout=180
    )
    assert "time limit is invalid" in late.error_text
    assert pids(ground) == before


def test_what_needs_a_restart_restarts_the_scheduler_and_jobs_go_on(ground: Ground, cluster: InstanceView) -> None:
    number, (scheduler, *others) = job(ground), pids(ground)
    done = changed(ground, cluster, slurm_conf={"MaxJobCount": 900, "PriorityType": "priority/multifactor"})
    assert done.status == "succeeded", done.error
    now, *same = pids(ground)
    assert now != scheduler
    assert same == others
    assert state(ground, number) == "RUNNING"
    ended(ground, number)
    assert changed(ground, cluster, slurm_conf={"MaxJobCount": 900, "KillWait": 50}).status == "succeeded"
    assert pids(ground)[0] != now, "the priority plugin went back to its default, which counts at a start"


def test_settings_that_slurm_refuses_never_reach_it(ground: Ground, cluster: InstanceView) -> None:
    before, file = pids(ground), ground.on_host(HEAD, "sha256sum", "/etc/slurm/slurm.conf")
    bad = changed(ground, cluster, slurm_conf={"MaxJobCount": 900, "DebugFlags": "Nonesuch"})
    assert refused(bad) == "settings_refused"
    assert "DebugFlags invalid: Nonesuch" in bad.error.message
    assert (pids(ground), ground.on_host(HEAD, "sha256sum", "/etc/slurm/slurm.conf")) == (before, file)
    now = ground.instance(cluster.id)
    assert now.state == "running"
    assert now.health.status in ("degraded", "healthy"), "a look at the cluster, which works as before, may have come"
    assert srun(ground, "hostname") == WORKER
    assert changed(ground, cluster, slurm_conf={"MaxJobCount": 900, "DebugFlags": "Backfill"}).status == "succeeded"
    healthy(ground, cluster)


def test_a_partition_with_jobs_stays_and_so_do_they(ground: Ground, cluster: InstanceView) -> None:
    number = job(ground, "-p", "fast")
    gone = changed(ground, cluster, partitions=[])
    assert refused(gone) == "partition_in_use"
    assert number in gone.error.message
    assert state(ground, number) == "RUNNING"
    assert srun(ground, "-p", "fast", "-n1", "--mem=10", "hostname") == WORKER, "it takes jobs as before"
    ended(ground, number)
    again = ground.demo.boss.retry_operation(ground.research, gone.id)
    good(ground, again.operation)
    assert ground.on_host(HEAD, "sinfo", "-h", "-o", "%R").split() == ["main"]


def test_another_gpu_type_waits_for_no_job_and_keeps_a_persons_drain(ground: Ground, cluster: InstanceView) -> None:
    number = job(ground)
    busy = changed(ground, cluster, gpu_type="h100")
    assert (refused(busy), state(ground, number)) == ("workers_busy", "RUNNING")
    assert "dr" not in ground.on_host(HEAD, "sinfo", "-h", "-o", "%t"), "it is drained no more"
    ended(ground, number)
    good(ground, ground.demo.boss.retry_operation(ground.research, busy.id).operation)
    assert srun(ground, "--gres=gpu:h100:2", "hostname") == WORKER
    node = ground.on_host(HEAD, "sinfo", "-h", "-p", "main", "-o", "%N").strip()
    ground.on_host(HEAD, "scontrol", "update", f"nodename={node}", "state=drain", "reason=it's 'loud'")
    assert changed(ground, cluster).status == "succeeded"
    shown = lambda: ground.on_host(HEAD, "sinfo", "-h", "-p", "main", "-o", "%t %E %G").strip()  # noqa: E731
    wait_until(lambda: shown() == "drain it's 'loud' gpu:a100:2", 120, "the drain on a worker with other GPUs")
    ground.on_host(HEAD, "scontrol", "update", f"nodename={node}", "state=undrain")
    assert srun(ground, "--gres=gpu:a100:2", "hostname") == WORKER


@pytest.fixture(scope="module")
def release(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The app's next release: the same package with another version, in a folder of its own, published by itself."""
    folder = tmp_path_factory.mktemp("release")
    package = folder / "gpuaas_slurm"
    shutil.copytree(Path(gpuaas_slurm.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    init, manifest = package / "__init__.py", package / "manifest.json"
    init.write_text(init.read_text().replace(gpuaas_slurm.__version__, NEXT))
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": NEXT}))
    env = os.environ | {"PYTHONPATH": str(folder), "GPUAAS_API": ground.stack.api}
    env["GPUAAS_TOKEN"] = ground.stack.signed_in_token("admin")
    subprocess.run([sys.executable, "-m", "gpuaas_slurm", "publish"], env=env, timeout=180, check=True)
    yield folder
    ground.demo.admin.withdraw_version("slurm", NEXT, reason="a test made it up")
    ground.start_controller({})


# slurmdbd's package as it was installed, and as it would be with a higher version: nothing needs to be fetched.
REPACK = """
set -e; cd "$(mktemp -d)"; mkdir -p tree/DEBIAN
dpkg -L slurmdbd | while read -r f; do if [ -f "$f" ]; then echo "${f#/}"; fi; done | tar -C / -cT - | tar -xC tree
dpkg-query -s slurmdbd | sed '/^Status:/d; /^Conffiles:/,/^[^ ]/{/^Conffiles:/d; /^ /d}' >tree/DEBIAN/control
sed -i 's/^Version: .*/&NEWER/' tree/DEBIAN/control
for s in preinst postinst prerm postrm; do
  if [ -f /var/lib/dpkg/info/slurmdbd.$s ]; then cp -p /var/lib/dpkg/info/slurmdbd.$s tree/DEBIAN/$s; fi
done
dpkg-deb --build tree slurmdbd.deb >/dev/null
base64 -w0 slurmdbd.deb
"""


def pushed_set(ground: Ground, folder: Path, newer: str) -> None:
    """A package set with one package in it, in the platform's store."""
    deb = folder / f"slurmdbd{newer}.deb"
    deb.write_bytes(base64.b64decode(ground.on_host(HEAD, "bash", "-c", REPACK.replace("NEWER", newer))))
    file = folder / f"set{newer}.tar"
    build._write(file, [build._read(deb)], ["slurmdbd"])
    words = ["artifact", "push", str(file), "--name", PACKAGE_SET, "--version", f"test{newer}"]
    done = ground.cli(*words)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def packaged(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[InstanceView, Path]]:
    """A cluster on a host that lacked slurmdbd, so that it came with the cluster."""
    folder = tmp_path_factory.mktemp("sets")
    ground.lab.up(1, prefix="lacking", without_packages=["slurmdbd"])
    ground.bring(LACKING)
    pushed_set(ground, folder, "")
    instance = ground.running("packaged", LACKING)
    yield instance, folder
    ground.gone(instance)
    assert "slurmdbd" not in installed(ground), "what came with the cluster is gone with it"
    for one in ground.demo.boss.list_project_artifacts(ground.research, name=PACKAGE_SET, limit=100).items:
        if one.version.startswith("test"):
            ground.demo.boss.withdraw_tenant_artifact(ground.demo.tenant_id, one.id, reason="a test made it")


def installed(ground: Ground) -> dict[str, str]:
    text = ground.on_host(LACKING, "dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\\n")
    return {line.split()[0]: line.split()[1] for line in text.splitlines() if line.split()[-1].startswith("i")}


def test_an_upgrade_keeps_jobs_and_goes_from_the_database_outwards(
    ground: Ground, cluster: InstanceView, packaged: tuple[InstanceView, Path], release: Path
) -> None:
    number = job(ground)
    asked = ground.demo.boss.upgrade_instance(ground.research, cluster.id, version=NEXT)
    wrong = ground.ended(asked.operation.id)
    assert refused(wrong) == "controller_version"
    assert NEXT in wrong.error.message
    now = ground.instance(cluster.id)
    assert (now.version, now.state) == (gpuaas_slurm.__version__, "running")
    ground.controller_restarted_with({"PYTHONPATH": str(release)})
    done = good(ground, ground.demo.boss.retry_operation(ground.research, wrong.id).operation)
    now = ground.instance(cluster.id)
    assert (now.version, now.previous_version, now.runtime_version) == (NEXT, gpuaas_slurm.__version__, "22.05.8")
    assert {m.runtime_version for m in now.members} == {"22.05.8"}
    assert done.adapter_detail["app_version"] == NEXT
    assert done.adapter_detail["versions"][WORKER]["slurmd"] == "slurm-wlm 22.05.8"
    since = lambda host, unit: int(  # noqa: E731
        ground.on_host(host, "systemctl", "show", "-P", "ActiveEnterTimestampMonotonic", unit)
    )
    assert since(HEAD, "slurmdbd") < since(HEAD, "slurmctld") < since(WORKER, "slurmd")
    dump = f"/var/lib/gpuaas-slurm/{cluster.id}/accounting.sql.gz"
    assert ground.on_host(HEAD, "sh", "-c", f"zcat {dump} | grep -c 'CREATE TABLE'").strip() != "0"
    assert state(ground, number) == "RUNNING"


def test_an_upgrade_installs_a_newer_package_where_packages_came_with_the_cluster(
    ground: Ground, packaged: tuple[InstanceView, Path], release: Path
) -> None:
    instance, folder = packaged
    before = installed(ground)["slurmdbd"]
    pushed_set(ground, folder, "+newer1")
    done = good(ground, ground.demo.boss.upgrade_instance(ground.research, instance.id, version=NEXT).operation)
    assert installed(ground)["slurmdbd"] == f"{before}+newer1"
    assert done.adapter_detail["versions"][LACKING]["package:slurmdbd"] == f"{before}+newer1"
    assert ground.as_user(LACKING, "srun", "hostname").strip() == LACKING


def test_a_rollback_is_done_by_the_version_it_goes_back_to(
    ground: Ground, cluster: InstanceView, release: Path
) -> None:
    running = ground.on_host(HEAD, "squeue", "-h", "-o", "%A %T").split()
    ground.controller_restarted_with({})
    good(ground, ground.demo.boss.roll_back_instance(ground.research, cluster.id).operation)
    now = ground.instance(cluster.id)
    assert (now.version, now.state) == (gpuaas_slurm.__version__, "running")
    healthy(ground, cluster)
    assert ground.on_host(HEAD, "squeue", "-h", "-o", "%A %T").split() == running
    ended(ground, running[0])
