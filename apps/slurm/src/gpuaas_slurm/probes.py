"""Scripts that read the hosts of a running cluster between operations, and their typed results. They change nothing.

There is no claim and no fence: an operation may begin meanwhile, and then the platform rejects the observation. The
controller's host is asked about the cluster, a worker's host about its own service, clock and files.
"""

from dataclasses import dataclass, field
from typing import Any

from gpuaas_sdk.host_steps.host import Answer

from gpuaas_slurm.facts import STATES, UNITS, AskedBetween
from gpuaas_slurm.render.other_conf import ACCOUNTS, DATABASE
from gpuaas_slurm.slurm import accounts, daemons, nodes, parse, partitions
from gpuaas_slurm.slurm.accounts import LIMITS
from gpuaas_slurm.slurm.parse import Node

# Files by the hashes that the `files` step left; a host of an older release has no such list and says nothing of files.
_COMMON = rf"""
say now_ms "$(now_ms)"
{STATES}
for u in {" ".join(UNITS)}; do say unit "$u|${{state_of[$u]}}"; done
if [ -f "$OWN/files.sha256" ]; then
  say files listed
  sha256sum -c --quiet "$OWN/files.sha256" 2>/dev/null | sed -n 's/^\(.*\): FAILED\(.*\)$/\1 \2/p' |
    while read -r path _; do
      if [ -e "$path" ]; then how="changed|$path|$(stat -c %y "$path" | cut -c1-16)"; else how="lost|$path|"; fi
      say file "$how"
    done
fi
"""
HEAD = (
    _COMMON
    + f"""
say version "$(slurmctld -V 2>/dev/null)"
grep '^PartitionName=' /etc/slurm/slurm.conf | sed 's/^/@wanted /'
sed 's/^/@made /' {ACCOUNTS} 2>/dev/null
if {daemons.CTLD_LISTENS}; then
  say ping "$({daemons.ping()} 2>&1 | head -1)"
  {nodes.list_details()} | sed 's/^/@node /'
  {partitions.list_details()} | sed 's/^/@partition /'
fi
if active mariadb && timeout 5 runuser -u slurm -- mariadb {DATABASE} -e 'SELECT 1' </dev/null >/dev/null 2>&1; then
  say database answers
fi
if {daemons.DBD_LISTENS}; then
  cluster=$(sed -n 's/^ClusterName=//p' /etc/slurm/slurm.conf | head -1)
  if associations=$({accounts.list_associations("$cluster")}); then
    say accounts answer
    sed 's/^/@assoc /' <<<"$associations"
  fi
fi
exit 0
"""
)
WORKER = _COMMON + 'say version "$(slurmd -V 2>/dev/null)"\nexit 0\n'


@dataclass(frozen=True)
class HostSeen:
    """What a host reports about itself. `why` is the reason if the host did not respond, otherwise empty."""

    why: str = ""
    skew_s: float = 0.0
    units: dict[str, str] = field(default_factory=dict)
    version: str = ""
    files_known: bool = False
    files: tuple[tuple[str, str, str], ...] = ()  # changed or lost, path, when

    @property
    def reached(self) -> bool:
        return not self.why

    def runs(self, unit: str) -> bool:
        return self.units.get(unit) == "active"


@dataclass(frozen=True)
class HeadSeen(HostSeen):
    answers: bool = False  # the scheduler
    database: bool = False
    accounts: bool = False
    nodes: dict[str, Node] = field(default_factory=dict)
    partitions: dict[str, dict[str, str]] = field(default_factory=dict)
    wanted: dict[str, dict[str, str]] = field(default_factory=dict)  # partitions in slurm.conf
    associations: tuple[tuple[str, str, str], ...] = ()  # account, user, limits in words
    made: dict[tuple[str, str], str] = field(default_factory=dict)  # account and user that the platform made: how


def read_host(answer: Answer, asked: AskedBetween) -> HostSeen:
    return HostSeen(**_of_host(answer, asked))


def read_head(answer: Answer, asked: AskedBetween) -> HeadSeen:
    known = [node for line in answer.lines.get("node", []) if (node := parse.read_node(line))]
    rows = [line.split("|") for line in answer.lines.get("assoc", [])]
    return HeadSeen(
        **_of_host(answer, asked),
        answers="is UP" in answer.last("ping"),
        database=answer.last("database") == "answers",
        accounts=answer.last("accounts") == "answer",
        nodes={node.name: node for node in known},
        partitions=_partitions(answer.lines.get("partition", [])),
        wanted=_partitions(answer.lines.get("wanted", [])),
        made=_made(answer.lines.get("made", [])),
        associations=tuple((row[0], row[1], _limits(row[2:])) for row in rows if len(row) > 1),
    )


def _of_host(answer: Answer, asked: AskedBetween) -> dict[str, Any]:
    units = [line.split("|", 1) for line in answer.lines.get("unit", []) if "|" in line]
    files = [(*line.split("|", 2), "", "")[:3] for line in answer.lines.get("file", [])]
    return {
        "skew_s": asked.skew_s(answer),
        "units": {unit.removesuffix(".service"): state for unit, state in units},
        "version": parse.version(answer.last("version")) or "",
        "files_known": answer.last("files") == "listed",
        "files": tuple(sorted(files)),
    }


def _partitions(lines: list[str]) -> dict[str, dict[str, str]]:
    found = [parse.fields(line) for line in lines]
    return {one["PartitionName"]: one for one in found if "PartitionName" in one}


def _made(lines: list[str]) -> dict[tuple[str, str], str]:
    """Parse the accounts file that the deploy loaded into Slurm. Returns the options of each account, and of each user
    in it."""
    found: dict[tuple[str, str], str] = {("root", ""): ""}
    parent = "root"
    for line in lines:
        kind, _, rest = line.partition(" - ")
        name, _, how = rest.strip().partition(":")
        name = name.strip("'")
        if kind == "Parent":
            parent = name
        elif kind in ("Account", "User"):
            found[(name, "") if kind == "Account" else (parent, name)] = how
    return found


def _limits(values: list[str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(LIMITS, values, strict=False) if value)
