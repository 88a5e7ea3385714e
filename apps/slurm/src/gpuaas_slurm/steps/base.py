"""What a step is: a probe that says whether it is done, an act that does it, and the same probe, asked until it holds.

Probe and act are shell functions run on the host by host.sh. All probes of a host go in one round trip; each act is
one more. `undo` names the teardown step that takes the act back (tests check that there is one for each).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gpuaas_slurm import validate
from gpuaas_slurm.hosts import Host


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    phase: str
    probe: str
    act: str
    within: float = 15
    unit: str = ""
    code: str = "step_failed"
    data: bytes | Callable[[], Awaitable[bytes]] | None = None  # a function is asked when its turn comes
    undo: str = ""
    when: str = ""  # in words, for a step that most hosts do not need
    goes_with: str = ""  # a step: this one is done only if that one is, on every host

    async def input(self) -> bytes | None:
        return await self.data() if callable(self.data) else self.data

    def script(self) -> str:
        return f"{function('probe', self.probe)}{function('act', self.act)}run_act\n"


@dataclass(frozen=True)
class Task:
    """A step on one host."""

    host: Host
    step: Step


Stage = tuple[Task, ...]  # tasks of one stage do not need each other and run at once


def function(name: str, body: str) -> str:
    return f"{name}() {{\n{body.strip()}\n}}\n"


# Which services run is asked once for all probes, each of which would else start a systemctl of its own.
ACTIVE = """
up=" " unit=
while IFS== read -r what value; do
  case $what=$value in Id=*) unit=${value%.service} ;; ActiveState=active) up+="$unit " ;; esac
done < <(systemctl show -p Id -p ActiveState {munge,mariadb,slurmdbd,slurmctld,slurmd}.service 2>/dev/null)
active() { [[ $up == *" $1 "* ]]; }
"""


def survey(steps: Sequence[Step]) -> str:
    """One script that asks every probe, all at once."""
    words = [validate.word("step", step.name) for step in steps]
    probes = "".join(function(f"probe_{s.name}", s.probe) for s in steps)
    ask = 'do { "probe_$s" >/dev/null 2>&1 && say done "$s"; } & done; wait'
    return f"{ACTIVE}{probes}for s in {' '.join(words)}; {ask}\nexit 0\n"
