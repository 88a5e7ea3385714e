"""Deploy: turns the hosts of an instance into a Slurm cluster and proves it with a job."""

from dataclasses import replace
from typing import Any

from gpuaas_sdk import Again, Done, Failed, MemberReport, Work
from gpuaas_sdk.client.models import MemberView
from gpuaas_sdk.host_steps.breaker import with_circuit_breaker
from gpuaas_sdk.host_steps.context import reach_hosts, start_reporter
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.outcomes import paused, should_pause, translate_errors
from gpuaas_sdk.host_steps.runner import Runner

from gpuaas_slurm import __version__, conditions, plan
from gpuaas_slurm.access import Proof, bundle
from gpuaas_slurm.conditions import PREFLIGHT, Question, names_apart, same_uid
from gpuaas_slurm.facts import HostFacts, common_uid
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.reconcile import packages
from gpuaas_slurm.reconcile.context import Tools, declared_gpus, read_facts, untouched
from gpuaas_slurm.steps import deploy as recipe
from gpuaas_slurm.steps.proof import COLLECT


async def deploy(work: Work, tools: Tools) -> Done | Again | Failed:
    return await translate_errors(work, tools, lambda: with_circuit_breaker(work, tools, lambda: _deploy(work, tools)))


async def _deploy(work: Work, tools: Tools) -> Done | Again | Failed:
    wanted = await make_plan(work, tools)
    async with reach_hosts(work, tools, wanted.allocations) as hosts, start_reporter(work) as reporter:
        facts = await read_facts(hosts)
        runner = Runner(tools.journal, reporter, pause=lambda: should_pause(work))
        await check_hosts(work, hosts, facts, later=await _to_be_brought(work, tools, facts))
        if await packages.provide(work, tools, hosts, facts, runner):
            facts = await read_facts(hosts)
            await check_hosts(work, hosts, facts)
        runner.untouched = untouched(work, facts)
        tools.facts.update(facts)
        whole = await runner.run(recipe.stages(wanted, hosts, facts))
        await reporter.sent()
        if not whole:
            return paused(work)
        return await _done(work, wanted, hosts, facts, runner)


async def make_plan(work: Work, tools: Tools) -> Plan:
    instance = work.instance
    slug = await tools.project_slug(work)
    there = [member for member in instance.members if member.state != "removed" and takes_part(work, member)]
    return plan.make(instance.id, instance.name, instance.inputs, there, instance.project_id, slug)


def takes_part(work: Work, member: MemberView) -> bool:
    """Return True if the operation includes this member. A worker that was never accepted takes no jobs; only its own
    operation includes it."""
    concerned = member.id in (work.operation.member_id, work.operation.old_member_id)
    return work.operation.kind == "deploy" or concerned or member.runtime_state is not None


async def _to_be_brought(work: Work, tools: Tools, facts: dict[str, HostFacts]) -> frozenset[str]:
    lacking = any(one.missing for one in facts.values())
    return frozenset(["packages_present"]) if lacking and await tools.package_set(work) else frozenset()


async def check_hosts(
    work: Work, hosts: dict[str, Host], facts: dict[str, HostFacts], later: frozenset[str] = frozenset()
) -> None:
    """Run every check on every host before anything is changed, and store all results with the operation. Raises
    StepFailed if a check fails.

    `later` names checks that do not fail the deploy yet, because an installation step may still satisfy them.
    """
    known = {a: replace(facts[a], declared_gpus=declared_gpus(work, a)) for a in hosts}
    more = (same_uid(common_uid(facts.values())), names_apart([one.hostname for one in facts.values()]))
    matrix = [_asked(hosts[a], known[a], more) for a in hosts]
    message = "Checked the host" + ("s" if len(hosts) > 1 else "")
    await work.progress("checking", 0, 0, message, adapter_detail={"preflight": matrix})
    refuse(matrix, later)


def preflight(host: Host, facts: HostFacts, more: tuple[Question, ...] = ()) -> None:
    """Run the preflight checks of one host. Raises StepFailed if a check fails."""
    refuse([_asked(host, facts, more)])


def _asked(host: Host, facts: HostFacts, more: tuple[Question, ...]) -> dict[str, Any]:
    return {"host": host.name, "checks": conditions.ask(facts, host.claim.instance_id, (*PREFLIGHT, *more))}


def _reds(matrix: list[dict[str, Any]], later: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    return [row for host in matrix for row in host["checks"] if not row["ok"] and row["check"] not in later]


def refuse(matrix: list[dict[str, Any]], later: frozenset[str] = frozenset()) -> None:
    """Raise StepFailed if a check failed, with the sentences of all failed checks. The first failed check determines
    the error code."""
    reds = _reds(matrix, later)
    if reds:
        sentences = list(dict.fromkeys(str(row["sentence"]) for row in reds))
        first = next(host["host"] for host in matrix if any(row is reds[0] for row in host["checks"]))
        detail = {"step": "preflight", "host": first, "preflight": matrix}
        raise StepFailed(str(reds[0]["code"]), " ".join(sentences), detail)


async def _done(work: Work, wanted: Plan, hosts: dict[str, Host], facts: dict[str, HostFacts], runner: Runner) -> Done:
    proof = Proof.read(await hosts[wanted.controller.allocation_id].script(COLLECT))
    many = "worker is" if len(wanted.workers) == 1 else "workers are"
    sentence = f"{len(wanted.workers)} {many} ready, a job ran."
    return Done(
        sentence,
        access=bundle(wanted, facts, proof),
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
