"""What a step is: a probe that says whether it is done, an act that does it, and the same probe, asked until it holds.

Probe and act are shell functions run on the host by host.sh. All probes of a host go in one round trip, and so do the
acts of a stage: a session and a shell cost more than most acts. `undo` names the teardown step that takes the act back
(tests check that there is one for each).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuaas_slurm import validate
from gpuaas_slurm.facts import STATES
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
    """A step on one host. The tasks of a stage go in turns there: the next when those of the turn before hold."""

    host: Host
    step: Step
    turn: int = 0


Stage = tuple[Task, ...]  # tasks of one stage and turn do not need each other and run at once


def in_one_go(*stages: Stage) -> Stage:
    """One stage, in which no host waits for another: each goes through all of them by itself, in one command."""
    return tuple(replace(task, turn=turn) for turn, stage in enumerate(stages) for task in stage)


def acts(turns: Sequence[Sequence[Step]], inputs: Mapping[str, bytes], *, ask: bool) -> str:
    """The script for several steps on one host; `ask`: what holds already is left alone. `inputs` come in their order,
    one after the other."""
    steps = [step for turn in turns for step in turn]
    names = {step.name: validate.word("step", step.name) for step in steps}
    made = "".join(
        function(f"step_{names[s.name]}", function("probe", s.probe) + function("act", s.act)) for s in steps
    )
    units = " ".join(f"[{names[s.name]}]={validate.word('unit', s.unit)}" for s in steps if s.unit)
    within = " ".join(f"[{names[s.name]}]={max(1, round(s.within))}" for s in steps)
    order = " ".join(f'"{" ".join(names[s.name] for s in turn)}"' for turn in turns)
    parts = " ".join(f"{names[name]}:{len(data)}" for name, data in inputs.items())
    told = f"TURNS=({order}) INPUTS='{parts}' ASK={'yes' if ask else ''}"
    return f"{made}declare -A UNIT_OF=({units}) WITHIN_OF=({within})\n{told}\nrun_acts\n"


def function(name: str, body: str) -> str:
    return f"{name}() {{\n{body.strip()}\n}}\n"


def questions(steps: Sequence[Step]) -> str:
    """Every probe, all at once; after STATES."""
    words = [validate.word("step", step.name) for step in steps]
    probes = "".join(function(f"probe_{s.name}", s.probe) for s in steps)
    ask = 'do { "probe_$s" >/dev/null 2>&1 && say done "$s"; } & done; wait'
    return f"{probes}for s in {' '.join(words)}; {ask}\n"


def survey(steps: Sequence[Step]) -> str:
    return f"{STATES}{questions(steps)}exit 0\n"
