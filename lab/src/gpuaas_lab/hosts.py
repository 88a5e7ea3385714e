"""The lab as a Python API, used by `make up`, the CLI and the tests.

    lab = Lab()
    for host in lab.up(3):
        print(host.name, host.address)
    lab.exec("gpu1", ["systemctl", "is-active", "ssh"]).text
    lab.down()

Every call can be repeated. Calls that change the lab hold its lock; `exec`, `push` and `status` do not.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gpuaas_lab import controllers, diskfull, image, inside, network, places, preflight, sweep
from gpuaas_lab import firewall as fw
from gpuaas_lab.cgroups import HostCgroup
from gpuaas_lab.errors import HostOff, ImageInUse, LabError, UnknownHost
from gpuaas_lab.machine import Machine, leader_of
from gpuaas_lab.plan import FIRST_HOST, Plan, default_subnet, free_number, valid_name
from gpuaas_lab.probe import wait_for_sshd
from gpuaas_lab.processes import Process
from gpuaas_lab.run import Result
from gpuaas_lab.state import HostRecord, LabRecord, State, labs

Say = image.Say
DEFAULT_PORTS = (8080,)
BOOTS_AT_ONCE = 8


def silent(_: str) -> None:
    pass


@dataclass(frozen=True)
class HostStatus:
    """The status of a host."""

    name: str
    address: str
    state: str  # up | booting | off
    gpus: int
    disk_mb: int | None
    leader_pid: int | None
    console: str


class Lab:
    """All hosts of one lab."""

    def __init__(self, name: str | None = None, say: Say = silent) -> None:
        self.name = valid_name("lab", name or places.lab_name())
        self.say = say
        self.state = State(self.name)

    def ensure_image(self) -> Path:
        preflight.check()
        return image.ensure(self.say)

    def up(
        self,
        hosts: int,
        *,
        gpus: int = 2,
        prefix: str = "gpu",
        disk_mb: int | None = None,
        without_packages: Sequence[str] = (),
        api_ports: Sequence[int] | None = None,
        subnet: str | None = None,
        timeout: float = 240,
    ) -> list[HostStatus]:
        """Start hosts prefix1..prefixN and wait until they answer on port 22; running hosts are kept."""
        built = self.ensure_image()
        names = [valid_name("host", f"{prefix}{number}") for number in range(1, hosts + 1)]
        options = {"gpus": gpus, "disk_mb": disk_mb, "without_packages": list(without_packages)}
        with self.state.locked():
            plan = self._ensure_network(api_ports, subnet)
            records = [self._ensure_record(name, str(built), options) for name in names]
            self._boot_all(plan, records, timeout)
        return [host for host in self.status() if host.name in names]

    def down(self, *, image_too: bool = False) -> None:
        """Remove the lab: processes, mounts, namespaces, links, rules, cgroups, files. Safe to repeat."""
        preflight.check()
        with self.state.locked():
            sweep.remove_lab(self.state)
        if image_too:
            self._remove_image()

    def status(self) -> list[HostStatus]:
        record = self.state.load_lab()
        return [self._status(record.plan, host) for host in self.state.load_hosts().values()] if record else []

    def exec(self, host: str, argv: Sequence[str], timeout: float = 60, input: bytes | None = None) -> Result:
        """Run a command as root inside the host. The exit code is in the result; a timeout raises ExecTimeout."""
        leader, cgroup = self._entrance(host)
        return inside.execute(leader, cgroup, argv, timeout=timeout, input=input)

    def attach(self, host: str, argv: Sequence[str] = (), timeout: float | None = None) -> int:
        leader, cgroup = self._entrance(host)
        return inside.attach(leader, cgroup, argv, timeout=timeout)

    def push(self, host: str, path: str, data: bytes, mode: int = 0o644, timeout: float = 30) -> None:
        """Write a file on the host atomically; missing folders are created."""
        leader, cgroup = self._entrance(host)
        result = inside.put(leader, cgroup, path, data, mode, timeout)
        if result.exit != 0:
            raise LabError(
                f"{path} could not be written on '{host}': {result.error_text.strip()}", "Check its disk space."
            )

    def poweroff(self, host: str) -> None:
        """Simulate a power loss: cut the network, then kill every process at once. The disk is kept."""
        with self.state.locked():
            self._machine(host).power_off()

    def boot(self, host: str, timeout: float = 240) -> HostStatus:
        """Boot the host again, with the same disk and address."""
        with self.state.locked():
            machine = self._machine(host)
            self._boot_all(machine.plan, [machine.record], timeout)
        return next(status for status in self.status() if status.name == host)

    def cut(self, host: str) -> None:
        """Cut the network: the host keeps running but is unreachable."""
        with self.state.locked():
            network.pull_cable(self._machine(host).cable)

    def mend(self, host: str) -> None:
        with self.state.locked():
            network.plug_cable(self._machine(host).cable)

    def controller_namespace(self, name: str = "ctl") -> controllers.ControllerNamespace:
        """Return a network namespace for an app controller that reaches only the hosts and the API."""
        preflight.check()
        with self.state.locked():
            self._ensure_network(None, None)
            return controllers.ensure(self.state, name)

    def allow_port(self, port: int) -> None:
        """Let hosts and controllers reach one more TCP port of this machine on the bridge address."""
        record = self.state.load_lab()
        if record and port not in record.api_ports:
            with self.state.locked():
                self._ensure_network([*record.api_ports, port], None)

    def fill_disk(self, host: str) -> None:
        """Fill the host's root file system (needs a host with disk_mb)."""
        diskfull.fill(self, self._record(host))

    def free_disk(self, host: str) -> None:
        diskfull.free(self, self._record(host))

    # -- implementation

    def _remove_image(self) -> None:
        others = labs()
        if others:
            raise ImageInUse(others)
        image.remove_all()

    def _ensure_network(self, ports: Sequence[int] | None, subnet: str | None) -> Plan:
        record = self.state.load_lab()
        if record is None:
            slot = self.state.claim_slot(network.slots_in_use())
            record = LabRecord(self.name, slot, subnet or str(default_subnet(slot)), list(DEFAULT_PORTS))
        if ports:
            record.api_ports = sorted(set(ports))
        self.state.save_lab(record)
        fw.apply(record.plan, record.api_ports)
        network.ensure_bridge(record.plan)
        return record.plan

    def _ensure_record(self, name: str, image_path: str, options: dict) -> HostRecord:
        known = self.state.load_hosts()
        if name in known:
            return known[name]
        number = free_number({record.number for record in known.values()}, FIRST_HOST)
        record = HostRecord(name, number, image_path, **options)
        self.state.save_host(record)
        return record

    def _boot_all(self, plan: Plan, records: Sequence[HostRecord], timeout: float) -> None:
        machines = [Machine(self.state, plan, record) for record in records]
        with ThreadPoolExecutor(BOOTS_AT_ONCE) as pool:
            list(pool.map(lambda machine: self._boot(machine, time.monotonic() + timeout), machines))

    def _boot(self, machine: Machine, deadline: float) -> None:
        name, started = machine.record.name, time.monotonic()
        if machine.running and machine.record.settled:
            return
        machine.boot()
        wait_for_sshd(machine, deadline)
        self._purge(machine.record)
        machine.record.settled = True
        self.state.save_host(machine.record)
        address = machine.plan.address(machine.record.number)
        self.say(f"{name} is up at {address} ({time.monotonic() - started:.1f} s)")

    def _purge(self, record: HostRecord) -> None:
        """Remove packages that the image contains, for a host without them."""
        if record.without_packages and not record.settled:
            words = ["dpkg", "--purge", "--force-depends", *record.without_packages]
            result = self.exec(record.name, words, timeout=120)
            if result.exit != 0:
                raise LabError(f"Packages could not be removed: {result.error_text}", "Check their names.")

    def _machine(self, host: str) -> Machine:
        record, lab = self._record(host), self.state.load_lab()
        assert lab is not None
        return Machine(self.state, lab.plan, record)

    def _record(self, host: str) -> HostRecord:
        known = self.state.load_hosts()
        if host not in known:
            raise UnknownHost(host, list(known))
        return known[host]

    def _entrance(self, host: str) -> tuple[Process, HostCgroup]:
        preflight.check()
        leader = leader_of(self._record(host))
        if leader is None:
            raise HostOff(host)
        return leader, HostCgroup(self.name, host)

    def _status(self, plan: Plan, record: HostRecord) -> HostStatus:
        leader = leader_of(record)
        state = "off" if leader is None else "up" if record.settled else "booting"
        console = str(self.state.console(record.name))
        address, pid = str(plan.address(record.number)), leader.pid if leader else None
        return HostStatus(record.name, address, state, record.gpus, record.disk_mb, pid, console)
