"""How long from "I want a cluster" to the first `srun`: product against bare script, on the same host, in one run.

(1) product: POST /v1/…/instances through the public API until the first job of an ordinary user had run on the host;
(2) floor: `floor.sh`, only the commands nobody can leave out, over one SSH connection;
(3) the ratio, per round and median. Rounds are interleaved and the host is taken back in between (the product by its
own decommission, whose time is shown too). Seconds belong to the machine; the ratio is what a gate may look at.

    python bench/bringup.py [--rounds 3] [--max-ratio 3] [-o json]

Needs root (it boots its own lab host, core and controller, and takes them down again).
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import asyncssh
from cyclopts import App, Parameter
from gpuaas_lab.hosts import Lab
from gpuaas_lab.stack.enrolled import allocate, enrol_hosts
from gpuaas_lab.stack.platform import Stack, program
from gpuaas_lab.stack.seed import Demo, entitle, seed

HERE = Path(__file__).parent
HOST, SSH_PORT = "gpu1", 2222
app = App(help=__doc__)


@dataclass(frozen=True)
class Round:
    """Seconds."""

    floor_first_srun: float
    product_first_srun: float
    product_running: float
    product_decommission: float

    @property
    def ratio(self) -> float:
        return self.product_first_srun / self.floor_first_srun


@dataclass(frozen=True)
class Bench:
    lab: Lab
    demo: Demo
    allocation_id: str
    address: str
    key: asyncssh.SSHKey

    @property
    def project(self) -> str:
        return self.demo.projects["research"]


@app.default
def main(
    *,
    rounds: int = 3,
    port: int = 18199,
    max_ratio: float | None = None,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"])] = "table",
) -> None:
    """Run the comparison.

    Parameters
    ----------
    max_ratio
        Exit 1 if the median ratio is above this.
    """
    say = (lambda line: print(line, file=sys.stderr, flush=True)) if output == "json" else print
    with bench(port, say) as stage:
        done = []
        for number in range(1, rounds + 1):
            done.append(one_round(stage, number))
            say(line(f"round {number}", done[-1]))
    report(done, output)
    median = statistics.median(r.ratio for r in done)
    if max_ratio is not None and median > max_ratio:
        sys.exit(f"The median ratio {median:.2f} is above {max_ratio}.")


def one_round(stage: Bench, number: int) -> Round:
    """Floor first in odd rounds, product first in even ones: neither always has the warm cache."""
    if number % 2:
        floor = asyncio.run(run_floor(stage))
        return Round(floor, *run_product(stage, number))
    product = run_product(stage, number)
    return Round(asyncio.run(run_floor(stage)), *product)


async def run_floor(stage: Bench) -> float:
    """One connection, one script; from the first packet to the answer of srun."""
    started = time.time()
    async with asyncssh.connect(
        stage.address,
        SSH_PORT,
        username="root",
        client_keys=[stage.key],
        known_hosts=None,
        config=None,
        agent_path=None,
    ) as connection:
        words = f"ADDRESS={stage.address}\n{(HERE / 'floor.sh').read_text()}"
        done = await connection.run("bash -s", input=words, timeout=60)
        took = time.time() - started
        await connection.run("bash -s", input=(HERE / "floor-clean.sh").read_text(), timeout=60)
    if done.exit_status != 0 or str(done.stdout).strip() != HOST:
        sys.exit(f"The floor script failed: {done.stdout} {done.stderr}")
    return took


def run_product(stage: Bench, number: int) -> tuple[float, float, float]:
    """The first job's time is written by the host itself; lab hosts share our clock."""
    boss, project = stage.demo.boss, stage.project
    started = time.time()
    asked = boss.deploy(
        project,
        name=f"bench-{number}",
        app_slug="slurm",
        topology="single_node",
        inputs={},
        placement_intent={"controller": [stage.allocation_id]},
    )
    wait(stage, asked.operation.id)
    running = time.time() - started
    detail = boss.get_instance(project, asked.instance.id).adapter_detail or {}
    first = detail["first_job_at_ms"] / 1000 - started
    again = time.time()
    wait(stage, boss.decommission(project, asked.instance.id).operation.id)
    return first, running, time.time() - again


