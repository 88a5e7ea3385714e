"""The cluster as a whole, after its deploy: stop, start, restart. Starting is deploying what is there already."""

from gpuaas_sdk import Again, Done, Failed, MemberReport, Work

from gpuaas_slurm.reconcile.deploy import deploy, make_plan
from gpuaas_slurm.reconcile.ground import Tools, facts_of, guarded, paused, pausing, reach, reporter
from gpuaas_slurm.runner import Runner
from gpuaas_slurm.steps import halt

Outcome = Done | Again | Failed


async def stop(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _stop(work, tools))


async def start(work: Work, tools: Tools) -> Outcome:
    return await deploy(work, tools)


async def restart(work: Work, tools: Tools) -> Outcome:
    """Every service once more, in the order of a deploy; jobs on the workers go on meanwhile."""
    done = await guarded(work, tools, lambda: _restart(work, tools))
    return await deploy(work, tools) if done is None else done


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
            members=[MemberReport(member_id=m.id, state="ready", runtime_state="stopped") for m in work.members()],
            adapter_detail={"steps": runner.timeline},
        )


async def _restart(work: Work, tools: Tools) -> Again | Failed | None:
    plan = await make_plan(work, tools)
    async with reach(work, tools, plan.allocations) as hosts, reporter(work) as said:
        await facts_of(hosts)
        runner = Runner(tools.journal, said, pause=lambda: pausing(work))
        whole = await runner.run(halt.restart_stages(plan, hosts))
        await said.sent()
        return None if whole else paused(work)
