"""The product's side of bringup.py: the same jobs through the public API, on a core and a controller of their own.

Two times each: from the moment the controller took the operation (`seen`) and from the request (`asked`), until the job
had run. The second is the first plus what the platform costs. When a step was done is in the controller's own journal.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import timeline
from floor import Floor, Place
from gpuaas_lab.hosts import Lab
from gpuaas_lab.stack.enrolled import allocate, enrol_hosts
from gpuaas_lab.stack.platform import Stack, program
from gpuaas_lab.stack.seed import Demo, entitle, seed
from gpuaas_sdk.client.models import InstanceView, OperationView

# Everything that came for Slurm goes, as if the machine had been installed without it.
BARE = """
apt-mark auto $(dpkg-query -W -f='${Package} ') >/dev/null
apt-mark manual systemd systemd-sysv openssh-server sudo iproute2 iputils-ping procps ca-certificates python3 \
  python3-cryptography >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get -qy -o APT::AutoRemove::RecommendsImportant=false \
  -o APT::AutoRemove::SuggestsImportant=false autoremove --purge >/dev/null
rm -rf /var/lib/mysql
"""
UNIFIED = Path("/sys/fs/cgroup/unified")


@dataclass(frozen=True)
class Took:
    """Seconds."""

    seen: float
    asked: float


@dataclass
class Stage:
    """Hosts, a core and a controller; `floor` stands on the same hosts."""

    lab: Lab
    demo: Demo
    stack: Stack
    places: list[Place]
    allocations: dict[str, str]
    floor: Floor
    packages: bytes | None = None
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1000)))

    @property
    def project(self) -> str:
        return self.demo.projects["research"]

    def deploy(self, head: Place, workers: Sequence[Place]) -> tuple[InstanceView, dict[str, Took]]:
        alone = [head] == list(workers)
        intent = {"controller": [self.allocations[head.name]]}
        if not alone:
            intent["worker"] = [self.allocations[worker.name] for worker in workers]
        asked = time.time()
        made = self.demo.boss.deploy(
            self.project,
            name=f"bench-{next(self.numbers)}",
            app_slug="slurm",
            topology="single_node" if alone else "multi_node",
            inputs={},
            placement_intent=intent,
        )
        done = self.ended(made.operation.id)
        took = {"job": self._took(asked, done, "first_job"), "accounting": self._took(asked, done, "scheduler")}
        return self.demo.boss.get_instance(self.project, made.instance.id), took

    def add(self, instance: InstanceView, workers: Sequence[Place]) -> Took:
        """All in one request, until the last of them had run a job."""
        wanted, asked = [self.allocations[worker.name] for worker in workers], time.time()
        batch = self.demo.boss.add_members(self.project, instance.id, component_key="worker", allocation_ids=wanted)
        took = [self._took(asked, self.ended(one.id), "accept") for one in batch.operations]
        first = min(one.asked - one.seen for one in took)  # when the first of them was taken up
        last = max(one.asked for one in took)
        return Took(last - first, last)

    def remove(self, instance: InstanceView, worker: Place) -> Took:
        """Seen: until the scheduler has forgotten it, as the floor; asked: until the host is clean and certified."""
        members = self.demo.boss.get_instance(self.project, instance.id).members
        member = next(m for m in members if m.node_name == worker.name and m.component_key == "worker")
        asked = time.time()
        done = self.ended(self.demo.boss.remove_member(self.project, instance.id, member.id).operation.id)
        return Took(self._took(asked, done, "delete_node").seen, moment(done.finished_at) - asked)

    def converge(self, instance: InstanceView) -> tuple[Took, list[str]]:
        """The settings it has already; and the steps that did something all the same."""
        now = self.demo.boss.get_instance(self.project, instance.id)
        asked = time.time()
        accepted = self.demo.boss.update_instance(self.project, instance.id, inputs=now.inputs, etag=now.etag)
        done = self.ended(accepted.operation.id)
        steps = (done.adapter_detail or {}).get("steps", [])
        ended = moment(done.finished_at)
        changed = sorted({step["step"] for step in steps if step["acted"]})
        return Took(ended - moment(done.started_at), ended - asked), changed

    def decommission(self, instance: InstanceView) -> Took:
        asked = time.time()
        done = self.ended(self.demo.boss.decommission(self.project, instance.id).operation.id)
        ended = moment(done.finished_at)
        return Took(ended - moment(done.started_at), ended - asked)

    def ended(self, operation_id: str, seconds: float = 300) -> OperationView:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            operation = self.demo.boss.get_operation(self.project, operation_id)
            if operation.status == "succeeded":
                return operation
            if operation.status in ("failed", "canceled", "needs_attention"):
                detail = operation.adapter_detail or {}
                why = {name: detail.get(name) for name in ("output", "log", "units") if detail.get(name)}
                sys.exit(f"{operation.kind} {operation.status}: {operation.error}\n{why}")
            time.sleep(0.4)  # times come from the journal; asking more often would cost the core what it is measured by
        sys.exit(f"{operation_id} did not end within {seconds:.0f} s")

    def _took(self, asked: float, done: OperationView, step: str) -> Took:
        at = self._finished(done.id, step)
        return Took(at - moment(done.started_at), at - asked)

    def spent(self) -> float:
        """Processor seconds so far: of every host of the lab, of the core and the controller, and of this process."""
        text = (UNIFIED / f"gpuaas-lab.{self.lab.name}" / "cpu.stat").read_text()
        hosts = int(text.split()[1]) / 1e6
        services = (self.stack.folder.process(name) for name in ("core", "slurm-controller"))
        return hosts + sum(_cpu(one.pid) for one in services if one) + time.process_time()

    def idle(self, seconds: float = 4) -> float:
        """What all of them use in a second when nothing is asked of them: agents, daemons, long polls."""
        before = self.spent()
        time.sleep(seconds)
        return (self.spent() - before) / seconds

    def profile(self) -> list[str]:
        return timeline.of(*(self.stack.folder.log(name) for name in ("slurm-controller", "core")))

    def _journal(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.stack.root / 'slurm-controller' / 'journal.db'}?mode=ro", uri=True)

    def _finished(self, operation_id: str, step: str) -> float:
        with self._journal() as db:
            words = "SELECT max(finished) FROM steps WHERE operation_id=? AND step=?"
            return float(db.execute(words, (operation_id, step)).fetchone()[0])


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def moment(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


@contextmanager
def stage(name: str, hosts: int, port: int, say: Callable[[str], None], *, bare: bool = False) -> Iterator[Stage]:
    """A lab, a core and a controller of this run; all of it is gone afterwards."""
    lab = Lab(name)
    with tempfile.TemporaryDirectory(prefix="gpuaas-bench-") as root:
        try:
            lab.up(hosts, gpus=2, api_ports=[port], timeout=300)
            space = lab.controller_namespace("ctl")
            stack = Stack(Path(root), port, gateway=space.gateway)
            try:
                yield _prepared(lab, stack, space, say, bare)
            finally:
                stack.stop()
        finally:
            lab.down()


def _prepared(lab: Lab, stack: Stack, space, say: Callable[[str], None], bare: bool) -> Stage:
    api = f"http://{space.gateway}:{stack.port}"
    demo = _platform(stack, api)
    nodes = enrol_hosts(lab, demo, api)
    places = [Place(host.name, host.address) for host in lab.status()]
    packages = _without_packages(lab, stack, places) if bare else None
    allocations = {place.name: allocate(demo, "research", nodes[place.name]) for place in places}
    stack.start_controller(space.prefix, list(demo.identities.values()))
    say(f"core, controller and {len(places)} hosts are up; load {os.getloadavg()[0]:.1f}")
    time.sleep(2)  # the controller's first long poll is out
    return Stage(lab, demo, stack, places, allocations, Floor.on(lab, places), packages)


def _platform(stack: Stack, controller_api: str) -> Demo:
    stack.start_core()
    demo = seed(stack.api, stack.credentials, stack.identities, controller_api)
    _program(stack, "gpuaas-slurm", "publish")
    entitle(demo, "slurm")
    return demo


def _without_packages(lab: Lab, stack: Stack, places: Sequence[Place]) -> bytes:
    """Bare hosts, and the set as an artifact of the platform; the floor gets the same bytes."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda place: lab.exec(place.name, ["bash", "-c", BARE], timeout=300), places))
    file = stack.root / "slurm-packages.tar"
    _program(stack, "gpuaas-slurm", "packages", "build", str(file))
    pushed = ("artifact", "push", str(file), "--name", "slurm-packages", "--version", "22.05.8", "--level", "platform")
    _program(stack, "gpuaas", *pushed)
    return file.read_bytes()


def _program(stack: Stack, name: str, *words: str) -> None:
    env = os.environ | {"GPUAAS_API": stack.api, "GPUAAS_TOKEN": stack.signed_in_token("admin")}
    done = subprocess.run([program(name), *words], env=env, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"{name} {' '.join(words)}: {done.stdout}{done.stderr}")