def wait(stage: Bench, operation_id: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        operation = stage.demo.boss.get_operation(stage.project, operation_id)
        if operation.status == "succeeded":
            return
        if operation.status in ("failed", "canceled", "needs_attention"):
            sys.exit(f"{operation.kind} {operation.status}: {operation.error}")
        time.sleep(0.05)
    sys.exit(f"{operation_id} did not end within {seconds:.0f} s")


@contextmanager
def bench(port: int, say) -> Iterator[Bench]:
    """An own lab of one host, an own core and controller; all of it is gone afterwards."""
    lab = Lab("bench")
    with tempfile.TemporaryDirectory(prefix="gpuaas-bench-") as root:
        lab.up(1, gpus=2, api_ports=[port])
        space = lab.controller_namespace("ctl")
        stack = Stack(Path(root), port, gateway=space.gateway)
        try:
            demo = start(stack, f"http://{space.gateway}:{port}")
            nodes = enrol_hosts(lab, demo, f"http://{space.gateway}:{port}")
            allocation = allocate(demo, "research", nodes[HOST])
            stack.start_controller(space.prefix, list(demo.identities.values()))
            address = lab.status()[0].address
            say(f"core, controller and host {HOST} ({address}) are up; load {os.getloadavg()[0]:.1f}")
            time.sleep(2)  # the controller's first long poll is out
            yield Bench(lab, demo, allocation, address, side_door(lab))
        finally:
            stack.stop()
            lab.down()


def start(stack: Stack, controller_api: str) -> Demo:
    stack.start_core()
    demo = seed(stack.api, stack.credentials, stack.identities, controller_api)
    env = os.environ | {"GPUAAS_API": stack.api, "GPUAAS_TOKEN": stack.signed_in_token("admin")}
    subprocess.run([program("gpuaas-slurm"), "publish"], env=env, check=True, timeout=60, stdout=subprocess.DEVNULL)
    entitle(demo, "slurm")
    return demo


def side_door(lab: Lab) -> asyncssh.SSHKey:
    """An enrolled host takes certificates only, so the floor gets an sshd of its own, with a key for this run."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    lab.push(HOST, "/root/.bench-keys", key.export_public_key(), 0o600)
    options = ["-p", str(SSH_PORT), "-h", "/etc/ssh/ssh_host_ed25519_key", "-o", "AuthorizedKeysFile=/root/.bench-keys"]
    words = ["systemd-run", "-q", "--unit=bench-sshd", "/usr/sbin/sshd", "-D", "-f", "/dev/null", *options]
    lab.exec(HOST, [*words, "-o", "StrictModes=no"], timeout=20)
    time.sleep(0.5)
    return key


def line(name: str, r: Round) -> str:
    return (
        f"{name:8s}  floor {r.floor_first_srun:6.2f} s   product {r.product_first_srun:6.2f} s   ratio {r.ratio:5.2f}"
        f"   (running after {r.product_running:.2f} s, decommission {r.product_decommission:.2f} s)"
    )


def report(done: list[Round], output: str) -> None:
    names = {
        "floor_first_srun": "bare script to first srun",
        "product_first_srun": "API request to first srun",
        "product_running": "API request to running (sbatch, sacct and GPU proven)",
        "product_decommission": "API request to deleted, with evidence",
    }
    columns = {key: [getattr(r, key) for r in done] for key in names} | {"ratio": [r.ratio for r in done]}
    summary = {k: {"median": statistics.median(v), "min": min(v), "max": max(v)} for k, v in columns.items()}
    if output == "json":
        print(json.dumps({"rounds": [asdict(r) | {"ratio": r.ratio} for r in done], "summary": summary}, indent=2))
        return
    print()
    for key, sentence in names.items():
        s = summary[key]
        print(f"{sentence:56s} {s['median']:6.2f} s  ({s['min']:.2f} - {s['max']:.2f})")
    s = summary["ratio"]
    print(f"{'ratio, product to floor (median of rounds)':56s} {s['median']:6.2f}    ({s['min']:.2f} - {s['max']:.2f})")


if __name__ == "__main__":
    app()
