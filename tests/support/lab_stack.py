"""The ground the journeys stand on: a real lab, a real core and a real Slurm controller in its own network namespace.

Tests act as users do, through SDK and CLI; to look at a host they use the lab's own entrance, not the product's.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuaas_lab.hosts import Lab
from gpuaas_lab.stack.enrolled import allocate, enrol_hosts
from gpuaas_lab.stack.platform import Stack, program
from gpuaas_lab.stack.seed import Demo, entitle, seed
from gpuaas_lab.stack.up import publish
from gpuaas_sdk.client.errors import GpuaasError
from gpuaas_sdk.client.models import InstanceView, OperationView

CORES = os.cpu_count() or 1
POLLS_S = 0.05, 0.25  # the first wait between two reads, and the longest: what is asked costs the hosts their time
FINAL = {"succeeded", "failed", "canceled", "superseded", "needs_attention"}


def lab_name(wanted: str) -> str:
    """Those who run side by side have labs of their own."""
    return os.environ.get("GPUAAS_LAB_NAME", wanted) + os.environ.get("PYTEST_XDIST_WORKER", "").replace("gw", "-")


def times(*, usual: int, soak: int) -> int:
    """How often a test repeats itself: `make soak` sets GPUAAS_SOAK."""
    return soak if os.environ.get("GPUAAS_SOAK") else usual


def free_port() -> int:
    """Below those that this machine's own connections are given: no other process takes it before it is bound."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            return port


def promised(seconds: float) -> float:
    """What is promised in seconds is promised by a machine that keeps up. Where more wants to run than there are cores,
    everything gets its turn later, and so much longer it may take."""
    average, _, _, running, *_ = Path("/proc/loadavg").read_text().replace("/", " ").split()
    return seconds * max(1.0, float(average) / CORES, int(running) / CORES)


