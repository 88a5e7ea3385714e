"""What a host, a cluster and the platform look like, as plain lines: to be compared with another moment or another run.

Ids, times and what a machine changes by itself (logs, caches, the database's own files, munged's random seed, the copies
that useradd keeps of /etc/passwd and the like) are left out; so are programs that were not there a moment before (the
platform looks at its clusters, too), and the one line in which a host remembers the newest operation on a member
(`floor`), which comes with the first one.
"""

import json
import re
from collections import Counter
from typing import Any, NamedTuple

from tests.support.crash_sweep import STILL_HERE
from tests.support.lab_stack import Ground

Look = dict[str, list[str]]

MANAGED = "/etc/slurm /etc/gpuaas-slurm /etc/mysql/mariadb.conf.d /etc/systemd/system/{munge,slurmdbd,slurmctld,slurmd}.service.d"
HOST = f"""
shopt -s nullglob
running() {{ ps -eo pid=,user=,comm= | grep -Ev ' (ps|bash|sh|sort|grep|sed|find|xargs|sshd|\\(sd-pam\\)|agetty|timeout|sleep|\\(.*\\)|kworker.*|systemd-.*)$' | sort; }}
first=$(running)
echo '== files'
find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /var/log -o -path /var/cache -o -path /usr/share \\
  -o -path /var/lib/systemd -o -path '/var/lib/mysql/*' -o -path '/var/lib/gpuaas-agent/*' -o -path '/var/lib/slurm/slurmctld/*' \\
  -o -path '/var/lib/slurm/slurmd/*' -o -path /usr/lib/python3 -o -path '/tmp/systemd-private-*' \\
  -o -path '/var/tmp/systemd-private-*' -o -path /var/lib/munge/munged.seed -o -path '/etc/*-' -o -path '/etc/ssh/gpuaas/.*' \\
  -o -path '/var/lib/gpuaas-slurm/*/floor' \\) -prune -o -printf '%y %m %u %g %p %l\\n'
echo '== contents'
find /etc -xdev -type f ! -path '/etc/ssh/gpuaas/*' ! -path '/etc/slurm/*' ! -path '/etc/gpuaas*' ! -path '/etc/munge/*' \\
  ! -name 50-gpuaas.conf ! -name 60-gpuaas-slurm.cnf ! -name 'passwd*' ! -name 'shadow*' ! -name 'group*' ! -name 'gshadow*' \\
  ! -name 'sub?id*' -print0 | xargs -0 sha256sum
echo '== managed'
for f in $(find {MANAGED} -type f 2>/dev/null); do sed "s|^|$f: |" "$f"; done
echo '== accounts'
getent passwd; getent group; cut -d: -f1 /etc/shadow; cat /etc/subuid
echo '== processes'
comm -12 <(echo "$first") <(running) | awk '{{print $2, $3}}'
echo '== mounts'
awk '{{print $5, $9}}' /proc/self/mountinfo
echo '== ports'
ss -ltnH | awk '{{print $4}}'
echo '== routes'
ip -4 route show table all
echo '== spool'
find /var/lib/mysql -maxdepth 1 -type d
ls -A /var/lib/slurm/slurmd 2>/dev/null
"""
CLUSTER = """
busy() { [ -n "$(squeue -h; sinfo -h -t alloc,mix,comp -o %N)" ]; }
for _ in $(seq 300); do busy || break; sleep 0.2; done
echo '== nodes'; sinfo -h -N -o '%N %t %G %P %E'
echo '== reservations'; scontrol -o show reservations
echo '== accounting'; sacctmgr -nP show assoc format=cluster,account,user,qos; sacctmgr -nP show user; sacctmgr -nP show cluster format=cluster,classification
echo '== queue'; squeue -h
"""
# The scheduler tells its accounting of a job's end when it comes to it.
ACCOUNTED = """
told() { [ -z "$(comm -23 <(scontrol -o show jobs | grep -o '^JobId=[0-9]*' | cut -d= -f2 | sort) \\
  <(sacct -X -nP -S now-1day -o JobIDRaw,State | grep -Ev '(RUNNING|PENDING)$' | cut -d'|' -f1 | sort))" ]; }
for _ in $(seq 600); do ! told || break; sleep 0.2; done
"""
BEGUN = f"{ACCOUNTED}sacct -X -nP -S now-1day -o Start,End,JobName,NodeList"
JOBS = f"""{ACCOUNTED}
echo '== jobs'; sacct -X -nP -S now-1day -o JobID,JobName,State,Account,User
"""
ID = re.compile(r"\b(inst|op|mem|evt|grant|crt|cor|corr)_[0-9A-Za-z]{8,}")
NODE = re.compile(r"\b(worker\d+)-[0-9a-z]{8}\b")
JOB = re.compile(r"\b([Jj]ob )\d+\b|\b\d+(\|gpuaas-proof)")  # a try-out of the bundle's headers takes a number, too
TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z?")
# How often a controller had to come back, people see as claims and grants, and looks between operations tell what they
# see as often as it changes; everything else is told once.
PER_LIFE = {"apps.operation.claimed", "apps.access.granted", "apps.operation.progressed", "apps.instance.updated"}


