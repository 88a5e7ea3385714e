"""Workers come, are drained and go again, many times, through the public API: nothing of it stays anywhere."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from gpuaas_sdk.client.models import InstanceView, OperationView

from tests.support.lab_stack import Ground, times
from tests.support.snapshots import assert_alike, cluster, difference, host, marks

pytestmark = [pytest.mark.lab, pytest.mark.early(14)]

HEAD, WORKER, *SPARE = HOSTS = ("gpu1", "gpu2", "gpu4", "gpu5")
MOST_MARKS = 4 * len(SPARE) + 4  # a lock and an epoch for the instance, and for each member that just came and went
CYCLES = times(usual=4, soak=50)
PASSING = 5


@pytest.fixture(scope="module")
def instance(ground: Ground) -> Iterator[InstanceView]:
    placed = {"controller": [ground.allocations[HEAD]], "worker": [ground.allocations[WORKER]]}
    made = ground.demo.boss.deploy(
        ground.research, name="cycles", app_slug="slurm", topology="multi_node", placement_intent=placed, inputs={}
    )
    good(ground, made.operation)
    yield ground.instance(made.instance.id)
    ground.gone(ground.instance(made.instance.id))


def good(ground: Ground, operation: OperationView) -> None:
    done = ground.ended(operation.id, timeout=400)
    assert done.status == "succeeded", f"{done.error}\n{ground.stack.log_tail('slurm-controller', 30)}"


def test_cycles_of_add_drain_and_remove_leave_nothing_behind(ground: Ground, instance: InstanceView) -> None:
    before = settled(ground, instance)
    for _ in range(CYCLES // len(SPARE) - 1):
        one_cycle(ground, instance)
    an_hour_passes(ground)
    one_cycle(ground, instance)
    assert_alike(before, settled(ground, instance))
    of_one_cycle = {name: len(marks(ground, name)) for name in (HEAD, *SPARE)}
    assert all(count <= MOST_MARKS for count in of_one_cycle.values()), of_one_cycle
    print(f"\n{CYCLES} cycles of add, drain and remove left nothing behind")


def one_cycle(ground: Ground, instance: InstanceView) -> None:
    """Both workers side by side, as the app promises."""
    boss, project = ground.demo.boss, ground.research
    wanted = [ground.allocations[name] for name in SPARE]
    added = boss.add_members(project, instance.id, component_key="worker", allocation_ids=wanted)
    for one in added.operations:
        good(ground, one)
    there = [m.id for m in ground.instance(instance.id).members if m.node_name in SPARE and m.state != "removed"]
    assert len(there) == len(SPARE)
    for act in (boss.drain_member, boss.remove_member):
        for accepted in [act(project, instance.id, member) for member in there]:
            good(ground, accepted.operation)


def an_hour_passes(ground: Ground) -> None:
    """For the marks in /run, by which a host refuses late commands."""
    for name in HOSTS:
        ground.on_host(
            name, "find", "/run/gpuaas-slurm", "-type", "f", "-exec", "touch", "-d", "2 hours ago", "{}", "+"
        )


def settled(ground: Ground, instance: InstanceView) -> dict[str, Any]:
    """Twice the same: a look between operations may just be there, and what is left behind stays."""
    seen = everything(ground, instance)
    for _ in range(PASSING):
        former, seen = seen, everything(ground, instance)
        if not difference(former, seen):
            break
    return seen


def everything(ground: Ground, instance: InstanceView) -> dict[str, Any]:
    with ThreadPoolExecutor(len(HOSTS)) as pool:
        hosts = dict(zip(HOSTS, pool.map(lambda name: host(ground, name), HOSTS), strict=True))
    return {
        "hosts": hosts,
        "cluster": cluster(ground, HEAD, jobs=False),
        "members": [[m.component_key, m.node_name, m.state] for m in ground.instance(instance.id).members],
        "grants": [g.id for g in ground.demo.boss.list_access_grants(ground.research, limit=200).items],
        "health": [ground.instance(instance.id).state, ground.instance(instance.id).health.status],
    }
