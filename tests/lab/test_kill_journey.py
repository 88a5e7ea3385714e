"""kill -9 of the core in every stage of a deploy, while the controller is held there; and a controller that sleeps through the end of
its claim. The controller itself is killed in test_sieve.py."""

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_lab.stack.platform import program

from tests.support.lab_stack import FINAL, Ground, times, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(2)]


def steps(kind: str) -> list[str]:
    """One of each stage; `make soak` takes all."""
    told = subprocess.run(
        [program("gpuaas-slurm"), "steps", "-o", "json"], capture_output=True, text=True, timeout=120, check=True
    )
    known = [one for one in json.loads(told.stdout)[kind] if not one["when"]]
    if times(usual=0, soak=1):
        return [one["name"] for one in known]
    return list({one["stage"]: one["name"] for one in known}.values())


def host_acts(ground: Ground, host: str) -> Counter[str]:
    """What the host itself wrote down: one line per act, with its process."""
    text = ground.lab.exec(host, ["cat", "/var/lib/gpuaas-slurm/journal.jsonl"], timeout=60).text
    return Counter(json.loads(line)["step"] for line in text.splitlines())


@pytest.fixture
def points(ground: Ground, tmp_path: Path) -> Iterator[Path]:
    """A file `<step>.<moment>` in this folder holds the controller there until it is gone."""
    folder = tmp_path / "failpoints"
    folder.mkdir()
    ground.controller_restarted_with({"GPUAAS_FAILPOINT_DIR": str(folder)})
    yield folder
    ground.controller_restarted_with({})


def assert_one_of_each(ground: Ground) -> None:
    """Nothing exists twice in the cluster: one node, one account, one association, one process per daemon."""
    assert len(ground.on_host("gpu2", "sinfo", "-h", "-N", "-o", "%N").split()) == 1
    users = ground.on_host("gpu2", "sacctmgr", "-nP", "show", "assoc", "where", "user=gpuaas", "format=account,user")
    assert len(users.split()) == 1
    daemons = ground.on_host("gpu2", "ps", "-eo", "comm=").split()
    counts = Counter(name for name in daemons if name in ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd"))
    assert counts == Counter({"slurmctld": 1, "slurmd": 1, "slurmdbd": 1, "munged": 1, "mariadbd": 1})


def test_the_core_killed_in_every_stage_still_finishes_once(ground: Ground, points: Path) -> None:
    """The controller is held after the last step of each stage while the core dies and comes back; then it goes on.

    On a busy machine the core may be away so long that the claim ends. If that happens while a step runs, the next
    claim either finds the step done, and its point is never reached, or repeats it: one step for each lost claim.
    """
    for name in steps("deploy"):
        (points / f"{name}.after_act").touch()
    instance, operation = ground.deploy("core-dies", "gpu2")
    while reached := next_point(ground, points, operation.id):
        ground.kill("core")
        ground.stack.wait_ready()
        reached.unlink()
    done = ground.ended(operation.id)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 20)}"
    missed = [path.name for path in points.iterdir()]
    repeated = {step: count for step, count in host_acts(ground, "gpu2").items() if count > 1}
    lost_claims = done.claim_epoch - 1
    assert len(missed) + sum(repeated.values()) - len(repeated) <= lost_claims, (missed, repeated, lost_claims)
    assert_one_of_each(ground)
    events = ground.events()
    sequences = [event.sequence for event in events]
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences))), "the event sequence has a hole"
    ended = [
        e.type for e in events if e.data.get("operation_id") == operation.id and e.type == "apps.operation.succeeded"
    ]
    assert len(ended) == 1
    ground.gone(ground.instance(instance.id))


def here(points: Path) -> Path | None:
    return next((path for path in sorted(points.iterdir()) if path.read_text() == "here"), None)


def next_point(ground: Ground, points: Path, operation_id: str) -> Path | None:
    """Wait until the controller is held at a point, or the operation has ended."""
    wait_until(
        lambda: here(points) is not None or ground.operation(operation_id).status in FINAL,
        400,
        "the controller to reach its next step",
    )
    return here(points)


def test_a_controller_that_wakes_up_after_losing_its_claim_changes_nothing(ground: Ground, points: Path) -> None:
    """It sleeps in the middle of a deploy while another one tears the instance down; then it wakes, with a dead claim."""
    (points / "scheduler.before_act").touch()
    instance, operation = ground.deploy("sleeper", "gpu2")
    wait_until(lambda: here(points) is not None, 180, "the controller to reach the step")
    ground.signal("slurm-controller", signal.SIGSTOP)
    ground.start_controller(name="slurm-controller-b")
    try:
        ground.gone(ground.instance(instance.id))
        clean = ground.on_host("gpu2", "ls", "/etc/slurm", "/var/lib")
        log = ground.stack.folder.log("slurm-controller")
        asleep = len(log.read_text())
        (points / "scheduler.before_act").unlink()
        ground.signal("slurm-controller", signal.SIGCONT)
        lost = ("its lease ended", "stale")
        wait_until(
            lambda: any(one in log.read_text()[asleep:].lower() for one in lost), 120, "it to find its claim dead"
        )
        time.sleep(2)  # and to do whatever it would do nevertheless
    finally:
        ground.signal("slurm-controller", signal.SIGCONT)
        ground.stack.folder.unwant("slurm-controller-b")
    assert ground.operation(operation.id).status == "superseded"
    assert ground.instance(instance.id).state == "deleted"
    assert not {"slurmctld", "slurmd", "slurmdbd"} & set(ground.on_host("gpu2", "ps", "-eo", "comm=").split())
    assert ground.on_host("gpu2", "ls", "/etc/slurm", "/var/lib") == clean
