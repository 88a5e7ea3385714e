"""The cluster as a whole, after its deploy: stop, start, restart, reconfigure, upgrade, rollback.

Its workers may be full of people's jobs by then, so nothing here waits for a job of ours: a worker is back when Slurm
shows it idle or working.
"""

from collections.abc import Callable

from gpuaas_sdk import Again, Done, Failed, Work

from gpuaas_slurm import __version__
from gpuaas_slurm.errors import StepFailed
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.hosts import Host
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.reconcile import packages
from gpuaas_slurm.reconcile.deploy import make_plan
from gpuaas_slurm.reconcile.ground import Tools, facts_of, guarded, paused, pausing, reach, reported, reporter
from gpuaas_slurm.runner import Runner
from gpuaas_slurm.steps import deploy, halt, nodes
from gpuaas_slurm.steps.base import Stage

Outcome = Done | Again | Failed
Recipe = Callable[[Plan, dict[str, Host], dict[str, HostFacts]], list[Stage]]


async def stop(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _stop(work, tools))


async def start(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _brought(work, tools, deploy.without_proofs, "runs again"))


async def restart(work: Work, tools: Tools) -> Outcome:
    """Every service once more; jobs on the workers go on meanwhile."""
    return await guarded(work, tools, lambda: _brought(work, tools, _again, "was restarted"))


async def reconfigure(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _brought(work, tools, _changed, "has its new settings"))


async def upgrade(work: Work, tools: Tools) -> Outcome:
    """The accounting database is kept aside first; then slurmdbd, slurmctld and the workers, in this order."""
    return await guarded(
        work, tools, lambda: _brought(work, tools, _renewed, f"is on version {__version__} of the app")
    )


def _again(plan: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> list[Stage]:
    head = hosts[plan.controller.allocation_id]
    apart = [host for host in hosts.values() if host is not head]
    return [*deploy.keyed_again(head, apart), *halt.restart_stages(plan, hosts)]


def _changed(plan: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> list[Stage]:
    head = hosts[plan.controller.allocation_id]
    known = facts[plan.controller.allocation_id].conf_cluster
    if known and known != plan.cluster:
        raise StepFailed(
            "cluster_name_fixed", f"The cluster is called {known}; its name cannot change to {plan.cluster}."
        )
    return [*deploy.without_proofs(plan, hosts, facts), *halt.reread_stages(plan, head)]


def _renewed(plan: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> list[Stage]:
    head = hosts[plan.controller.allocation_id]
    return [
        *halt.dump_stages(head),
        *deploy.files_only(plan, hosts, facts),
        *halt.restart_stages(plan, hosts),
    ]


async def _stop(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    async with reach(work, tools, plan.allocations) as hosts, reporter(work) as said:
        await facts_of(hosts)
        runner = Runner(tools.journal, said, pause=lambda: pausing(work))
        if not await runner.run(halt.stages(plan, hosts)):
            return paused(work)
        await said.sent()
        return Done(
            f"{plan.cluster} is stopped; its jobs wait in the queue until it is started.",
            "unknown",
            members=reported(work, {m.id: "stopped" for m in work.members()}),
            adapter_detail={"steps": runner.timeline},
        )


async def _brought(work: Work, tools: Tools, recipe: Recipe, sentence: str) -> Outcome:
    plan = await make_plan(work, tools)
    async with reach(work, tools, plan.allocations) as hosts, reporter(work) as said:
        facts = await facts_of(hosts)
        runner = Runner(tools.journal, said, pause=lambda: pausing(work))
        if await packages.provide(work, tools, hosts, facts, runner):
            facts = await facts_of(hosts)
        if not await runner.run(recipe(plan, hosts, facts)):
            return paused(work)
        await said.sent()
        seen = {
            seat.member_id: await nodes.standing(hosts[plan.controller.allocation_id], seat) for seat in plan.workers
        }
        states = {m.id: seen[m.id].state if m.id in seen else "running" for m in work.members()}
        bad = [name for name, state in states.items() if state in ("down", "invalid", "unknown")]
        return Done(
            f"{plan.cluster} {sentence}; {len(seen) - len(bad)} of {len(seen)} workers are there.",
            "degraded" if bad else "healthy",
            members=reported(work, states),
            adapter_detail={"app_version": __version__, "steps": runner.timeline},
        )
