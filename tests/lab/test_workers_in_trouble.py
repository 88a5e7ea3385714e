"""Workers of one cluster, when people, jobs, hosts and the controller get in each other's way: who drained what is
respected, nothing of an operation outlives it, and every failure has a way out that works."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpuaas_sdk.client.errors import ApiError
from gpuaas_sdk.client.models import InstanceView, MemberView, OperationView

from tests.support import snapshots
from tests.support.jobs import HeldJob
from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(4)]

HEAD, FIRST, SECOND, SPARE = "gpu1", "gpu2", "gpu4", "gpu5"


class Cluster:
    """One controller and two workers, a spare host, and the few things that the tests do to them."""

    def __init__(self, ground: Ground, instance: InstanceView, points: Path) -> None:
        self.ground, self.id, self.points, self.boss = ground, instance.id, points, ground.demo.boss

    @property
    def where(self) -> tuple[str, str]:
        return self.ground.research, self.id

    def member(self, host: str) -> MemberView:
        living = [m for m in self.ground.instance(self.id).members if m.state != "removed"]
        return next(m for m in living if m.component_key == "worker" and m.node_name == host)

    def node(self, host: str) -> str:
        return next(name for name in self.nodes() if name.endswith(self.member(host).id[-8:]))

    def nodes(self) -> dict[str, str]:
        text = self.ground.on_host(HEAD, "sinfo", "-h", "-N", "-o", "%N=%t=%E")
        return dict(line.replace("$=", "=", 1).split("=", 1) for line in text.splitlines())  # $: it is reserved

    def state(self, host: str) -> str:
        """What sinfo says: `idle=none`, `drng=gpuaas:op_…: text`."""
        return self.nodes()[self.node(host)]

    def slurm(self, *words: str) -> str:
        return self.ground.on_host(HEAD, *words)

    def person_drains(self, host: str, reason: str = "fan is loud") -> None:
        self.slurm("scontrol", "update", f"nodename={self.node(host)}", "state=drain", f"reason={reason}")

    def person_undrains(self, host: str) -> None:
        how = "idle" if self.state(host).startswith("drain=") else "undrain"  # see UNDRAIN in the app's steps/nodes.py
        self.slurm("scontrol", "update", f"nodename={self.node(host)}", f"state={how}")

    def job(self, host: str, *options: str) -> str:
        """Runs there when this returns, for as long as any test here needs it."""
        wrap = ("--output", "/dev/null", "--wrap", "sleep 3000")
        job = self.ground.as_user(HEAD, "sbatch", "--parsable", "-w", self.node(host), *options, *wrap).strip()
        wait_until(lambda: self.job_state(job) == "RUNNING", 180, f"job {job} to run on {host}")
        return job

    def job_state(self, job: str) -> str:
        return self.ground.on_host(HEAD, "squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()

    def cancel_jobs(self, host: str) -> None:
        self.slurm("scancel", "-u", "gpuaas")
        wait_until(lambda: self.slurm("squeue", "-h") == "", 180, "the jobs to be gone")

    def add(self, host: str) -> OperationView:
        wanted = [self.ground.allocations[host]]
        return self.boss.add_members(*self.where, component_key="worker", allocation_ids=wanted).operations[0]

    def ask(self, verb: str, host: str, **words: Any) -> OperationView:
        return getattr(self.boss, verb)(*self.where, self.member(host).id, **words).operation

    def retry(self, operation: OperationView, **words: Any) -> OperationView:
        return self.boss.retry_operation(self.ground.research, operation.id, **words).operation

    def ended(self, operation: OperationView, code: str | None = None) -> OperationView:
        done = self.ground.ended(operation.id, timeout=240)
        found = done.error.code if done.error else None
        assert found == code, f"{done.status} {done.error}\n{self.ground.stack.log_tail('slurm-controller', 20)}"
        return done

    def says(self, operation: OperationView, words: str) -> None:
        told = lambda: self.ground.operation(operation.id).progress.message or ""  # noqa: E731
        wait_until(lambda: words in told(), 180, f"the operation to say {words!r}")

    def held_at(self, point: str) -> None:
        (self.points / point).write_text("stay")

    def wait_held(self, point: str) -> None:
        mark = self.points / point
        wait_until(lambda: mark.exists() and mark.read_text() == "here", 180, f"the controller to reach {point}")

    def go_on(self, point: str) -> None:
        (self.points / point).unlink()

    def nothing_left(self) -> None:
        """Of any operation, in Slurm: no reservation, no drain."""
        assert "No reservations" in self.slurm("scontrol", "show", "reservation")
        assert not [one for one in self.nodes().values() if "gpuaas:" in one or one.startswith("dr")], self.nodes()


@pytest.fixture(scope="module")
def cluster(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    points = tmp_path_factory.mktemp("failpoints")
    patience = {"GPUAAS_SLURM_UNREACHABLE_S": "3", "GPUAAS_FAILPOINT_DIR": str(points)}
    ground.controller_restarted_with(patience)
    made = ground.demo.boss.deploy(
        ground.research,
        name="trouble",
        app_slug="slurm",
        topology="multi_node",
        placement_intent={
            "controller": [ground.allocations[HEAD]],
            "worker": [ground.allocations[FIRST], ground.allocations[SECOND]],
        },
        inputs={},
    )
    done = ground.ended(made.operation.id)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"
    yield Cluster(ground, made.instance, points)
    ground.gone(ground.instance(made.instance.id))
    ground.controller_restarted_with({})


def test_a_canceled_add_gives_the_host_back_even_if_a_person_drained_it_meanwhile(
    ground: Ground, cluster: Cluster
) -> None:
    cluster.held_at("accept.before_act")
    adding = cluster.add(SPARE)
    cluster.wait_held("accept.before_act")
    assert cluster.state(SPARE) == f"drain=gpuaas:{adding.id}: admission"
    cluster.person_drains(SPARE)
    cluster.go_on("accept.before_act")
    cluster.says(adding, "Waiting for root, who drained gpu5 in Slurm: fan is loud")
    assert cluster.state(SPARE) == "drain=fan is loud"
    cluster.boss.cancel_operation(ground.research, adding.id)
    done = cluster.ended(adding, "canceled")
    assert done.status == "canceled"
    assert len(cluster.nodes()) == 2
    cluster.nothing_left()
    left = ground.lab.exec(SPARE, ["bash", "-c", "ls -d /etc/gpuaas-slurm /var/lib/gpuaas-slurm; pgrep -l slurm"], 60)
    assert left.text.strip() == ""


def test_no_job_starts_on_a_new_worker_before_it_is_accepted_even_if_the_controller_dies(
    ground: Ground, cluster: Cluster
) -> None:
    """The queue is full all the time; at the gate the controller is killed."""
    ground.as_user(HEAD, "sbatch", "--array=0-199", "--exclusive", "--output", "/dev/null", "--wrap", "sleep 0.3")
    cluster.held_at("accept.before_act")
    adding = cluster.add(SPARE)
    cluster.wait_held("accept.before_act")
    node = cluster.node(SPARE)
    assert cluster.state(SPARE) == f"drain=gpuaas:{adding.id}: admission"
    assert f"Nodes={node}" in cluster.slurm("scontrol", "show", "reservation")
    (cluster.points / "accept.before_act").unlink()
    (cluster.points / "accept.after_act").write_text("die")
    cluster.ended(adding)
    assert not list(cluster.points.iterdir()), "the controller died once more, right after the acceptance"
    wait_until(lambda: cluster.slurm("squeue", "-h", "-t", "R", "-w", node, "-o", "%A") != "", 180, "work on it")
    cluster.cancel_jobs(SPARE)
    first, *others = sorted(snapshots.jobs_begun_on(ground, HEAD, node))
    assert first.name == "gpuaas-proof"
    assert others
    assert all(job.start >= first.end for job in others), "a job of a user was there before the proof was over"
    cluster.nothing_left()
    assert cluster.member(SPARE).state == "ready"


def test_a_drain_tells_when_the_worker_is_free_and_whose_jobs_hold_it_and_gives_it_back_at_its_deadline(
    ground: Ground, cluster: Cluster
) -> None:
    job = cluster.job(SECOND, "--time=30")
    drain = cluster.ask("drain_member", SECOND, reason="a new fan")
    cluster.says(drain, f"Waiting for job {job} of gpuaas")
    forecast = (ground.operation(drain.id).adapter_detail or {})["forecast"]
    (told,) = forecast["jobs"]
    assert (told["id"], told["user"], told["state"]) == (job, "gpuaas", "RUNNING")
    assert told["account"] == ground.as_user(HEAD, "squeue", "-h", "-j", job, "-o", "%a").strip()
    ends = cluster.slurm("env", "TZ=UTC", "squeue", "-h", "-j", job, "-o", "%e").strip()
    assert told["ends_at"] == forecast["free_at"] == f"{ends}Z"
    member = cluster.member(SECOND)
    assert (member.state, (member.adapter_detail or {}).get("forecast")) == ("draining", forecast)
    cluster.boss.cancel_operation(ground.research, drain.id)
    cluster.ended(drain, "canceled")
    cluster.nothing_left()
    late = cluster.ended(cluster.ask("drain_member", SECOND, deadline_s=0), "drain_deadline")
    at_the_end = (late.adapter_detail or {})["forecast"]
    assert (at_the_end["jobs"][0]["id"], at_the_end["at_deadline"]) == (job, "give_back")
    assert cluster.job_state(job) == "RUNNING"
    cluster.nothing_left()
    cluster.cancel_jobs(SECOND)
    cluster.ended(cluster.retry(late))
    cluster.ended(cluster.ask("undrain_member", SECOND))
    cluster.nothing_left()


def test_jobs_go_back_to_the_queue_at_the_deadline_if_that_was_asked_for(ground: Ground, cluster: Cluster) -> None:
    job = cluster.job(SECOND)
    cluster.ended(cluster.ask("drain_member", SECOND, deadline_s=0, at_deadline="requeue"))
    wait_until(lambda: cluster.job_state(job) == "PENDING", 120, "the job to be back in the queue")
    cluster.cancel_jobs(SECOND)
    cluster.ended(cluster.ask("undrain_member", SECOND))
    stays = cluster.job(SECOND, "--no-requeue")
    refused = cluster.ended(cluster.ask("drain_member", SECOND, deadline_s=0, at_deadline="requeue"), "jobs_stay")
    assert refused.error
    assert f"Job {stays} of gpuaas" in refused.error.message
    assert cluster.job_state(stays) == "RUNNING", "what cannot start again is not ended"
    cluster.nothing_left()
    cluster.cancel_jobs(SECOND)
    cluster.ended(cluster.retry(refused))
    cluster.ended(cluster.ask("undrain_member", SECOND))


def test_a_persons_drain_survives_ours_its_cancel_and_the_death_of_the_controller(
    ground: Ground, cluster: Cluster
) -> None:
    job = cluster.job(SECOND)
    drain = cluster.ask("drain_member", SECOND)
    cluster.says(drain, f"Waiting for job {job}")
    ground.kill("slurm-controller", signal.SIGKILL)
    cluster.person_drains(SECOND)
    cluster.boss.cancel_operation(ground.research, drain.id)
    cluster.ended(drain, "canceled")
    assert cluster.state(SECOND) == "drng=fan is loud"
    cluster.cancel_jobs(SECOND)
    cluster.person_undrains(SECOND)


def test_a_persons_drain_survives_a_restart_and_a_slurmd_killed_hard_keeps_its_job(
    ground: Ground, cluster: Cluster
) -> None:
    job = HeldJob(ground, HEAD, "-w", cluster.node(SECOND))
    before = ground.on_host(SECOND, "systemctl", "show", "-P", "MainPID", "slurmd").strip()
    ground.on_host(SECOND, "kill", "-9", before)
    cluster.held_at("again_worker.before_act")
    restart = cluster.ask("restart_member", SECOND)
    cluster.wait_held("again_worker.before_act")
    cluster.person_drains(SECOND)
    cluster.go_on("again_worker.before_act")
    cluster.ended(restart)
    assert cluster.state(SECOND) == "drng=fan is loud"
    member = cluster.member(SECOND)
    assert (member.state, (member.adapter_detail or {})["reason"]) == ("ready", "fan is loud")
    assert job.state == "RUNNING"
    job.let_go(SECOND)
    job.ended_well()
    cluster.person_undrains(SECOND)


def test_of_two_removes_at_once_one_is_refused_and_one_that_cannot_go_on_leaves_no_drain(
    ground: Ground, cluster: Cluster
) -> None:
    """With a deadline it gives up, without one it waits; then its host lets no account in, and a retry takes it away."""
    job = cluster.job(SPARE)
    cluster.ended(cluster.ask("remove_member", SPARE, deadline_s=0), "drain_deadline")
    assert cluster.job_state(job) == "RUNNING"
    cluster.nothing_left()
    accepted, refused = removed_twice(cluster)
    assert refused.code in ("operation_live", "wrong_state")
    cluster.says(accepted, f"Waiting for job {job}")
    assert f"gpuaas:{accepted.id}:" in cluster.state(SPARE)
    ground.on_host(SPARE, "systemctl", "stop", "ssh")
    try:
        failed = cluster.ended(accepted, "host_unreachable")
        assert "gpuaas:" not in cluster.state(SPARE)
    finally:
        ground.on_host(SPARE, "systemctl", "start", "ssh")
    again = cluster.retry(failed)
    cluster.says(again, f"Waiting for job {job}")
    cluster.slurm("scancel", "-u", "gpuaas")
    cluster.ended(again)
    assert len(cluster.nodes()) == 2
    cluster.nothing_left()


def removed_twice(cluster: Cluster) -> tuple[OperationView, ApiError]:
    member, answers = cluster.member(SPARE).id, []

    def remove() -> None:
        try:
            answers.append(cluster.boss.remove_member(*cluster.where, member).operation)
        except ApiError as error:
            answers.append(error)

    both = [threading.Thread(target=remove) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(120)
    (refused,) = (one for one in answers if isinstance(one, ApiError))
    (accepted,) = (one for one in answers if not isinstance(one, ApiError))
    return accepted, refused


@pytest.fixture
def mend(ground: Ground) -> Iterator[Callable[[], str]]:
    """A program that the acceptance job needs is away until this is called."""
    ground.on_host(SPARE, "mv", "/usr/bin/printenv", "/usr/bin/printenv.off")
    back = "[ -e /usr/bin/printenv ] || mv /usr/bin/printenv.off /usr/bin/printenv"
    yield lambda: ground.on_host(SPARE, "bash", "-c", back)
    ground.on_host(SPARE, "bash", "-c", back)


def test_a_worker_that_fails_its_proof_leaves_slurm_with_evidence_and_can_be_given_up_or_removed(
    ground: Ground, cluster: Cluster, mend: Callable[[], str]
) -> None:
    """Then the circuit opens: a further try fails at once, and one with `--anyway` works when the cause is gone."""
    key = ground.on_host(HEAD, "base64", "-w0", "/etc/munge/munge.key")
    first = cluster.ended(cluster.add(SPARE), "job_proof_failed")
    detail = first.adapter_detail or {}
    assert (detail["step"], detail["checks"][0]["ok"], bool(detail["units"])) == ("accept", True, True)
    assert detail["worker"]["host"] == SPARE
    assert {"slurmd.service", "munge.service"} <= {unit["unit"] for unit in detail["worker"]["units"]}
    assert key[:40] not in json.dumps(detail)
    assert len(cluster.nodes()) == 2, "it takes no work"
    cluster.nothing_left()
    shown = ground.cli("operation", "show", first.id, "--project", "research").stdout
    assert "failed step" in shown
    assert "printenv" in shown
    cluster.person_drains(SECOND)
    cluster.ended(cluster.boss.restart_instance(*cluster.where).operation)
    wait_until(lambda: cluster.state(SECOND) == "drain=fan is loud", 120, "the drain to be there again")
    assert len(cluster.nodes()) == 2, "the whole goes on without it"
    assert cluster.member(SPARE).state == "failed"
    cluster.person_undrains(SECOND)
    gone = cluster.boss.tombstone_member(*cluster.where, cluster.member(SPARE).id, reason="tried enough")
    with pytest.raises(ApiError, match="not inspected since"):
        cluster.add(SPARE)
    cluster.boss.resolve_orphan(ground.research, gone.orphan_id, reason="looked at it")
    cluster.ended(cluster.add(SPARE), "job_proof_failed")
    cluster.ended(cluster.ask("remove_member", SPARE))
    assert ground.lab.exec(SPARE, ["ls", "/var/lib/gpuaas-slurm"], 20).exit != 0
    third = cluster.ended(cluster.add(SPARE), "job_proof_failed")
    refused = cluster.ended(cluster.retry(third), "bootstrap_circuit_open")
    assert refused.error
    assert "gpu5 failed 3 times" in refused.error.message
    assert (refused.adapter_detail or {})["last_failure"]["operation_id"] == third.id
    mend()
    done = ground.cli("operation", "retry", refused.id, "--anyway", "--project", "research")
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until(lambda: cluster.state(SPARE) == "idle=none", 120, "it to be idle after its proof")
    cluster.nothing_left()