def plain(text: str) -> str:
    text = re.sub(r"pid=\d+,fd=\d+", "PROCESS", text)
    text = re.sub(r"/(accounts|clean)\.\d+\b", r"/\1.EPOCH", text)
    text = JOB.sub(r"\1N\2", text)
    return TIME.sub("TIME", NODE.sub(r"\1-ID", ID.sub(r"\1_ID", text)))


def _sections(text: str) -> Look:
    parts = (part.partition("\n") for part in re.split("^== ", text, flags=re.MULTILINE)[1:])
    return {name: sorted(plain(line).strip() for line in lines.splitlines()) for name, _, lines in parts}


def host(ground: Ground, name: str) -> Look:
    return _sections(ground.on_host(name, "bash", "-c", HOST, timeout=300))


def marks(ground: Ground, name: str) -> list[str]:
    """Of claims, by which a host refuses late commands for an hour after their end."""
    return ground.on_host(name, "bash", "-c", "ls -A /run/gpuaas-slurm 2>/dev/null || true").split()


def cluster(ground: Ground, head: str, *, jobs: bool = True) -> Look:
    return _sections(ground.on_host(head, "bash", "-c", CLUSTER + (JOBS if jobs else ""), timeout=300))


class Begun(NamedTuple):
    """A job that began on some node, as accounting tells it."""

    start: str
    end: str
    name: str


def jobs_begun_on(ground: Ground, head: str, node: str) -> list[Begun]:
    """Looked up by the node's name here: accounting hears of a new node later than of the jobs on it, and `-N` asks it."""
    rows = [line.split("|") for line in ground.on_host(head, "bash", "-c", BEGUN, timeout=300).splitlines()]
    return [Begun(start, end, name) for start, end, name, where in rows if where == node and start != "Unknown"]


def platform(ground: Ground, instance_id: str) -> dict[str, Any]:
    """What people read about an instance, its members, its operations and its story."""
    seen, boss = ground.instance(instance_id), ground.demo.boss
    done = boss.list_operations(ground.research, instance_id=instance_id, limit=200).items
    told = [event for event in ground.events() if event.data.get("app_instance_id") == instance_id]
    facts = {
        "state": seen.state,
        "health": [seen.health.status, seen.health.sentence],
        "conditions": sorted([one.type, one.status, one.message] for one in seen.conditions),
        "generations": [seen.generation, seen.observed_generation],
        "versions": [seen.version, seen.runtime_version],
        "access": seen.access,
        "members": sorted(
            [m.component_key, m.ordinal, m.node_name, m.state, _at_work(m), m.runtime_version, m.adapter_detail]
            for m in seen.members
        ),
        "operations": sorted([one.kind, one.status, one.error, one.progress.message, _proof(one)] for one in done),
        "events": sorted(Counter(e.type for e in told if e.type not in PER_LIFE).items()),
        "steps told": sorted({_step(e) for e in told if e.type == "apps.operation.progressed"} - {STILL_HERE}),
    }
    return json.loads(plain(json.dumps(facts, default=str)))


def _at_work(member: Any) -> str | None:
    """A worker whose proof job is just ending may be seen busy or idle."""
    return "idle or busy" if member.runtime_state in ("idle", "busy") else member.runtime_state


def _proof(operation: Any) -> Any:
    return {a: sorted([c["check"], c["ok"]] for c in host["checks"]) for a, host in (operation.evidence or {}).items()}


def _step(event: Any) -> str:
    """Without the hosts it names: a controller that comes back names those where something is still to do."""
    return re.sub(r" \(.*\)$", "", event.data["message"])


def assert_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = difference(one, other)
    assert not found, json.dumps(found, indent=1)


def difference(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Section by section: what only the first has, what only the second has. Empty when they are alike."""
    found = {name: _apart(one.get(name), other.get(name)) for name in sorted(one.keys() | other.keys())}
    return {name: apart for name, apart in found.items() if apart}


def _apart(a: Any, b: Any) -> Any:
    if isinstance(a, dict) and isinstance(b, dict):
        return difference(a, b)
    if isinstance(a, list) and isinstance(b, list):  # in any order: what is done at once ends as it comes
        left, right = (Counter(json.dumps(line, default=str) for line in side) for side in (a, b))
        return (
            {"only before": list((left - right).elements()), "only after": list((right - left).elements())}
            if left != right
            else None
        )
    return None if a == b else {"before": a, "after": b}
