"""The main job, in the lab, through the public API only: a real Slurm comes up, runs real jobs, and goes away cleanly."""

import json

import pytest

from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(18)]


@pytest.fixture(scope="module")
def cluster(ground: Ground):
    done = ground.cli(
        "instance",
        "deploy",
        "slurm",
        "--name",
        "alpha",
        "--project",
        "research",
        "--place",
        f"controller={ground.allocations['gpu1']}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {one.name: one for one in ground.demo.boss.list_instances(ground.research).items}
    yield found["alpha"], done.stdout
    if ground.instance(found["alpha"].id).state != "deleted":
        ground.gone(found["alpha"])


def test_the_cli_tells_the_steps_as_they_happen_and_ends_with_health(ground: Ground, cluster) -> None:
    _, said = cluster
    for words in ("Checking the host", "starting the scheduler", "first job"):
        assert words in said, said
    assert "a job ran" in said


def test_a_cluster_is_running_healthy_and_every_member_is_ready(ground: Ground, cluster) -> None:
    instance, _ = cluster
    assert instance.state == "running"
    wait_until(lambda: ground.instance(instance.id).health.status == "healthy", 120, "it to be seen healthy")
    assert {(m.component_key, m.state) for m in instance.members} == {("controller", "ready"), ("worker", "ready")}
    assert instance.runtime_version == "22.05.8"


def test_srun_and_sbatch_and_a_gpu_work_for_an_ordinary_user(ground: Ground, cluster) -> None:
    assert ground.as_user("gpu1", "srun", "hostname").strip() == "gpu1"
    assert ground.as_user("gpu1", "srun", "--gres=gpu:1", "printenv", "CUDA_VISIBLE_DEVICES").strip() == "0"
    job = ground.as_user(
        "gpu1", "sbatch", "--parsable", "--wait", "--output=/tmp/out-%j", "--wrap", "echo from-a-batch-job"
    ).strip()
    assert "from-a-batch-job" in ground.on_host("gpu1", "cat", f"/tmp/out-{job}")


def test_the_first_batch_jobs_never_show_an_invalid_account(ground: Ground, cluster) -> None:
    for _ in range(5):
        job = ground.as_user("gpu1", "sbatch", "--parsable", "--output=/dev/null", "--wrap", "true").strip()
        seen = ground.as_user("gpu1", "squeue", "-h", "-j", job, "-o", "%r")
        assert "InvalidAccount" not in seen


def test_a_user_without_an_association_is_refused(ground: Ground, cluster) -> None:
    done = ground.lab.exec("gpu1", ["runuser", "-u", "nobody", "--", "srun", "--time=1", "hostname"], timeout=180)
    assert done.exit != 0
    assert "Invalid account" in done.error_text


def test_the_daemons_log_no_pmix_errors(ground: Ground, cluster) -> None:
    logs = ground.on_host(
        "gpu1", "sh", "-c", "cat /var/log/slurm/*.log; journalctl -u slurmd -u slurmctld --no-pager -o cat || true"
    )
    assert not [line for line in logs.splitlines() if "pmix" in line.lower() and "error" in line.lower()]


def test_the_access_bundle_says_what_was_really_tried(ground: Ground, cluster) -> None:
    instance, _ = cluster
    text = ground.cli("access", "alpha", "--project", "research")
    assert text.returncode == 0
    assert "srun" in text.stdout
    tried = [one["tried"] for one in instance.access["commands"]]
    assert all(word.startswith(("exit 0", "job")) for word in tried)


def test_the_events_tell_the_story_with_the_identifiers_of_the_seeds(ground: Ground, cluster) -> None:
    instance, _ = cluster
    events = ground.events()
    mine = [e for e in events if e.data.get("app_instance_id") == instance.id]
    kinds = [e.type for e in mine]
    for kind in (
        "apps.instance.requested",
        "apps.operation.claimed",
        "apps.instance.provisioning",
        "apps.instance.running",
    ):
        assert kind in kinds
    wanted = {
        "org_id",
        "project_id",
        "app_slug",
        "app_instance_id",
        "operating_mode",
        "control_plane_scope",
        "runtime_backend",
    }
    assert all(wanted <= set(e.data) for e in mine)


def test_one_correlation_id_leads_from_the_request_to_the_controllers_log(ground: Ground, cluster) -> None:
    instance, _ = cluster
    operation = ground.operation(str(instance.last_operation_id))

    def said_by(service: str) -> list[str]:
        lines = ground.stack.folder.log(service).read_text().splitlines(keepends=True)
        return [line for line in lines if operation.correlation_id in line and line.endswith("\n")]

    for service in ("slurm-controller", "core"):
        wait_until(lambda service=service: bool(said_by(service)), 60, f"the log of {service} to name it")
    assert any(json.loads(line).get("step") for line in said_by("slurm-controller"))


def test_a_host_that_is_cut_off_is_unknown_then_ready_again_and_its_jobs_never_notice(ground: Ground, cluster) -> None:
    node = ground.nodes["gpu1"]
    wrap = "sleep 20; echo it ran on"
    job = ground.as_user("gpu1", "sbatch", "--parsable", "--output=/tmp/cut-%j", "--wrap", wrap).strip()
    ground.lab.cut("gpu1")
    try:
        wait_until(lambda: ground.demo.boss.get_node(node).state == "unknown", 150, "the silence to be noticed")
        assert ground.demo.boss.get_allocation(ground.research, ground.allocations["gpu1"]).state == "active"
    finally:
        ground.lab.mend("gpu1")
    wait_until(lambda: ground.demo.boss.get_node(node).state == "ready", 150, "the host to be heard again")
    mine = [one.type for one in ground.events() if one.subject == node]
    assert mine[-2:] == ["capacity.node.unknown", "capacity.node.ready"]
    wait_until(lambda: not ground.as_user("gpu1", "squeue", "-h", "-j", job).strip(), 180, "the job to end")
    assert "it ran on" in ground.on_host("gpu1", "cat", f"/tmp/cut-{job}")
    assert ground.as_user("gpu1", "srun", "hostname").strip() == "gpu1"


def test_services_come_back_when_the_host_does(ground: Ground, cluster) -> None:
    ground.lab.poweroff("gpu1")
    ground.lab.boot("gpu1")
    script = "for i in $(seq 240); do sinfo -h -t idle,mix -o %D | grep -q 1 && exit 0; sleep 1; done; sinfo; exit 1"
    ground.on_host("gpu1", "sh", "-c", script, timeout=400)
    assert ground.as_user("gpu1", "srun", "hostname").strip() == "gpu1"


def test_decommission_leaves_nothing_on_the_host_and_says_so(ground: Ground, cluster) -> None:
    instance, _ = cluster
    done = ground.gone(instance)
    evidence = done.evidence[ground.allocations["gpu1"]]
    assert all(check["ok"] for check in evidence["checks"])
    assert ground.instance(instance.id).state == "deleted"
    look = (
        "ls -A /etc/slurm /etc/munge /var/lib /etc/systemd/system; ps -eo comm= | grep -E 'slurm|munge|maria' || true"
    )
    untouched = ground.on_host("gpu3", "sh", "-c", look)
    assert ground.on_host("gpu1", "sh", "-c", look) == untouched
    assert "gpuaas:" not in ground.on_host("gpu1", "cat", "/etc/passwd")
