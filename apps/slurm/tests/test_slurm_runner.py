"""In which order the runner asks and acts, on hosts that only answer; and the shell that spares it needless commands."""

import asyncio
import os
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpuaas_sdk.host_steps.host import Claim, Host, MachineLike, parse, preamble
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.reporter import Reporter
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Step, Task, survey
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.profile import PROFILE
from gpuaas_slurm.render.files import SHARED
from gpuaas_slurm.slurm import node_control
from gpuaas_slurm.steps import candidate
from gpuaas_slurm.steps.deploy import KEY, KeyOf

from apps.slurm.tests.support.slurm_examples import INSTANCE

CLAIM = Claim(INSTANCE, "op_00000001", 1)


class Scene:
    """Hosts, what they were found to have done, and the order of what they were asked."""

    def __init__(self, **done: str) -> None:
        self.done, self.asked, self.slow = done, list[str](), dict[str, asyncio.Event]()
        self.acted, self.files = asyncio.Event(), ""

    def host(self, name: str) -> Host:
        return Host(cast(MachineLike, _Machine(self, name)), CLAIM, f"alloc_{name}", name, "10.88.0.11", PROFILE)

    async def run(self, *stages: tuple[Task, ...], tmp: Path, **options: Any) -> list[str]:
        async def send(*_: object) -> None: ...

        async with Reporter(send) as reporter:
            assert await Runner(Journal(tmp / "journal.db"), reporter, **options).run(stages)
        return self.asked


class _Machine:
    def __init__(self, scene: Scene, name: str) -> None:
        self.scene, self.name = scene, name

    async def run(self, argv: list[str], *, input: Any = None, timeout: float = 60) -> Any:  # noqa: ASYNC109
        step = argv[-1].split("STEP=", 1)[1].split("\n", 1)[0]
        if step == "look" and (wait := self.scene.slow.get(self.name)):
            await wait.wait()
        self.scene.asked.append(f"{step} on {self.name}")
        if step != "look":
            self.scene.acted.set()
        output = (
            "".join(f"@done {one}\n" for one in self.scene.done.get(self.name, "").split()) if step == "look" else ""
        )
        return SimpleNamespace(exit=0, stdout=output or self.scene.files, stderr="")


def step(name: str, probe: str = "true", *, goes_with: str = "") -> Step:
    return Step(name=name, title=f"Doing {name}", phase="preparing", probe=probe, act="true", goes_with=goes_with)


async def test_what_holds_is_left_alone_and_a_host_that_was_never_touched_is_not_even_asked(tmp_path: Path) -> None:
    scene = Scene(old="files")
    old, new = scene.host("old"), scene.host("new")
    stage = (Task(old, step("files")), Task(new, step("files")))
    assert await scene.run(stage, tmp=tmp_path, untouched=frozenset(["alloc_new"])) == ["look on old", "files on new"]


async def test_a_stage_waits_for_the_answers_of_its_own_hosts_only(tmp_path: Path) -> None:
    scene = Scene()
    scene.slow["head"] = asyncio.Event()
    worker, head = scene.host("worker"), scene.host("head")

    async def answer() -> None:
        await scene.acted.wait()
        scene.slow["head"].set()

    stages = (Task(worker, step("join")),), (Task(head, step("accept")),)
    async with asyncio.timeout(20):
        asked, _ = await asyncio.gather(scene.run(*stages, tmp=tmp_path), answer())
    assert asked == ["look on worker", "join on worker", "look on head", "accept on head"]


@pytest.mark.parametrize(
    ("of_worker", "acts"), [("files", []), ("", ["candidate on head", "files on worker", "reread on head"])]
)
async def test_a_step_that_goes_with_another_is_done_only_if_that_one_is_everywhere(
    tmp_path: Path, of_worker: str, acts: list[str]
) -> None:
    """Slurm is to read its files again when one was written on any host, whatever it says of itself before."""
    scene = Scene(head="candidate files reread", worker=of_worker)
    head, worker = scene.host("head"), scene.host("worker")
    with_files = {name: step(name, goes_with="files") for name in ("candidate", "reread")}
    stages = (
        (Task(head, with_files["candidate"]),),
        (Task(head, step("files")), Task(worker, step("files"))),
        (Task(head, with_files["reread"]),),
    )
    asked = await scene.run(*stages, tmp=tmp_path)
    assert [one for one in asked if not one.startswith("look")] == acts


async def test_an_idle_worker_is_drained_and_looked_at_in_one_command(plan: Plan) -> None:
    scene = Scene()
    await node_control.drain(scene.host("head"), plan.workers[0], "a new disk")
    assert scene.asked == ["drain on head"]


