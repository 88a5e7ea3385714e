"""Reads each host of a probably unchanged cluster in one round trip: its facts, the finished steps, the running
services.

The probes depend on the facts, so this normally takes two round trips. A controller that has facts of the host from an
earlier operation reads both at once, assuming the same facts; if the facts changed, the probes are run again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Answer, Host, together
from gpuaas_sdk.host_steps.runner import Prefetched, Runner
from gpuaas_sdk.host_steps.step import Stage, Step, questions

from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.reconcile import versions
from gpuaas_slurm.reconcile.context import Tools, read_facts, read_facts_and_more
from gpuaas_slurm.reconcile.versions import Versions
from gpuaas_slurm.slurm import node_control

Recipe = Callable[[Plan, dict[str, Host], dict[str, HostFacts]], list[Stage]]


@dataclass(frozen=True)
class Seen:
    """What was read from the hosts. `answers` has the probe results of each host, if its probes were run too."""

    facts: dict[str, HostFacts]
    prefetched: dict[str, Prefetched] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)


async def look(plan: Plan, hosts: dict[str, Host], tools: Tools, recipe: Recipe) -> Seen:
    """Fence every host with the claim and read its facts. If all hosts are known, the expected steps are probed in the
    same command."""
    asked = _foreseen(plan, hosts, tools, recipe)
    if not asked:
        return _kept(Seen(await read_facts(hosts)), tools)
    head = plan.controller.allocation_id
    more = {
        a: f"{questions(steps)}{versions.RUNNING}{node_control.LIST_STATES_IF_UP if a == head else ''}"
        for a, steps in asked.items()
    }
    found = dict(zip(hosts, await together(*(read_facts_and_more(hosts[a], more[a]) for a in hosts)), strict=True))
    answers = {a: answer for a, (_, answer) in found.items()}
    foreseen = {
        a: Prefetched({step.name: step.probe for step in steps}, frozenset(answers[a].lines.get("done", [])))
        for a, steps in asked.items()
    }
    return _kept(Seen({a: facts for a, (facts, _) in found.items()}, foreseen, answers), tools)


async def how_it_runs(
    plan: Plan, hosts: dict[str, Host], seen: Seen, runner: Runner
) -> tuple[dict[str, str], dict[str, Versions]]:
    """Return the workers' runtime_state and the versions on each host. Prefetched values are used if no step has acted
    since."""
    where = plan.controller.allocation_id
    answer = seen.answers.get(where)
    if answer is None or "node" not in answer.lines or any(row["acted"] for row in runner.timeline):
        states, running = await together(node_control.read_states(hosts[where], plan.workers), versions.of(hosts))
        return states, running
    return node_control.states_of(answer, plan.workers), {a: versions.read(one) for a, one in seen.answers.items()}


def _foreseen(plan: Plan, hosts: dict[str, Host], tools: Tools, recipe: Recipe) -> dict[str, list[Step]]:
    """Return the expected steps by allocation, assuming that every host has the same facts as before; empty if the
    facts of a host are unknown."""
    if not hosts.keys() <= tools.facts.keys():
        return {}
    try:
        stages = recipe(plan, hosts, {a: tools.facts[a] for a in hosts})
    except StepFailed:
        return {}
    return {a: _steps(stages, a) for a in hosts}


def _steps(stages: Iterable[Stage], allocation_id: str) -> list[Step]:
    return [task.step for stage in stages for task in stage if task.host.allocation_id == allocation_id]


def _kept(seen: Seen, tools: Tools) -> Seen:
    tools.facts.update(seen.facts)
    return seen
