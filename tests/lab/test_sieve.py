"""The controller is killed after each API write and each host command of deploy, add, remove and decommission.

At the end no difference is left: platform, configuration, nodes, processes and journals equal those of a clean run.
"""

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpuaas_lab.stack.services import Service
from gpuaas_sdk.client.models import OperationView

from tests.support import crash_sweep
from tests.support.lab_stack import Ground, times, wait_until
from tests.support.snapshots import assert_alike, cluster, host, platform

pytestmark = [pytest.mark.lab, pytest.mark.early(1)]

HEAD, WORKER, SPARE = HOSTS = "gpu1", "gpu2", "gpu4"
SIEVE = crash_sweep.__file__
HOW = ["both", "running"] if times(usual=0, soak=1) else ["kinds"]  # see crash_sweep.py
FEWEST = {"kinds": 70, "both": 130, "running": 25}
OF_EACH_CLAIM = {"prove_clean", "forget", "forget_member"}  # it gathers its own evidence and takes its own notes away


@pytest.fixture(scope="module")
def clean(ground: Ground) -> dict[str, Any]:
    return story(ground)


@pytest.fixture
def points(ground: Ground, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "points"
    folder.mkdir()
    yield folder
    ground.controller_restarted_with({"AFTER": "the sieve"})


@pytest.mark.parametrize("how", HOW)
def test_a_controller_killed_everywhere_leaves_what_a_clean_run_leaves(
    ground: Ground, clean: dict[str, Any], points: Path, how: str
) -> None:
    """A command that is cut in the middle (the host ends the sessions of a claim that is over) is given again, and so
    is its job, and who dies early tells no step; after whole commands, each act, job and step is there once."""
    die_everywhere(ground, points, how)
    killed = story(ground)
    names = sorted(path.name for path in points.iterdir())
    print(f"\n{how}: killed at {len(names)} points: {dict(Counter(name.partition('.')[0] for name in names))}")
    assert len(names) >= FEWEST[how], names
    assert_alike(killed["told"]["before"], killed["told"]["gone"]["hosts"])
    once = () if how != "running" else ("journal", "jobs", "commands", "steps told")
    assert_alike(without(clean["told"], *once), without(killed["told"], *once))
    if how != "running":
        assert_alike(acts_of_clean_run(ground, clean["done"]), acts_of(points.parent / "acts"))


def without(told: Any, *names: str) -> Any:
    if not isinstance(told, dict):
        return told
    return {name: without(part, *names) for name, part in told.items() if name not in names}


def die_everywhere(ground: Ground, points: Path, how: str) -> None:
    """The same installation (holder, state, network) as the usual controller, in which it takes the usual one's place."""
    before = ground.stack.folder.process("slurm-controller")
    identity, state = ground.demo.identities["research"], ground.stack.root / "slurm-controller"
    words = ["--points", points, "--identity", identity, "--state", state, "--holder", "slurm-controller", "--how", how]
    argv = [*ground.space.prefix, sys.executable, str(SIEVE), *map(str, words)]
    ground.stack.folder.want(Service("slurm-controller", argv))
    wait_until(lambda: ground.stack.folder.process("slurm-controller") not in (None, before), 120, "the sieve to start")


def story(ground: Ground) -> dict[str, Any]:
    """A cluster is refused once, comes, grows, shrinks and goes; after each chapter everything is written down."""
    boss, project = ground.demo.boss, ground.research
    placed = {"controller": [ground.allocations[HEAD]], "worker": [ground.allocations[WORKER]]}
    told: dict[str, Any] = {"before": hosts(ground)}
    squat(ground)
    made = boss.deploy(
        project, name="sieve", app_slug="slurm", topology="multi_node", placement_intent=placed, inputs={}
    )
    instance, refused = made.instance.id, ground.ended(made.operation.id, timeout=400)
    assert refused.error
    assert refused.error.code == "port_in_use", refused.error
    ground.on_host(HEAD, "systemctl", "stop", "squatter")
    told["refused"] = {"platform": platform(ground, instance), "hosts": hosts(ground)}

    done = [good(ground, boss.retry_operation(project, refused.id).operation)]
    told["deployed"] = chapter(ground, instance)

    wanted = [ground.allocations[SPARE]]
    batch = boss.add_members(project, instance, component_key="worker", allocation_ids=wanted)
    done += [good(ground, one) for one in batch.operations]
    told["grown"] = chapter(ground, instance)

    member = next(m for m in ground.instance(instance).members if m.node_name == SPARE)
    done.append(good(ground, boss.remove_member(project, instance, member.id).operation))
    told["shrunk"] = chapter(ground, instance)

    done.append(good(ground, boss.decommission(project, instance).operation))
    told["gone"] = {"platform": platform(ground, instance), "hosts": hosts(ground)}
    return {"told": told, "done": done}


def squat(ground: Ground) -> None:
    """Another process has the scheduler's port."""
    ground.on_host(HEAD, "systemd-run", "--quiet", "--unit=squatter", "python3", "-m", "http.server", "6817")
    taken = "ss -ltnH 'sport = :6817' | grep -q ."
    wait_until(lambda: ground.lab.exec(HEAD, ["bash", "-c", taken], timeout=60).exit == 0, 120, "the port to be taken")


def good(ground: Ground, operation: OperationView) -> OperationView:
    done = ground.ended(operation.id, timeout=400)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"
    return done


def chapter(ground: Ground, instance: str) -> dict[str, Any]:
    """Written down when the look that follows the operation has been there."""
    wait_until(lambda: looked_at(ground, instance), 240, "a look at the cluster as it is now")
    return {"platform": platform(ground, instance), "hosts": hosts(ground), "cluster": cluster(ground, HEAD)}


def looked_at(ground: Ground, instance: str) -> bool:
    seen = ground.instance(instance)
    workers = sum(m.component_key == "worker" and m.state == "ready" for m in seen.members)
    words = f"{workers} of {workers} worker"
    still = any("An operation works" in one.message for one in seen.conditions)
    counted = (seen.access or {}).get("workers") == workers
    return counted and not still and words in seen.health.sentence


def hosts(ground: Ground) -> dict[str, Any]:
    return {name: {**host(ground, name), "journal": journal(ground, name)} for name in HOSTS}


def journal(ground: Ground, name: str) -> list[str]:
    """What the host itself wrote down, one line per act: each step once."""
    text = ground.lab.exec(name, ["cat", "/var/lib/gpuaas-slurm/journal.jsonl"], timeout=60).text
    steps = [json.loads(line)["step"] for line in text.splitlines()]
    return sorted(step for step in steps if step not in OF_EACH_CLAIM)


def acts_of_clean_run(ground: Ground, operations: list[OperationView]) -> dict[str, int]:
    """From the controller's journal: also what was done on hosts that keep none any more."""
    kinds, hosts = {one.id: one.kind for one in operations}, {a: name for name, a in ground.allocations.items()}
    with sqlite3.connect(ground.stack.root / "slurm-controller" / "journal.db") as store:
        rows = store.execute("SELECT operation_id, allocation_id, step FROM steps WHERE phase = 'verified'").fetchall()
    ours = [(step, hosts[allocation], kinds[operation]) for operation, allocation, step in rows if operation in kinds]
    return _once_each(f"{step} on {name} in {kind}" for step, name, kind in ours)


def acts_of(file: Path) -> dict[str, int]:
    """What the sieve saw: every act that a host did."""
    return _once_each(file.read_text().splitlines())


def _once_each(lines: Iterable[str]) -> dict[str, int]:
    return dict(Counter(line for line in lines if line.split()[0] not in OF_EACH_CLAIM))
