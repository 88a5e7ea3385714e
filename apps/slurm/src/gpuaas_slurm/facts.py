"""The script that reads the facts of a host in one round trip, before anything is changed. It also records the claim on
the host, so that commands of an older claim are rejected there."""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuaas_sdk.host_steps.host import TAKE_CHARGE, Answer, Host, unit_states

from gpuaas_slurm import validate
from gpuaas_slurm.plan import UNIX_USER
from gpuaas_slurm.profile import UNITS
from gpuaas_slurm.slurm import accounts

FIRST_UID = 21064  # of the user that jobs run as, unless a host has it already
PORTS = {6817: "slurmctld", 6818: "slurmd", 6819: "slurmdbd"}
PROGRAMS = {  # program -> Debian package
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    accounts.CLIENT: "slurm-client",
    "srun": "slurm-client",
    "mariadbd": "mariadb-server",
    "mariadb": "mariadb-client",
    "ss": "iproute2",
    "flock": "util-linux",
}

STATES = unit_states(UNITS)
LOOK = f"""{TAKE_CHARGE}{STATES}
read -r name </proc/sys/kernel/hostname && say hostname "${{name%%.*}}"
say now_ms $((${{EPOCHREALTIME/./}} / 1000))
virt=; read -r virt 2>/dev/null </run/systemd/container || virt=$(systemd-detect-virt --container 2>/dev/null || true)
say virt "$virt"
say cgroup "$(stat -fc %T /sys/fs/cgroup 2>/dev/null)"
controllers=; read -r controllers 2>/dev/null </sys/fs/cgroup/cgroup.controllers; say controllers "$controllers"
[ -w /sys/fs/cgroup/freezer ] && say freezer writable
[ -S /run/dbus/system_bus_socket ] && say dbus yes
say cpus "$(nproc)"
while read -r what kb _; do [ "$what" != MemTotal: ] || {{ say memory_mb $((kb / 1024)); break; }}; done </proc/meminfo
uid=$(id -u {UNIX_USER} 2>/dev/null); say uid "$uid"
[ -n "$uid" ] || say taken "$(getent passwd | awk -F: '$3>={FIRST_UID} && $3<{FIRST_UID + 1000} {{printf "%s ", $3}}')"
for d in /dev/nvidia[0-9]*; do [ -c "$d" ] && say gpu "$d"; done
for p in {" ".join(PROGRAMS)}; do command -v "$p" >/dev/null || say missing "$p"; done
df -kP /etc /var/lib /var/log /tmp 2>/dev/null | {{ read -r _
  while read -r _ _ _ free _ where; do say disk "$where|$free"; done; }}
foreign=  # the owner of a port costs a scan of all processes: read only if it may not be ours
for p in {" ".join(f"{port}:{unit}" for port, unit in PORTS.items())}; do
  ! port_open ${{p%:*}} || {{ [ -f "$OWN/before" ] && active ${{p#*:}}; }} || foreign=yes
done
[ -z "$foreign" ] || ss -ltnpH 2>/dev/null | while read -r _ _ _ where _ who; do say port "${{where##*:}}|$who"; done
if [ -f /etc/slurm/slurm.conf ]; then
  whose= cluster=
  while read -r line; do
    case $line in
      "# Managed by GPUaaS: instance "*) whose=${{whose:-${{line##* }}}} ;;
      ClusterName=*) cluster=${{cluster:-${{line#*=}}}} ;;
    esac
  done </etc/slurm/slurm.conf
  say conf "$whose"
  say conf_cluster "$cluster"
fi
[ -f "$OWN/packages.before" ] && say packaged yes
options=
while read -r line; do
  case $line in SLURMD_OPTIONS=*) options=${{line#*=}} ;; esac
done 2>/dev/null </etc/gpuaas-slurm/slurmd.env
say options "$options"
[ -d /var/lib/mysql/slurm_acct_db ] && say schema yes
given=; read -r given 2>/dev/null <"$OWN/munge.key.sha256"
[ -z "$given" ] || [ "$(sha256sum 2>/dev/null </etc/munge/munge.key)" != "$given" ] || say key "${{given%% *}}"
for i in "$BASE"/*/before; do [ -f "$i" ] && i=${{i%/before}} && say owner "${{i##*/}}"; done
for u in {" ".join(UNITS)}; do say unit "$u|${{state_of[$u]}}"; done
"""


