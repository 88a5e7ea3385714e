"""Operations on the whole cluster after its deploy: stop, start, restart, reconfigure, upgrade, rollback.

The workers may be full of users' jobs, so these operations run no test job: a worker counts as running when Slurm shows
it idle or allocated.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from gpuaas_sdk import Again, Done, Failed, MemberReport, Work
from gpuaas_sdk.client.errors import MachineError
from gpuaas_sdk.host_steps.context import reach_hosts, start_reporter
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Host, together
from gpuaas_sdk.host_steps.outcomes import paused, should_pause, translate_errors
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Stage, Step, Task

from gpuaas_slurm import __version__
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.reconcile import packages, prefetch, versions
from gpuaas_slurm.reconcile.context import Tools, read_facts
from gpuaas_slurm.reconcile.deploy import make_plan
from gpuaas_slurm.reconcile.prefetch import Recipe
from gpuaas_slurm.steps import candidate, deploy, halt

Outcome = Done | Again | Failed
Before = Callable[[dict[str, Host], dict[str, HostFacts]], Awaitable[None]]


async def stop(work: Work, tools: Tools) -> Outcome:
    return await translate_errors(work, tools, lambda: _stop(work, tools))


async def start(work: Work, tools: Tools) -> Outcome:
    return await translate_errors(work, tools, lambda: _brought(work, tools, _there, "runs again"))


async def restart(work: Work, tools: Tools) -> Outcome:
    """Restart every service. Jobs on the workers continue."""
    return await translate_errors(work, tools, lambda: _brought(work, tools, _again, "was restarted"))


async def reconfigure(work: Work, tools: Tools) -> Outcome:
    """Apply each changed input with the effect that the manifest declares (steps/candidate.py)."""
    return await translate_errors(work, tools, lambda: _brought(work, tools, _changed, "has its new settings"))


async def upgrade(work: Work, tools: Tools) -> Outcome:
    """Dump the accounting database, then upgrade slurmdbd, slurmctld and the workers, in this order."""
    return await translate_errors(work, tools, lambda: _upgraded(work, tools))


def _there(plan: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> list[Stage]:
    return deploy.without_proofs(plan, hosts, facts, running=True)


def _again(plan: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> list[Stage]:
    head = hosts[plan.controller.allocation_id]
    apart = [host for host in hosts.values() if host is not head]
    return [*deploy.keyed_again(head, apart), *halt.restart_stages(plan, hosts)]


def _changed(plan: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> list[Stage]:
    _same_name(plan, facts)
    return [
        *deploy.without_proofs(plan, hosts, facts, running=True),
        *candidate.taken_up(plan, hosts, facts),
    ]


def _same_name(plan: Plan, facts: dict[str, HostFacts]) -> None:
    known = facts[plan.controller.allocation_id].conf_cluster
    if known and known != plan.cluster:
        raise StepFailed(
            "cluster_name_fixed", f"The cluster is called {known}; its name cannot change to {plan.cluster}."
        )


def _renewed(plan: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts], newer: dict[str, Step]) -> list[Stage]:
    """Return the stages of an upgrade. Workers get their packages last: an older slurmd works with a newer slurmctld,
    but a newer slurmd does not work with an older slurmctld."""
    _same_name(plan, facts)
    head = hosts[plan.controller.allocation_id]
    first = [Task(head, newer[head.allocation_id])] if head.allocation_id in newer else []
    then = [Task(hosts[a], step) for a, step in newer.items() if a != head.allocation_id]
    *control, workers = halt.restart_stages(plan, hosts)
    return [
        *halt.dump_stages(head),
        *deploy.files_only(plan, hosts, facts, running=True),
        *deploy.services_only(plan, hosts, facts),
        *([tuple(first)] if first else []),
        *control,
        *([tuple(then)] if then else []),
        workers,
        *candidate.taken_up(plan, hosts, facts),
    ]


def reports(
    work: Work, states: Mapping[str, str], running: Mapping[str, versions.Versions] | None = None
) -> list[MemberReport]:
    """Return the reports of ready and drained members, with unchanged states. Other members are not reported: a failed
    member stays failed until an operation repairs it."""
    stay = [m for m in work.members() if m.state in ("ready", "drained") and m.id in states]
    versions_of = {m.id: running[str(m.allocation_id)].of_component(m.component_key) for m in stay} if running else {}
    return [
        MemberReport(member_id=m.id, state=m.state, runtime_state=states[m.id], runtime_version=versions_of.get(m.id))
        for m in stay
    ]


async def _upgraded(work: Work, tools: Tools) -> Outcome:
    newer: dict[str, Step] = {}

    async def bring(hosts: dict[str, Host], facts: dict[str, HostFacts]) -> None:
        newer.update(await packages.newer(work, tools, hosts, facts))

    def recipe(plan: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> list[Stage]:
        return _renewed(plan, hosts, facts, newer)

    return await _brought(work, tools, recipe, f"is on version {__version__} of the app", before=bring)


async def _stop(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    async with reach_hosts(work, tools, plan.allocations) as hosts, start_reporter(work) as reporter:
        await read_facts(hosts)
        runner = Runner(tools.journal, reporter, pause=lambda: should_pause(work))
        if not await runner.run(halt.stages(plan, hosts)):
            return paused(work)
        await reporter.sent()
        return Done(
            "The cluster is stopped; its jobs wait in the queue until it is started.",
            "unknown",
            members=reports(work, {m.id: "stopped" for m in work.members()}),
            adapter_detail={"steps": runner.timeline},
        )


async def _brought(work: Work, tools: Tools, recipe: Recipe, sentence: str, *, before: Before | None = None) -> Outcome:
    plan = await make_plan(work, tools)
    async with reach_hosts(work, tools, plan.allocations) as hosts, start_reporter(work) as reporter:
        seen = await prefetch.look(plan, hosts, tools, recipe)
        facts = seen.facts
        runner = Runner(tools.journal, reporter, pause=lambda: should_pause(work), prefetched=seen.prefetched)
        if await packages.provide(work, tools, hosts, facts, runner):
            facts = await read_facts(hosts)
        if before:
            await before(hosts, facts)
        head = hosts[plan.controller.allocation_id]
        try:
            finished = await runner.run(recipe(plan, hosts, facts))
        except StepFailed:
            with suppress(MachineError):
                await candidate.let_go(plan, head)
            raise
        if not finished:
            if work.cancel_requested:
                await candidate.let_go(plan, head)
            return paused(work)
        (there, running), _ = await together(prefetch.how_it_runs(plan, hosts, seen, runner), reporter.sent())
        states = {m.id: there.get(m.id, "running") for m in work.members()}
        bad = [name for name, state in states.items() if state in ("down", "invalid", "unknown")]
        return Done(
            f"The cluster {sentence}; {len(there) - len(bad)} of {len(there)} workers are there.",
            "degraded" if bad else "healthy",
            runtime_version=running[plan.controller.allocation_id].slurm("slurmctld"),
            members=reports(work, states, running),
            adapter_detail={
                "app_version": __version__,
                "versions": {hosts[a].name: one.printed for a, one in running.items()},
                "steps": runner.timeline,
            },
        )
