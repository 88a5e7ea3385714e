"""A step brings a host to one desired state: its probe checks the state, its act establishes the state, and the probe
is repeated until it succeeds (verify).

Probe and act are shell functions that host.sh runs on the host. All probes of a host run in one round trip, and so do
the acts of a stage, since a session and a shell cost more than most acts. `undo` names the teardown step that reverts
this step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from . import validate
from .host import Host, unit_states


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
    data: bytes | Callable[[], Awaitable[bytes]] | None = (
        None  # standard input of the act; a function is called when the act is due
    )
    undo: str = ""
    when: str = ""  # for people: when the step is needed, if most hosts do not need it
    goes_with: str = ""  # another step: this one counts as done only if that one is done on every host

    async def input(self) -> bytes | None:
        return await self.data() if callable(self.data) else self.data

    def script(self) -> str:
        return f"{function('probe', self.probe)}{function('act', self.act)}run_act\n"


@dataclass(frozen=True)
class Task:
    """A step on one host. Tasks of a stage with the same `turn` run at once; a turn starts when the turn before it is
    verified."""

    host: Host
    step: Step
    turn: int = 0


Stage = tuple[Task, ...]  # tasks of one stage and turn are independent and run at once


def in_one_go(*stages: Stage) -> Stage:
    """Join stages into one stage with a turn per stage. Each host runs all its tasks in one command and waits for no
    other host."""
    return tuple(replace(task, turn=turn) for turn, stage in enumerate(stages) for task in stage)


def acts(turns: Sequence[Sequence[Step]], inputs: Mapping[str, bytes], *, ask: bool) -> str:
    """Return the script that runs the steps on one host, turn by turn. With `ask` the script probes each step first and
    skips finished steps. `inputs` has the standard input of each step, concatenated in this order."""
    steps = [step for turn in turns for step in turn]
    names = {step.name: validate.word("step", step.name) for step in steps}
    made = "".join(
        function(f"step_{names[s.name]}", function("probe", s.probe) + function("act", s.act)) for s in steps
    )
    units = " ".join(f"[{names[s.name]}]={validate.word('unit', s.unit)}" for s in steps if s.unit)
    within = " ".join(f"[{names[s.name]}]={max(1, round(s.within))}" for s in steps)
    order = " ".join(f'"{" ".join(names[s.name] for s in turn)}"' for turn in turns)
    parts = " ".join(f"{names[name]}:{len(data)}" for name, data in inputs.items())
    settings = f"TURNS=({order}) INPUTS='{parts}' ASK={'yes' if ask else ''}"
    return f"{made}declare -A UNIT_OF=({units}) WITHIN_OF=({within})\n{settings}\nrun_acts\n"


def function(name: str, body: str) -> str:
    return f"{name}() {{\n{body.strip()}\n}}\n"


def questions(steps: Sequence[Step]) -> str:
    """Return the script that runs the probes of all steps concurrently and prints which steps are done. The script of
    `unit_states` must come before it."""
    names = [validate.word("step", step.name) for step in steps]
    probes = "".join(function(f"probe_{s.name}", s.probe) for s in steps)
    ask = 'do { "probe_$s" >/dev/null 2>&1 && say done "$s"; } & done; wait'
    return f"{probes}for s in {' '.join(names)}; {ask}\n"


def survey(steps: Sequence[Step], units: Sequence[str]) -> str:
    """Return the script that prints which of the steps are already done on a host."""
    return f"{unit_states(units)}{questions(steps)}exit 0\n"