@dataclass
class Ground:
    lab: Lab
    stack: Stack
    demo: Demo
    gateway: str
    space: Any
    allocations: dict[str, str] = field(default_factory=dict)  # host name to allocation
    nodes: dict[str, str] = field(default_factory=dict)

    @property
    def research(self) -> str:
        return self.demo.projects["research"]

    @property
    def api_for_hosts(self) -> str:
        return f"http://{self.gateway}:{self.stack.port}"

    def bring(self, *names: str, project: str = "research") -> None:
        """Hosts enrolled and held by the project."""
        fresh = [host.name for host in self.lab.status() if host.state == "up" and host.name not in self.nodes]
        if fresh:
            self.nodes |= enrol_hosts(self.lab, self.demo, self.api_for_hosts, fresh)
        for name in names:
            self.allocations[name] = allocate(self.demo, project, self.nodes[name])

    def cli(
        self, *words: str, timeout: float = 400, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        argv = [program("gpuaas"), *words]
        merged = self.stack.cli_env | {"NO_COLOR": "1", "COLUMNS": "120"} | (env or {})
        return subprocess.run(argv, env=merged, capture_output=True, text=True, timeout=timeout, check=False)

    def cli_json(self, *words: str) -> Any:
        done = self.cli(*words, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def deploy(self, name: str, host: str, **inputs: Any) -> tuple[InstanceView, OperationView]:
        made = self.demo.boss.deploy(
            self.research,
            name=name,
            app_slug="slurm",
            placement_intent={"controller": [self.allocations[host]]},
            inputs=inputs,
        )
        return made.instance, made.operation

    def instance(self, instance_id: str) -> InstanceView:
        return self.demo.boss.get_instance(self.research, instance_id)

    def operation(self, operation_id: str) -> OperationView:
        return self.demo.boss.get_operation(self.research, operation_id)

    def ended(self, operation_id: str, timeout: float = 400) -> OperationView:
        """Waits for the end; the core may be away for a moment (a test kills it)."""
        deadline = time.monotonic() + timeout
        last, pause = None, pauses()
        while time.monotonic() < deadline:
            try:
                last = self.operation(operation_id)
                if last.status in FINAL:
                    return last
            except GpuaasError:
                pass
            time.sleep(next(pause))
        raise AssertionError(
            f"{operation_id} did not end in {timeout} s: {last}\n{self.stack.log_tail('slurm-controller')}"
        )

    def running(self, name: str, host: str, **inputs: Any) -> InstanceView:
        instance, operation = self.deploy(name, host, **inputs)
        done = self.ended(operation.id)
        assert done.status == "succeeded", f"{done.error}\n{self.stack.log_tail('slurm-controller', 30)}"
        return self.instance(instance.id)

    def gone(self, instance: InstanceView, timeout: float = 400) -> OperationView:
        made = self.demo.boss.decommission(self.research, instance.id)
        done = self.ended(made.operation.id, timeout)
        assert done.status == "succeeded", f"{done.error}\n{self.stack.log_tail('slurm-controller', 30)}"
        return done

    def cleared(self) -> None:
        """Decommissions what a test left behind. A decommission that failed is retried, so that one failure does not
        keep its hosts from every later test; the failure itself stays with the test that met it."""
        for instance in self.demo.boss.list_instances(self.research, limit=200).items:
            if instance.state != "deleting":
                self.gone(instance)
                continue
            newest = self.demo.boss.list_operations(
                self.research, instance_id=instance.id, newest_first=True, limit=1
            ).items[0]
            if newest.status in FINAL:
                newest = self.demo.boss.retry_operation(self.research, newest.id).operation
            done = self.ended(newest.id)
            assert done.status == "succeeded", done.error

    def events(self) -> list[Any]:
        """All of the tenant's, since the ground was laid."""
        found: list[Any] = []
        while True:
            after = str(found[-1].sequence) if found else None
            page = self.demo.boss.list_tenant_events(self.demo.tenant_id, after=after, limit=1000).items
            if not page:
                return found
            found += page

    def on_host(self, host: str, *argv: str, timeout: float = 180) -> str:
        done = self.lab.exec(host, list(argv), timeout=timeout)
        assert done.exit == 0, f"{argv} on {host} ended with {done.exit}: {done.error_text}{done.text}"
        return done.text

    def as_user(self, host: str, *argv: str, timeout: float = 180) -> str:
        return self.on_host(host, "runuser", "-u", "gpuaas", "--", *argv, timeout=timeout)

    def kill(self, service: str, how: int = signal.SIGKILL) -> None:
        process = self.stack.folder.process(service)
        assert process, f"{service} does not run"
        os.kill(process.pid, how)
        assert process.wait_gone(60)

    def signal(self, service: str, how: int) -> None:
        process = self.stack.folder.process(service)
        assert process, f"{service} does not run"
        os.kill(process.pid, how)

    def start_controller(self, env: dict[str, str] | None = None, name: str = "slurm-controller") -> None:
        self.stack.start_controller(self.space.prefix, list(self.demo.identities.values()), env, name)

    def controller_restarted_with(self, env: dict[str, str]) -> None:
        """The supervisor sees another environment and restarts the controller with it."""
        before = self.stack.folder.process("slurm-controller")
        self.start_controller(env)
        wait_until(
            lambda: self.stack.folder.process("slurm-controller") not in (None, before), 120, "controller restart"
        )


def pauses() -> Iterator[float]:
    """Short ones first: most of what is waited for happens at once, and the rest takes seconds."""
    pause, longest = POLLS_S
    while True:
        yield pause
        pause = min(pause * 1.3, longest)


def wait_until(holds: Callable[[], bool], timeout: float, what: str) -> None:
    deadline, pause = time.monotonic() + timeout, pauses()
    while not holds():
        assert time.monotonic() < deadline, f"waited {timeout} s for: {what}"
        time.sleep(next(pause))


@contextmanager
def standing(root: Path, name: str, hosts: int = 3) -> Iterator[Ground]:
    """Everything up; everything down again, whatever happens in between."""
    lab = Lab(name)
    port = free_port()
    stack = Stack(root / "stack", port)
    try:
        lab.up(hosts, api_ports=[port])
        space = lab.controller_namespace("ctl")
        stack = Stack(root / "stack", port, gateway=space.gateway)
        stack.start_core()
        api = f"http://{space.gateway}:{port}"
        demo = seed(stack.api, stack.credentials, stack.identities, api)
        publish(stack)
        entitle(demo, "slurm")
        ground = Ground(lab, stack, demo, space.gateway, space)
        ground.bring()
        ground.start_controller()
        yield ground
        demo.close()
    finally:
        stack.stop()
        lab.down()
