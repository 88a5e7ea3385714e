"""The first `sbatch` of an ordinary user, at the moment `running` is read, on fresh instances in a row: never refused,
never waiting for an account."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.lab_stack import FINAL, Ground, times

pytestmark = [pytest.mark.lab, pytest.mark.early(17)]

HOSTS = {"gpu1": "research", "gpu2": "research", "gpu3": "training", "gpu4": "research", "gpu5": "research"}
ROUNDS = times(usual=1, soak=10)
ACCOUNT_WORDS = ("account", "assoc", "qos", "invalid")
STATE = "squeue -h -j {job} -o '%T %r'; sacct -X -nP -j {job} -o State"


def test_the_first_sbatch_on_fresh_instances_is_never_refused(ground: Ground) -> None:
    seen: Counter[str] = Counter()
    for number in range(ROUNDS):
        with ThreadPoolExecutor(len(HOSTS)) as pool:
            for reasons in pool.map(lambda host, n=number: first_job(ground, host, n), HOSTS):
                seen.update(reasons)
    print(f"\n{ROUNDS * len(HOSTS)} fresh instances, 0 refused; why their first job ever waited: {dict(seen)}")


def first_job(ground: Ground, host: str, number: int) -> set[str]:
    """A cluster of its own on this host, one job, and gone again; returns why the job waited."""
    boss, project = ground.demo.boss, ground.demo.projects[HOSTS[host]]
    placed = {"controller": [ground.allocations[host]]}
    made = boss.deploy(project, name=f"first-{host}-{number}", app_slug="slurm", placement_intent=placed, inputs={})
    while (state := boss.get_instance(project, made.instance.id).state) != "running":
        assert state in ("requested", "provisioning"), (
            f"{host}: {state} {boss.get_operation(project, made.operation.id).error}"
        )
        time.sleep(0.02)
    job = ground.as_user(host, "sbatch", "--parsable", "--output", "/dev/null", "--wrap", "id -un").strip()
    reasons = until_done(ground, host, job)
    said = ground.on_host(host, "cat", "/var/log/slurm/slurmctld.log")
    assert "invalid account" not in said.lower().replace("invalidaccount", "invalid account"), said[-3000:]
    gone = boss.decommission(project, made.instance.id).operation
    while (done := boss.get_operation(project, gone.id)).status not in FINAL:
        time.sleep(0.1)
    assert done.status == "succeeded", f"{host}: {done.error}"
    return reasons


def until_done(ground: Ground, host: str, job: str) -> set[str]:
    reasons, deadline = set[str](), time.monotonic() + 240
    while True:
        lines = ground.on_host(host, "bash", "-c", STATE.format(job=job)).split("\n")
        waiting = {line.split()[1] for line in lines if line.startswith("PENDING ")}
        reasons |= waiting
        wrong = [reason for reason in waiting if any(word in reason.lower() for word in ACCOUNT_WORDS)]
        assert not wrong, f"the first job on {host} waits: {wrong}"
        if "COMPLETED" in lines:
            return reasons
        assert time.monotonic() < deadline, f"job {job} on {host} did not end: {lines}"
        time.sleep(0.05)
