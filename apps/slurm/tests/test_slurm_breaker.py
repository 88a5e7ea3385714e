"""The circuit breaker: who failed too often is not tried again blindly, and every way out of that works."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpuaas_sdk import Done, Failed, Work
from gpuaas_sdk.host_steps import breaker
from gpuaas_sdk.host_steps.breaker import MOST_PER_HOST, MOST_PER_VERSION, WINDOW_S
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.outcomes import translate_errors
from gpuaas_slurm.reconcile.context import Tools


class Scene:
    """Operations on hosts that fail as reported; the clock is ours."""

    def __init__(self, path: Path | str) -> None:
        self.path, self.time, self.count, self.tries = path, 1_000_000.0, 0, 0
        self.reopened()

    def reopened(self) -> None:
        self.tools = Tools(Journal(self.path, clock=lambda: self.time))

    async def add(self, host: str = "gpu1", fails: str | None = None, **params: Any) -> Any:
        self.count += 1
        member = SimpleNamespace(
            id=f"mem_{host}", allocation_id=f"alloc_{host}", node_name=host, component_key="worker"
        )
        operation = SimpleNamespace(
            id=f"op_{self.count:08d}", kind="add_member", member_id=member.id, params=params, correlation_id="c"
        )
        work = cast(Work, SimpleNamespace(operation=operation, members=lambda: [member]))

        async def body() -> Done:
            self.tries += 1
            if fails:
                raise StepFailed(fails, f"{host} broke at try {self.tries}", {"host": host, "log": ["my last words"]})
            return Done("it works")

        return await translate_errors(work, self.tools, lambda: breaker.with_circuit_breaker(work, self.tools, body))


@pytest.fixture
def scene(place: Path | str) -> Scene:
    return Scene(place)


async def broken(scene: Scene, host: str = "gpu1", times: int = MOST_PER_HOST) -> None:
    for _ in range(times):
        assert (await scene.add(host, fails="step_failed")).code == "step_failed"


async def test_after_three_failures_a_host_is_refused_at_once_with_the_last_evidence_and_a_way_out(
    scene: Scene,
) -> None:
    await broken(scene)
    tried = scene.tries
    refused = await scene.add()
    assert isinstance(refused, Failed)
    assert (refused.code, scene.tries) == ("bootstrap_circuit_open", tried), "the host was not touched"
    assert "gpu1 failed 3 times" in refused.why
    assert "broke at try 3" in refused.why
    assert (refused.adapter_detail or {})["last_failure"]["log"] == ["my last words"]
    assert f"operation retry op_{scene.count:08d} --anyway" in refused.way_out
    assert isinstance(await scene.add("gpu2"), Done), "another host is not concerned"


async def test_a_person_who_says_so_gets_another_try(scene: Scene) -> None:
    await broken(scene)
    assert isinstance(await scene.add(try_anyway=True), Done)
    assert isinstance(await scene.add(), Done), "a success closes the circuit"


async def test_it_closes_when_the_window_is_over(scene: Scene) -> None:
    await broken(scene)
    scene.time += WINDOW_S - 1
    assert (await scene.add()).code == "bootstrap_circuit_open"
    scene.time += 2
    assert isinstance(await scene.add(), Done)


async def test_a_new_version_of_the_app_starts_with_a_closed_circuit(scene: Scene) -> None:
    await broken(scene)
    scene.tools.profile = replace(scene.tools.profile, version="99.0.0")
    assert isinstance(await scene.add(), Done)


async def test_the_memory_survives_the_process(scene: Scene) -> None:
    await broken(scene)
    scene.tools.journal.close()
    scene.reopened()
    assert (await scene.add()).code == "bootstrap_circuit_open"


@pytest.mark.parametrize("code", ["package_missing", "clock_wrong", "port_in_use", "disk_full", "drained_by_person"])
async def test_a_question_that_is_answered_with_no_is_asked_as_often_as_people_like(scene: Scene, code: str) -> None:
    for _ in range(MOST_PER_HOST + 1):
        assert (await scene.add(fails=code)).code == code


async def test_a_success_in_between_counts_from_the_beginning(scene: Scene) -> None:
    await broken(scene, times=MOST_PER_HOST - 1)
    assert isinstance(await scene.add(), Done)
    await broken(scene, times=MOST_PER_HOST - 1)
    assert isinstance(await scene.add(), Done)


async def test_a_version_that_fails_everywhere_is_stopped_for_hosts_it_was_not_tried_on(scene: Scene) -> None:
    for number in range(MOST_PER_VERSION):
        await broken(scene, f"gpu{number}", 1)
    refused = await scene.add("fresh")
    assert refused.code == "bootstrap_circuit_open"
    assert f"failed {MOST_PER_VERSION} times in a row, on {MOST_PER_VERSION} hosts" in refused.why
    assert isinstance(await scene.add("fresh", try_anyway=True), Done)
    assert isinstance(await scene.add("gpu99"), Done)


async def test_a_success_somewhere_lets_the_version_go_on(scene: Scene) -> None:
    for number in range(MOST_PER_VERSION - 1):
        await broken(scene, f"gpu{number}", 1)
    scene.time += 1
    assert isinstance(await scene.add("good"), Done)
    scene.time += 1
    await broken(scene, "bad", 1)
    assert isinstance(await scene.add("fresh"), Done)
