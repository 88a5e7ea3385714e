"""A whole look at a cluster whose hosts a test plays: who is asked, what is reported, and what is remembered."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpuaas_sdk import Observation, ObserveContext
from gpuaas_sdk.client.errors import MachineUnreachable
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_slurm.reconcile.context import Tools
from gpuaas_slurm.reconcile.observe import IN_TURN, observe

PARTITION = "PartitionName=main Nodes=ALL State=UP"
HEAD = f"""@now_ms {{now}}
@version slurm-wlm 22.05.8
@files listed
@unit slurmctld.service|active
@unit slurmdbd.service|active
@unit mariadb.service|active
@ping Slurmctld(primary) at gpu0 is UP
@database answers
@accounts answer
@made Account - 'team-a':
@made Parent - 'team-a'
@made User - 'gpuaas':
@assoc team-a||||||
@assoc team-a|gpuaas|||||
@wanted {PARTITION}
@partition {PARTITION}
"""


@dataclass
class Cluster:
    """One controller's host and some workers'; `nodes` is what Slurm says of each worker."""

    count: int
    away: set[str] = field(default_factory=set)
    nodes: dict[int, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)

    def look(self) -> ObserveContext:
        members = [self.member("controller", 0, 0)] + [self.member("worker", n, n + 1) for n in range(self.count)]
        instance = SimpleNamespace(
            id="inst_00000001",
            name="train",
            inputs={},
            members=members,
            project_id="prj_00000001",
            last_operation_id="op_00000001",
            access={"cluster": "train", "sbatch_headers": [], "versions": {}},
            adapter_detail=None,
        )
        look = ObserveContext(cast(Any, SimpleNamespace(get_project=self.project)), cast(Any, instance))
        look.machine = cast(Any, lambda allocation_id: SimpleNamespace(run=self.runner(allocation_id)))
        return look

    def member(self, key: str, ordinal: int, host: int) -> Any:
        return SimpleNamespace(
            id=f"mem_{host:08d}", component_key=key, ordinal=ordinal, allocation_id=f"alloc_{host:08d}", state="ready",
            node_name=f"gpu{host}", address=f"10.0.0.{host + 1}", current_operation_id=None, runtime_state="idle", facts=None,
        )  # fmt: skip

    async def project(self, _: str) -> Any:
        return SimpleNamespace(slug="team-a")

    def runner(self, allocation_id: str) -> Any:
        host = f"gpu{int(allocation_id[-8:])}"

        async def run(argv: list[str], **_: Any) -> Any:
            if host in self.away:
                raise MachineUnreachable(f"{host} cannot be reached.")
            headers = "sbatch --test-only" in argv[2]
            self.asked.append(f"{host} headers" if headers else host)
            return SimpleNamespace(exit=0, stdout=self.says(host, headers), stderr="")

        return run

    def says(self, host: str, headers: bool) -> str:
        import time

        now = round(time.time() * 1000)
        if headers:
            return "@header main||0\n"
        if host == "gpu0":
            lines = [
                f"@node worker{n}-{n + 1:08d}|{self.nodes.get(n, 'idle')}|22.05.8|(null)|Unknown|Unknown|none"
                for n in range(self.count)
            ]
            return HEAD.format(now=now) + "\n".join(lines)
        state = "failed" if host in self.dead else "active"
        return f"@now_ms {now}\n@files listed\n@unit slurmd.service|{state}"


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(Journal(tmp_path / "journal.db"))


async def seen(look: ObserveContext, tools: Tools) -> Observation:
    found = await observe(look, tools)
    assert found is not None
    return found


async def test_equal_looks_say_equal_things_and_try_a_header_once(tools: Tools) -> None:
    cluster = Cluster(2)
    look = cluster.look()
    first = await seen(look, tools)
    assert (first.status, first.sentence) == ("healthy", "2 of 2 workers take jobs.")
    assert first.access
    assert [one["partition"] for one in first.access["sbatch_headers"]] == ["main"]
    look.instance.access = first.access
    cluster.nodes = {0: "mix"}
    assert await seen(look, tools) == first, "a job that runs is no news"
    assert cluster.asked.count("gpu0 headers") == 1


async def test_many_workers_take_turns_and_each_has_one(tools: Tools) -> None:
    cluster = Cluster(3 * IN_TURN)
    look = cluster.look()
    for _ in range(3):
        cluster.asked.clear()
        await seen(look, tools)
        assert len([host for host in cluster.asked if host != "gpu0" and "headers" not in host]) == IN_TURN
    assert len(look.memory["hosts"]) == 3 * IN_TURN


async def test_a_worker_in_trouble_is_asked_every_time_and_forgotten_when_it_is_well(tools: Tools) -> None:
    cluster = Cluster(3 * IN_TURN, nodes={9: "down*"}, dead={"gpu10"})
    look = cluster.look()
    for _ in range(2):
        found = await seen(look, tools)
        assert "slurmd on gpu10 is failed" in found.sentence
    cluster.nodes, cluster.dead = {}, set()
    cluster.asked.clear()
    for _ in range(3):
        await seen(look, tools)
    assert (await seen(look, tools)).status == "healthy"


async def test_one_silence_of_a_host_is_nothing_two_are(tools: Tools) -> None:
    cluster = Cluster(2, away={"gpu2"})
    look = cluster.look()
    assert (await seen(look, tools)).status == "healthy"
    again = await seen(look, tools)
    assert (again.status, "gpu2 does not answer" in again.sentence) == ("degraded", True)
    assert await seen(look, tools) == again
    cluster.away = set()
    assert (await seen(look, tools)).status == "healthy"


async def test_an_operation_makes_a_look_forget_what_it_remembered(tools: Tools) -> None:
    cluster = Cluster(1, away={"gpu1"})
    look = cluster.look()
    await seen(look, tools)
    look.instance.last_operation_id = "op_00000002"
    await seen(look, tools)
    assert look.memory["missed"] == {"mem_00000001": 1}


async def test_a_controllers_host_that_is_away_is_not_called_healthy(tools: Tools) -> None:
    found = await seen(Cluster(1, away={"gpu0"}).look(), tools)
    assert found.status == "unknown"
    assert found.members == []
    assert found.access
    assert "commands" in found.access["stale"]
