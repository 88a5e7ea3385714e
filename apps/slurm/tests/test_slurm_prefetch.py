"""A cluster that is as it was is asked once per host; what turns out to be another question is asked again."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpuaas_sdk.host_steps.host import Claim, Host, MachineLike
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.reporter import Reporter
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Stage, Step, Task
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.profile import PROFILE
from gpuaas_slurm.reconcile import prefetch
from gpuaas_slurm.reconcile.context import Tools

from apps.slurm.tests.support.slurm_examples import INSTANCE

CLAIM = Claim(INSTANCE, "op_00000001", 1)
WHERE = "alloc_00000001"


class Machine:
    """Has `memory_mb` now; every step holds."""

    def __init__(self, memory_mb: int) -> None:
        self.memory_mb, self.asked = memory_mb, list[str]()

    async def run(self, argv: list[str], *, input: Any = None, timeout: float = 60) -> Any:  # noqa: ASYNC109
        text = argv[-1]
        parts = {"facts": "say hostname", "steps": "probe_files", "versions": "say $p", "one act": "TURNS=("}
        self.asked.append("+".join(name for name, words in parts.items() if words in text.partition("run_acts() {")[2]))
        if self.asked[-1] == "one act":
            return SimpleNamespace(exit=0, stdout="@step packages|0|12\n", stderr="")
        output = (
            f"@hostname gpu1\n@memory_mb {self.memory_mb}\n@done files\n@node {self.node}|idle\n@slurmd slurm 22.05.8\n"
        )
        return SimpleNamespace(exit=0, stdout=output, stderr="")

    node = ""


class Scene:
    def __init__(self, tmp: Path, plan: Plan, memory_mb: int) -> None:
        self.tmp, self.plan, self.machine = tmp, plan, Machine(memory_mb)
        self.machine.node = plan.workers[0].node
        self.hosts = {WHERE: Host(cast(MachineLike, self.machine), CLAIM, WHERE, "gpu1", "10.88.0.11", PROFILE)}
        self.tools = Tools(Journal(tmp / "journal.db"))

    def recipe(self, _: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> list[Stage]:
        wanted = Step("files", "Writing", "preparing", f"has {facts[WHERE].memory_mb}", "true")
        return [(Task(hosts[WHERE], wanted),)]

    async def converge(self) -> tuple[dict[str, str], list[str]]:
        async def send(*_: object) -> None: ...

        async with Reporter(send) as reporter:
            seen = await prefetch.look(self.plan, self.hosts, self.tools, self.recipe)
            runner = Runner(self.tools.journal, reporter, prefetched=seen.prefetched)
            assert await runner.run(self.recipe(self.plan, self.hosts, seen.facts))
            states, running = await prefetch.how_it_runs(self.plan, self.hosts, seen, runner)
        assert running[WHERE].slurm("slurmd") == "22.05.8"
        asked, self.machine.asked = self.machine.asked, []
        return states, asked


@pytest.fixture
def scene(tmp_path: Path, plan: Plan) -> Scene:
    return Scene(tmp_path, plan, 16000)


async def test_a_host_that_is_not_known_yet_is_asked_in_turn(scene: Scene) -> None:
    states, asked = await scene.converge()
    assert asked[:2] == ["facts", "steps"]
    assert set(states.values()) == {"idle"}


async def test_a_host_that_is_as_it_was_is_asked_once(scene: Scene) -> None:
    first, _ = await scene.converge()
    again, asked = await scene.converge()
    assert asked == ["facts+steps+versions"]
    assert again == first


async def test_a_host_that_has_changed_is_asked_about_what_it_is_now(scene: Scene, facts: HostFacts) -> None:
    scene.tools.facts[WHERE] = replace(facts, memory_mb=8000)
    _, asked = await scene.converge()
    assert asked == ["facts+steps+versions", "steps"]


async def test_what_was_seen_before_an_act_counts_no_more_after_it(scene: Scene, facts: HostFacts) -> None:
    scene.tools.facts[WHERE] = replace(facts, memory_mb=16000)

    async def send(*_: object) -> None: ...

    async with Reporter(send) as reporter:
        seen = await prefetch.look(scene.plan, scene.hosts, scene.tools, scene.recipe)
        runner = Runner(scene.tools.journal, reporter, prefetched=seen.prefetched)
        other = Step("packages", "Installing", "preparing", "true", "true")
        await runner.run([(Task(scene.hosts[WHERE], other),)])
        await runner.run(scene.recipe(scene.plan, scene.hosts, seen.facts))
    assert scene.machine.asked == ["facts+steps+versions", "", "one act", "steps"]


async def test_a_host_that_left_is_not_remembered(scene: Scene) -> None:
    await scene.converge()
    scene.tools.forget([WHERE, "alloc_unknown"])
    assert scene.tools.facts == {}
