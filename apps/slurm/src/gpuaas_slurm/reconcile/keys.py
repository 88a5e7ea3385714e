"""Rotates the keys of the whole cluster. Jobs continue; while munged restarts everywhere, commands fail briefly."""

from collections.abc import Sequence

from gpuaas_sdk import Again, Done, Failed, Work
from gpuaas_sdk.host_steps.context import reach_hosts, start_reporter
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.outcomes import paused, should_pause, translate_errors
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Task

from gpuaas_slurm.reconcile.cluster import reports
from gpuaas_slurm.reconcile.context import Tools, read_facts
from gpuaas_slurm.reconcile.deploy import make_plan
from gpuaas_slurm.slurm import node_control
from gpuaas_slurm.steps import keys

Outcome = Done | Again | Failed


async def rotate(work: Work, tools: Tools) -> Outcome:
    return await translate_errors(work, tools, lambda: _rotate(work, tools))


async def _rotate(work: Work, tools: Tools) -> Outcome:
    """Rotate the munge key. Every host is reached and checked before the key of the first host changes."""
    plan = await make_plan(work, tools)
    async with reach_hosts(work, tools, plan.allocations) as hosts, start_reporter(work) as reporter:
        await read_facts(hosts)
        head = hosts[plan.controller.allocation_id]
        runner = Runner(tools.journal, reporter, pause=lambda: should_pause(work))
        if not await renew(runner, head, [host for host in hosts.values() if host is not head]):
            return paused(work)
        await reporter.sent()
        seen = await node_control.read_states(head, plan.workers)
        return Done(
            f"The cluster has a new munge key on {len(hosts)} host{'s' if len(hosts) != 1 else ''}.",
            members=reports(work, {m.id: seen.get(m.id, "running") for m in work.members()}),
            adapter_detail={"steps": runner.timeline},
        )


async def renew(runner: Runner, head: Host, others: Sequence[Host]) -> bool:
    """Run the key rotation. Returns True when it is done, False if the operation must pause. After a crash the new key
    is read from the controller's host."""
    if not await runner.run([(Task(head, keys.make()),)]):
        return False
    return await runner.run(keys.stages(head, others, await keys.made(head)))
