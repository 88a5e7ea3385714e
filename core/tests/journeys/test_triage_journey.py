"""Done when 9: one failed deploy's correlation id, pasted into `gpuaas triage`, shows why it failed and what to do.

A served core, the SDK's controller and telemetry, a scripted app that fails as a real one does, and the real CLI.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import gpuaas_sdk as sdk
from gpuaas_sdk.controller.claim_runner import Pace

from core.tests.support.fixtures import Store, World
from core.tests.support.served import Served, serving

GPUAAS = Path(sys.executable).parent / "gpuaas"
SECRET = "the-munge-key-itself"


class ScriptedApp:
    """Two steps hold, the third fails on the host; its telemetry is what a real app's would be."""

    def __init__(self, telemetry: sdk.TelemetrySender) -> None:
        self.telemetry = telemetry

    async def deploy(self, work: sdk.Work) -> sdk.Failed:
        for number, step in enumerate(("preflight", "munge_key"), 1):
            await work.progress("prepare", number, 3, f"Doing {step}")
            self._command(work, step, exit=0, ms=15)
            self._line(work, f"{step} on node-0: done in 20 ms", kind="step", step=step, host="node-0", ms=20)
        await work.progress("database", 3, 3, "Starting the database")
        self._command(work, "database", exit=1, ms=900, stderr="mysqld: No space left on device")
        why = "The file system /var of node-0 is full (starting the database)."
        way_out = f"Free space on that file system, then run `gpuaas operation retry {work.operation.id}`."
        return sdk.Failed("disk_full", why, way_out, retryable=True)

    def _command(self, work: sdk.Work, step: str, *, exit: int, ms: int, stderr: str = "") -> None:
        words = f"{step} on node-0 ended with {exit} after {ms} ms" + (f": {stderr}" if stderr else "")
        level = "warning" if exit else "info"
        self._line(work, words, level=level, kind="command", step=step, host="node-0", exit=exit, ms=ms)

    def _line(self, work: sdk.Work, words: str, **more: Any) -> None:
        ids = {"correlation_id": work.operation.correlation_id, "operation_id": work.operation.id}
        self.telemetry.line(words, **ids, **more)


@contextlib.asynccontextmanager
async def working(served: Served, world: World) -> AsyncIterator[None]:
    stop = asyncio.Event()
    pace = Pace(heartbeat_every_s=1, look_every_s=0.05)
    async with (
        sdk.AsyncClient(served.url, sdk.Bearer(world.controller.token), project_id=world.red) as client,
        sdk.TelemetrySender(client, every_s=0.1) as telemetry,
    ):
        reconcilers = {"deploy": ScriptedApp(telemetry).deploy}
        controller = sdk.Controller(client, "echo", "journey", reconcilers, wait_s=1, pace=pace)
        running = asyncio.create_task(controller.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running


async def gpuaas(served: Served, token: str | None, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    more = {"GPUAAS_API": served.url, "GPUAAS_TOKEN": str(token), "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    env = os.environ | more
    return await asyncio.to_thread(
        subprocess.run, [str(GPUAAS), *words], env=env, capture_output=True, text=True, timeout=60, check=False
    )


async def until_ended(served: Served, world: World, operation_id: str) -> Any:
    async with sdk.AsyncClient(served.url, sdk.Bearer(world.boss.token)) as client:
        for _ in range(1200):
            operation = await client.get_operation(world.red, operation_id)
            if operation.finished_at:
                return operation
            await asyncio.sleep(0.1)
    raise AssertionError("the operation did not end")


async def test_one_id_shows_why_a_deploy_failed_and_what_to_do(store: Store, world: World, tmp_path: Path) -> None:
    with serving(store, tmp_path) as served:
        async with working(served, world), sdk.AsyncClient(served.url, sdk.Bearer(world.boss.token)) as boss:
            with sdk.correlation() as correlation_id:
                where = {"head": [world.allocations[0]]}
                accepted = await boss.deploy(world.red, name="train", app_slug="echo", placement_intent=where)
            operation = await until_ended(served, world, accepted.operation.id)
            assert operation.status == "failed"
        await every_line_is_there(served, world, correlation_id, operation.id)
        said = await gpuaas(served, world.boss.token, tmp_path, "triage", correlation_id)
        found = await gpuaas(served, world.boss.token, tmp_path, "triage", correlation_id, "-o", "json")
        outsider = await gpuaas(served, world.blue_controller.token, tmp_path, "triage", correlation_id)
    assert said.returncode == 0, said.stderr
    check_told(said.stdout, operation.id)
    check_entries(json.loads(found.stdout), operation.id)
    assert outsider.returncode == 5, outsider.stdout
    assert SECRET not in said.stdout + found.stdout


async def every_line_is_there(served: Served, world: World, correlation_id: str, operation_id: str) -> None:
    """The core writes its own lines beside the work, every half second: what is missing after a minute is missing."""
    async with sdk.AsyncClient(served.url, sdk.Bearer(world.boss.token)) as boss:
        for _ in range(200):
            found = await boss.read_triage(correlation_id)
            kinds = {entry.kind for entry in found.timeline}
            if {"request", "log"} & kinds and any(
                f"Operation {operation_id} failed" in e.sentence for e in found.timeline
            ):
                return
            await asyncio.sleep(0.3)


def check_told(text: str, operation_id: str) -> None:
    head, _, timeline = text.partition("\n\n")
    told = {name: words.strip() for name, _, words in (line.partition(":") for line in head.splitlines())}
    assert told == {
        "What": "The deploy of train (echo 1.0.0) failed at step 3 of 3.",
        "Why": "The file system /var of node-0 is full (starting the database). (disk_full)",
        "First symptom": "database on node-0 ended with 1 after 900 ms: mysqld: No space left on device",
        "What you can do": f"Free space on that file system, then run `gpuaas operation retry {operation_id}`.",
    }
    day, *lines = timeline.splitlines()
    assert day.endswith("! marks warnings and errors.")
    wrong = [line.split("! ", 1)[1] for line in lines if line[13] == "!"]
    assert wrong[0].startswith("host        command    database on node-0 ended with 1")
    assert wrong[-1].startswith(f"core        operation  Operation {operation_id} failed:")
    assert any("apps.member.changed train: head is failed" in line for line in lines)
    assert any("apps.operation.claimed train: claimed by a controller (claim epoch 1)" in line for line in lines)
    assert "\033[" not in text, "no colours in a pipe"


def check_entries(found: Any, operation_id: str) -> None:
    assert found["verdict"]["operation_id"] == operation_id
    words = [entry["sentence"] for entry in found["timeline"]]
    order = [
        "POST /v1/projects/",
        "was allowed apps.instance.create",
        f"Operation {operation_id} was requested",
        "apps.operation.claimed",
        "preflight on node-0: done",
        "apps.operation.progressed train 3/3: Starting the database",
        "No space left on device",
        f"Operation {operation_id} failed",
    ]
    places = [next((n for n, sentence in enumerate(words) if part in sentence), None) for part in order]
    assert None not in places, dict(zip(order, places, strict=True)) | {"words": words}
    assert places == sorted(places), words
    assert {entry["kind"] for entry in found["timeline"]} >= {
        "request",
        "decision",
        "operation",
        "event",
        "step",
        "command",
    }