async def test_many_hosts_ask_the_controllers_host_for_its_key_once() -> None:
    """sshd takes ten sessions on one connection: a deploy on 1+32 hosts asked 32 times at once, and was refused."""
    scene = Scene()
    scene.files = f"@{KEY} a2V5\n" + "".join(f"@{path} eA==\n" for path in SHARED)
    share = KeyOf(scene.host("head"))
    assert set(await asyncio.gather(*(share() for _ in range(32)))) == {b"key"}
    assert scene.asked == ["share on head"]


# --- the shell itself


def in_bash(body: str, tmp: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    tools = tmp / "bin"
    tools.mkdir(exist_ok=True)
    for name, text in programs.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    text = preamble(PROFILE, CLAIM, step="look", unit="", within=1).replace("BASE=/var/lib", f"BASE={tmp}")
    text = text.replace("RUN=/run", f"RUN={tmp}/run").replace("PATH=/usr/sbin", f"PATH={tools}:/usr/sbin")
    argv = ["bash", "-c", text + body]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False, env=dict(os.environ))


def test_a_port_is_open_while_a_process_listens_there_and_not_for_a_connection_from_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as line:
            mine = line.getsockname()[1]
            asked = in_bash(f"port_open {port} && say done yes; port_open {mine} || say done no", tmp_path)
    assert parse(0, asked.stdout).lines["done"] == ["yes", "no"], asked.stderr


SHOWN = r"printf 'active\ninactive\ninactive\ninactive\nfailed\n'; exit 3"


def test_a_survey_asks_systemd_once_for_all_probes(tmp_path: Path) -> None:
    steps = [step("one", "active munge"), step("two", "active slurmd"), step("three", "active mariadb")]
    done = in_bash(survey(steps, PROFILE.units), tmp_path, systemctl=f"echo asked >>{tmp_path}/asked\n{SHOWN}")
    assert parse(0, done.stdout).lines["done"] == ["one"], done.stderr
    assert (tmp_path / "asked").read_text() == "asked\n"


PARTITION = "PartitionName=main State={state} MaxTime=60 Nodes={nodes} TotalCPUs=2 TotalNodes=1 TRES=cpu=2"


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        ({}, True),
        ({"nodes": "training-[1-8]"}, True),
        ({"state": "DOWN"}, False),
        ({"node": "{node}|a100|gpuaas:op_1: other GPU types"}, False),
        ({"node": "{node}|(null)|none"}, False),
        ({"started": "PriorityType=priority/basic\n"}, False),
        ({"newer": True}, False),
        ({"mark": False}, False),
        ({"kept": True}, False),
    ],
    ids=[
        "as it was",
        "more nodes",
        "a partition",
        "a node held back",
        "a node without features",
        "a restart due",
        "a file",
        "no mark",
        "a drain",
    ],
)
def test_slurm_reads_its_settings_again_only_if_something_is_not_as_it_was_taken_up(
    plan: Plan, facts: HostFacts, tmp_path: Path, now: dict[str, Any], holds: bool
) -> None:
    own, etc = tmp_path / "gpuaas-slurm" / plan.instance_id, tmp_path / "etc"
    own.mkdir(parents=True)
    etc.mkdir()
    conf = etc / "slurm.conf"
    conf.write_text("PriorityType=priority/multifactor\n")
    (own / "started.conf").write_text(now.get("started", "PriorityType=priority/multifactor\n"))
    known = own / "taken_up"
    if now.get("mark", True):
        known.write_text("PartitionName=main State=UP MaxTime=60\n")
        at = conf.stat().st_mtime + (-9 if now.get("newer") else 9)
        os.utime(known, (at, at))
    if now.get("kept"):
        (own / "drained.training-1").write_text("fan is loud")
    slot = plan.workers[0]
    made = candidate.reread(plan, {slot.allocation_id: facts})
    probe = made.probe.replace("/etc/slurm", str(etc)).replace("/var/lib/gpuaas-slurm", str(own.parent))
    shown = PARTITION.format(state=now.get("state", "UP"), nodes=now.get("nodes", "training-1"))
    node = now.get("node", "{node}|a100|none").format(node=slot.node)
    programs = {"scontrol": f"echo '{shown}'", "sinfo": f"echo '{node}'"}
    body = f"active() {{ true; }}\nport_open() {{ true; }}\nprobe() {{\n{probe}\n}}\nprobe >/dev/null"
    done = in_bash(body, tmp_path, **programs)
    assert (done.returncode == 0) is holds, done.stderr
