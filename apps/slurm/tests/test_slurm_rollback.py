"""An operation on a worker that fails lets go of what it held in Slurm; a person's drain is left alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpuaas_sdk import Again, Failed, Work
from gpuaas_sdk.client.errors import MachineUnreachable
from gpuaas_sdk.host_steps.journal import Journal, Key
from gpuaas_slurm.reconcile.context import Tools
from gpuaas_slurm.reconcile.rollback import with_rollback

from apps.slurm.tests.support.slurm_examples import INSTANCE, PROJECT, member

OPERATION = "op_00000001"
HEAD, WORKER = member("controller", 1), member("worker", 2, allocation="alloc_00000002", address="10.88.0.12")
BROKEN = Failed("step_failed", "It broke.", "Mend it.", retryable=True)


class Scene:
    """A controller's host that says what we tell it to, and remembers what it was asked."""

    def __init__(self, path: Path) -> None:
        self.journal = Journal(path)
        self.node, self.outside, self.away = "drain|root|none", False, set[str]()
        self.asked: list[tuple[str, str]] = []

    async def run(self, argv: list[str], *, input: Any = None, timeout: float = 60) -> Any:  # noqa: ASYNC109
        text = argv[-1]
        step = text.split("STEP=", 1)[1].split("\n", 1)[0]
        self.asked.append((step, text))
        output = "@outside yes" if self.outside and "say outside" in text else f"@node {self.node}"
        return SimpleNamespace(exit=0, stdout=output, stderr="")

    def connect(self, work: Work, allocation_id: str) -> Any:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Any]:
            if allocation_id in self.away:
                raise MachineUnreachable("no answer")
            yield self

        return opened()

    async def fails(self, kind: str) -> Failed:
        members = [SimpleNamespace(**vars(one), state="ready", runtime_state="idle") for one in (HEAD, WORKER)]
        operation = SimpleNamespace(
            id=OPERATION, kind=kind, member_id=members[1].id, old_member_id=None, params={}, correlation_id="c"
        )
        instance = SimpleNamespace(id=INSTANCE, name="x", inputs={}, members=members, project_id=PROJECT)
        work = SimpleNamespace(
            operation=operation, instance=instance, claim_epoch=1, project_id=PROJECT, members=lambda: members
        )
        tools = Tools(self.journal, connect=self.connect, slugs={PROJECT: "team-a"})

        async def body() -> Failed:
            return BROKEN

        return await with_rollback(cast(Work, work), tools, body)

    @property
    def did(self) -> list[str]:
        return [step for step, _ in self.asked if step != "look"]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "journal.db")


async def test_a_drain_of_this_operation_is_undone(scene: Scene) -> None:
    scene.node = f"drng|root|gpuaas:{OPERATION}: x"
    assert await scene.fails("drain_member") == BROKEN
    assert scene.did == ["undrain"]
    assert f"gpuaas:{OPERATION}:*|none)" in scene.asked[-1][1], "asked once more on the host whose drain it is"


@pytest.mark.parametrize("reason", ["fan is loud", "gpuaas:op_00000009: an earlier drain, asked for"])
async def test_the_drain_of_a_person_or_of_another_operation_stays(scene: Scene, reason: str) -> None:
    scene.node = f"drng|root|{reason}"
    assert await scene.fails("remove_member") == BROKEN
    assert scene.did == []


async def test_a_worker_whose_services_were_stopped_is_not_given_back_but_taken_out(scene: Scene) -> None:
    scene.node = f"drain|root|gpuaas:{OPERATION}: x"
    key = Key(OPERATION, INSTANCE, str(WORKER.allocation_id), "stop_services", 1)
    scene.journal.acting(key)
    assert await scene.fails("remove_member") == BROKEN
    assert scene.did == ["delete_node"]


async def test_a_worker_that_was_not_accepted_is_stopped_and_taken_out_with_what_there_was_to_see(scene: Scene) -> None:
    scene.outside = True
    failed = await scene.fails("add_member")
    assert scene.did == ["stop_worker", "take_off"]
    assert (failed.adapter_detail or {})["worker"]["host"] == WORKER.node_name


async def test_one_that_was_accepted_stays(scene: Scene) -> None:
    assert await scene.fails("add_member") == BROKEN
    assert scene.did == []


async def test_what_cannot_be_let_go_now_is_said(scene: Scene) -> None:
    scene.away = {str(HEAD.allocation_id)}
    failed = await scene.fails("drain_member")
    assert failed.code == BROKEN.code
    assert "could not be released" in failed.why


async def test_work_that_goes_on_keeps_what_it_holds(scene: Scene) -> None:
    async def body() -> Again:
        return Again(1, "waiting")

    work = cast(Work, SimpleNamespace())
    assert isinstance(await with_rollback(work, Tools(scene.journal, connect=scene.connect), body), Again)
    assert scene.asked == []