@dataclass(frozen=True)
class HostFacts:
    hostname: str
    skew_s: float = 0.0
    virt: str = "none"
    cgroup: str = ""
    controllers: tuple[str, ...] = ()
    freezer: bool = False
    dbus: bool = False
    cpus: int = 1
    memory_mb: int = 1024
    gpus: tuple[str, ...] = ()
    declared_gpus: tuple[str, ...] = ()  # what the platform says this machine has
    missing: tuple[str, ...] = ()
    packaged: bool = False  # some of its packages came with the cluster
    disk_kb: dict[str, int] = field(default_factory=dict)
    ports: dict[int, str] = field(default_factory=dict)
    conf_instance: str | None = None
    conf_cluster: str = ""
    options: str = ""  # of its slurmd, where it is a worker already
    schema: bool = False
    owners: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    key: str = ""  # hash of the cluster's munge key, if the host has the one it was given
    uid: int | None = None  # of the user that jobs run as, where it exists
    taken_uids: frozenset[int] = frozenset()

    @property
    def confinement(self) -> str:
        """Return how this host can confine jobs: 'cgroup/v2', 'cgroup/v1' or 'linuxproc'."""
        if self.virt not in ("", "none"):
            return "linuxproc"
        if self.cgroup == "cgroup2fs" and self.dbus and {"cpuset", "cpu", "memory"} <= set(self.controllers):
            return "cgroup/v2"
        return "cgroup/v1" if self.freezer else "linuxproc"

    @property
    def usable_memory_mb(self) -> int:
        """Return 95 % of the memory. Slurm drains a node that has less memory than it declares."""
        return max(1, self.memory_mb * 95 // 100)


def common_uid(hosts: Iterable[HostFacts]) -> int:
    """Return one uid for the cluster's user: the uid that a host already uses, or the first that is free on all
    hosts."""
    known = list(hosts)
    taken = frozenset[int]().union(*(one.taken_uids for one in known))
    there = [one.uid for one in known if one.uid is not None]
    return there[0] if there else next(uid for uid in range(FIRST_UID, FIRST_UID + 1001) if uid not in taken)


@dataclass(frozen=True)
class AskedBetween:
    """The time span of a command on a host, by the controller's clock in ms. The host wrote its own time within this
    span, which may last minutes, for example while the command waits for a package manager."""

    began_ms: int
    ended_ms: int

    @classmethod
    def since(cls, began_ms: int) -> "AskedBetween":
        return cls(began_ms, now_ms())

    def skew_s(self, answer: Answer) -> float:
        """Return by how many seconds the host's clock is at least ahead, or behind if negative. 0 if the host's time
        lies within the time span."""
        host_ms = int(answer.last("now_ms", str(self.began_ms)))
        return (min(0, host_ms - self.began_ms) + max(0, host_ms - self.ended_ms)) / 1000


def now_ms() -> int:
    return round(time.time() * 1000)


async def look(host: Host, more: str = "") -> tuple[HostFacts | None, Answer]:
    """Fence the host and read its facts. Returns the facts, or None if the script failed, and the script's output.
    `more` is shell text that runs in the same command."""
    began = now_ms()
    answer = await host.script(f"{LOOK}{more}exit 0\n", within=60)
    return (read(answer, AskedBetween.since(began)) if answer.exit == 0 else None), answer


def read(answer: Answer, asked: AskedBetween) -> HostFacts:
    pairs = {key: [line.split("|", 1) for line in answer.lines.get(key, [])] for key in ("disk", "port", "unit")}
    return HostFacts(
        hostname=validate.word("hostname", answer.last("hostname")),
        skew_s=asked.skew_s(answer),
        virt=answer.last("virt", "none") or "none",
        cgroup=answer.last("cgroup"),
        controllers=tuple(answer.last("controllers").split()),
        freezer=answer.last("freezer") == "writable",
        dbus=answer.last("dbus") == "yes",
        cpus=int(answer.last("cpus", "1")),
        memory_mb=int(answer.last("memory_mb", "1024")),
        gpus=tuple(sorted((validate.word("device", d) for d in answer.lines.get("gpu", [])), key=_natural)),
        missing=tuple(answer.lines.get("missing", [])),
        packaged=answer.last("packaged") == "yes",
        disk_kb={path: int(kb) for path, kb in pairs["disk"]},
        ports={int(port): who for port, who in pairs["port"] if port.isdigit()},
        conf_instance=answer.last("conf") if "conf" in answer.lines else None,
        conf_cluster=answer.last("conf_cluster"),
        options=answer.last("options"),
        schema=answer.last("schema") == "yes",
        owners=tuple(answer.lines.get("owner", [])),
        key=answer.last("key") if re.fullmatch("[0-9a-f]{64}", answer.last("key")) else "",
        uid=int(answer.last("uid")) if answer.last("uid").isdigit() else None,
        taken_uids=frozenset(int(uid) for uid in answer.last("taken").split()),
        units={unit.removesuffix(".service"): state for unit, state in pairs["unit"]},
    )


def _natural(path: str) -> tuple[int, str]:
    digits = re.search(r"(\d+)$", path)
    return (int(digits.group(1)) if digits else 0, path)
