"""Boots and stops one host: systemd-nspawn with the host's own overlay, namespace and cgroup.

The supervisor, a short shell script around systemd-nspawn, runs in its own session, writes to the console log and
outlives this process. It starts nspawn again when the host reboots itself. A power loss is simulated by cutting the
network, stopping all processes, then killing the leader (the host's PID 1) and with it the whole process tree.
"""

from pathlib import Path

from gpuaas_lab import disks, network
from gpuaas_lab.cgroups import HostCgroup
from gpuaas_lab.errors import HostDidNotBoot
from gpuaas_lab.plan import Plan, namespace
from gpuaas_lab.processes import Process, wait_until
from gpuaas_lab.run import run
from gpuaas_lab.state import HostRecord, State

# Joins the host's "exec" cgroups, writes its id, lets go of inherited files (the lab's lock!), then runs nspawn in the
# host's cgroups, again and again while nspawn says 133: "the host wants to reboot".
LAUNCHER = r"""
pidfile=$1 console=$2; shift 2
join() { while [ "$1" != -- ]; do echo $BASHPID >"$1" || exit 1; shift; done; }
join "$@"; while [ "$1" != -- ]; do shift; done; shift
echo $$ >"$pidfile.new" && mv "$pidfile.new" "$pidfile"
exec </dev/null >>"$console" 2>&1
for fd in /proc/self/fd/*; do fd=${fd##*/}; [ "$fd" -gt 2 ] && exec {fd}>&-; done
home=(); while [ "$1" != -- ]; do home+=("$1"); shift; done; shift
while :; do
  ( join "${home[@]}" --; exec "$@" )
  [ $? = 133 ] || exit
done
"""

HOSTS_FILE = """\
127.0.0.1 localhost
::1 localhost ip6-localhost
{address} {name}
"""


class Machine:
    """One host that can be switched on and off. The caller holds the lab's lock."""

    def __init__(self, state: State, plan: Plan, record: HostRecord) -> None:
        self.state, self.plan, self.record = state, plan, record
        self.folder = state.host_folder(record.name)
        self.cgroup = HostCgroup(plan.lab, record.name)

    @property
    def running(self) -> bool:
        return self.leader is not None

    @property
    def leader(self) -> Process | None:
        """Return the host's PID 1. It is read each time, because it changes when the host reboots itself."""
        return leader_of(self.record)

    @property
    def cable(self) -> str:
        return self.plan.veth(self.record.number)

    def boot(self) -> None:
        if self.running:
            return
        self._clear_remains()
        space = network.plug_in(self.plan, self.record.name, self.record.number)
        root = disks.attach(self.folder, Path(self.record.image), self.record.disk_mb)
        self._personalise(root)
        self._launch(root, space)
        self._record_processes()

    def power_off(self) -> None:
        """Simulate a power loss; the disk stays.

        All processes are stopped first: while PID 1 dies, no other process may notice closed sockets and write to the
        disk.
        """
        network.pull_cable(self.cable)
        self.cgroup.stop_all()
        self._clear_remains()
        network.unplug(self.plan.lab, self.record.name, self.cable)
        disks.detach(self.folder)
        self.record.supervisor = self.record.leader = None
        self.state.save_host(self.record)

    def console_tail(self, lines: int = 15) -> str:
        console = self.state.console(self.record.name)
        text = console.read_text(errors="replace") if console.exists() else ""
        kept = [line.rstrip() for line in text.splitlines() if line.strip()]
        return "\n".join(f"  {line}" for line in kept[-lines:])

    def did_not_boot(self, why: str) -> HostDidNotBoot:
        return HostDidNotBoot(self.record.name, why, str(self.state.console(self.record.name)), self.console_tail())

    def _clear_remains(self) -> None:
        stop_processes(self.record, self.cgroup)
        (self.folder / "supervisor.pid").unlink(missing_ok=True)

    def _personalise(self, root: Path) -> None:
        """Write the host's name and GPUs into its copy of the image, once."""
        if self.record.prepared and (root / "etc/hostname").exists():
            return
        name, address = self.record.name, self.plan.address(self.record.number)
        (root / "etc/hostname").write_text(f"{name}\n")
        (root / "etc/hosts").write_text(HOSTS_FILE.format(name=name, address=address))
        gpus = [f"c /dev/nvidia{index} 0666 root root - 195:{index}\n" for index in range(self.record.gpus)]
        (root / "etc/tmpfiles.d/gpuaas-lab-gpus.conf").write_text("".join(gpus))
        self.record.prepared = True
        self.state.save_host(self.record)

    def _launch(self, root: Path, space: str) -> None:
        console = self.state.console(self.record.name)
        launcher = ["setsid", "--fork", "bash", "-c", LAUNCHER, "gpuaas-lab-launch"]
        groups = [*self.cgroup.make("exec"), "--", *self.cgroup.make(), "--"]
        files = [str(self.folder / "supervisor.pid"), str(console)]
        run([*launcher, *files, *groups, *self._nspawn(root, space)], timeout=60)

    def _nspawn(self, root: Path, space: str) -> list[str]:
        name = self.record.name
        options = {
            "--machine": namespace(self.plan.lab, name),
            "--hostname": name,
            "--directory": str(root),
            "--network-namespace-path": f"/run/netns/{space}",
            "--console": "read-only",
            "--register": "no",
            "--resolv-conf": "off",
            "--timezone": "off",
            "--link-journal": "no",
            "--setenv": "SYSTEMD_COLORS=0",
        }
        flags = [
            "--quiet",
            "--boot",
            "--keep-unit",
            "--capability=CAP_NET_ADMIN",
        ]  # root of its own network, as on a machine
        words = [f"{option}={value}" for option, value in options.items()]
        return ["systemd-nspawn", *flags, *words, "--", "systemd.show_status=yes"]

    def _record_processes(self) -> None:
        pidfile = self.folder / "supervisor.pid"
        if not wait_until(pidfile.exists, 60):
            raise self.did_not_boot("systemd-nspawn did not start")
        self.record.supervisor = supervisor = Process.of(int(pidfile.read_text()))
        self.state.save_host(self.record)
        wait_until(lambda: self.running or not (supervisor and supervisor.alive), 60)
        self.record.leader = self.leader
        self.state.save_host(self.record)
        if self.record.leader is None:
            raise self.did_not_boot("systemd-nspawn ended, or never started a system inside")


def leader_of(record: HostRecord) -> Process | None:
    """Return the child of systemd-nspawn, which is a child of the supervisor; if those were killed, the recorded
    process."""
    nspawn = record.supervisor.first_child if record.supervisor else None
    candidates = (nspawn.first_child if nspawn else None, record.leader)
    return next((process for process in candidates if process and process.alive and process.is_init), None)


def stop_processes(record: HostRecord | None, cgroup: HostCgroup) -> None:
    """Kill the leader first, so that nspawn ends by itself and removes its files; then all processes left in the
    cgroup."""
    if record and (leader := leader_of(record)):
        leader.kill()
        if record.supervisor:
            record.supervisor.wait_gone(3)
    cgroup.kill_all()
    cgroup.remove()
