"""Deploy: make the hosts of an instance into a Slurm cluster on which a job has run."""

from dataclasses import replace

from gpuaas_sdk import Again, Done, Failed, MemberReport, Work
from gpuaas_sdk.models import MemberView

from gpuaas_slurm import __version__, conditions, plan
from gpuaas_slurm.access import Proof, bundle
from gpuaas_slurm.conditions import PREFLIGHT, Question, same_uid
from gpuaas_slurm.errors import StepFailed
from gpuaas_slurm.facts import HostFacts, common_uid
from gpuaas_slurm.hosts import Host
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.reconcile import packages
from gpuaas_slurm.reconcile.breaker import tried
from gpuaas_slurm.reconcile.ground import Tools, declared_gpus, facts_of, guarded, paused, pausing, reach, reporter
from gpuaas_slurm.runner import Runner
from gpuaas_slurm.steps import deploy as recipe
from gpuaas_slurm.steps.proof import COLLECT


async def deploy(work: Work, tools: Tools) -> Done | Again | Failed:
    return await guarded(work, tools, lambda: tried(work, tools, lambda: _deploy(work, tools)))


async def _deploy(work: Work, tools: Tools) -> Done | Again | Failed:
    wanted = await make_plan(work, tools)
    async with reach(work, tools, wanted.allocations) as hosts, reporter(work) as said:
        facts = await facts_of(hosts)
        runner = Runner(tools.journal, said, pause=lambda: pausing(work))
        if await packages.provide(work, tools, hosts, facts, runner):
            facts = await facts_of(hosts)
        for allocation_id, host in hosts.items():
            known = replace(facts[allocation_id], declared_gpus=declared_gpus(work, allocation_id))
            preflight(host, known, (same_uid(common_uid(facts.values())),))
        runner.untouched = '[ ! -f "$OWN/before" ]'
        whole = await runner.run(recipe.stages(wanted, hosts, facts))
        await said.sent()
        if not whole:
            return paused(work)
        return await _done(work, wanted, hosts, facts, runner)


async def make_plan(work: Work, tools: Tools) -> Plan:
    instance = work.instance
    slug = await tools.project_slug(work)
    there = [member for member in instance.members if member.state != "removed" and takes_part(work, member)]
    return plan.make(instance.id, instance.name, instance.inputs, there, instance.project_id, slug)


def takes_part(work: Work, member: MemberView) -> bool:
    """A worker that was never accepted is nobody's concern but its own operation's; it stays closed to jobs."""
    concerned = member.id in (work.operation.member_id, work.operation.old_member_id)
    return work.operation.kind == "deploy" or concerned or member.runtime_state is not None


def preflight(host: Host, facts: HostFacts, more: tuple[Question, ...] = ()) -> None:
    """The first condition that does not hold ends the deploy, in its own words."""
    rows = conditions.ask(facts, host.claim.instance_id, (*PREFLIGHT, *more))
    for row in rows:
        if not row["ok"]:
            raise StepFailed(
                str(row["code"]), str(row["sentence"]), {"step": "preflight", "host": host.name, "checks": rows}
            )


async def _done(work: Work, wanted: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts], runner: Runner) -> Done:
    proof = Proof.read(await hosts[wanted.controller.allocation_id].script(COLLECT))
    sentence = (
        f"{wanted.cluster}: {len(wanted.workers)} worker{'s' if len(wanted.workers) > 1 else ''} ready, a job ran."
    )
    return Done(
        sentence,
        access=bundle(wanted, facts[wanted.controller.allocation_id], proof),
        runtime_version=proof.slurm_version,
        conditions=proof.conditions(len(wanted.workers)),
        adapter_detail={
            "app_version": __version__,
            "versions": proof.versions,
            "first_job_at_ms": proof.first_job_at_ms,
            "confinement": {a: f.confinement for a, f in facts.items()},
            "steps": runner.timeline,
        },
        members=[
            MemberReport(
                member_id=m.id,
                state="ready",
                runtime_state=proof.nodes.get(_node(wanted, m.id), "running"),
                runtime_version=proof.slurm_version,
            )
            for m in work.members()
        ],
    )


def _node(wanted: Plan, member_id: str) -> str:
    return next((w.node for w in wanted.workers if w.member_id == member_id), "")
