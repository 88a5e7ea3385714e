"""Removes a worker whose host is gone for good (`host_is_gone`) without reaching the host.

First Slurm sets the node down and its jobs return to the queue. Then every other host gets a new munge key, so that the
lost host is rejected if it comes back. Only then is the node deleted: while the old key is valid, a slurmd that starts
again would rejoin. The host itself is neither reached nor cleaned, and the evidence states this.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from gpuaas_sdk import Again, Done, Failed, MemberReport, Work
from gpuaas_sdk.host_steps.context import reach_hosts, start_reporter
from gpuaas_sdk.host_steps.errors import Unreached
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.outcomes import paused
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Task

from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.reconcile import keys
from gpuaas_slurm.reconcile.context import Tools, read_facts
from gpuaas_slurm.steps import lost_worker, nodes

Outcome = Done | Again | Failed
KEYED = ("ready", "draining", "drained", "failed")  # others are on their way in, and get the newest key when they come


def is_gone(work: Work) -> bool:
    return bool(work.operation.params.get("host_is_gone"))


def removes(work: Work, slot: WorkerSlot) -> bool:
    """Return True if the operation removes this member. In a replacement return False: the platform counts the old
    member as removed once the new one is ready."""
    return work.operation.member_id == slot.member_id


async def take_out(work: Work, tools: Tools, plan: Plan, slot: WorkerSlot) -> Outcome:
    """Remove the lost worker. A removal that has started cannot be canceled: a host that is only half fenced could
    rejoin."""
    async with reach_others(work, tools, plan, slot) as (head, others, silent), start_reporter(work) as reporter:
        await read_facts({host.allocation_id: host for host in (head, *others)})
        runner = Runner(tools.journal, reporter, pause=lambda: work.stopping)
        if not await runner.run([(Task(head, lost_worker.down(slot)),)]):
            return paused(work)
        if not await keys.renew(runner, head, others):
            return paused(work)
        if not await runner.run([(Task(head, nodes.delete(slot)),)]):
            return paused(work)
        await reporter.sent()
        left = f" {', '.join(silent)} did not answer and needs a restart to get the new key." if silent else ""
        return Done(
            f"{slot.host} is out of {plan.cluster} for good; the host itself was not cleaned.{left}",
            evidence={slot.allocation_id: evidence(slot, [head, *others], silent)},
            members=[MemberReport(member_id=slot.member_id, state="removed")] if removes(work, slot) else [],
            adapter_detail={"node": slot.node, "without_new_key": silent, "steps": runner.timeline},
        )


@asynccontextmanager
async def reach_others(
    work: Work, tools: Tools, plan: Plan, slot: WorkerSlot
) -> AsyncIterator[tuple[Host, list[Host], list[str]]]:
    """Connect to the remaining hosts. Yields the controller's host, the hosts of workers that respond, and the names of
    hosts that do not respond, since several hosts may fail at once."""
    state = {member.id: member.state for member in work.members()}
    where = plan.controller.allocation_id
    async with AsyncExitStack() as stack:
        head = (await stack.enter_async_context(reach_hosts(work, tools, [where])))[where]
        others: list[Host] = []
        silent: list[str] = []
        for one in plan.workers:
            if one.allocation_id in (where, slot.allocation_id) or state[one.member_id] not in KEYED:
                continue
            try:
                found = await stack.enter_async_context(reach_hosts(work, tools, [one.allocation_id]))
                others.append(found[one.allocation_id])
            except Unreached:
                if tools.journal.wait(work.operation.id, one.allocation_id)[0] < tools.patience_s:
                    raise
                silent.append(one.host)
        yield head, others, silent


def evidence(slot: WorkerSlot, keyed: list[Host], silent: list[str]) -> dict[str, Any]:
    """Return the evidence: what was proven about the cluster, and what is unknown about the lost host."""
    rekeyed = ", ".join(host.name for host in keyed)
    rows = [
        ("node", True, f"{slot.node} is deleted from Slurm; its jobs were put back into the queue"),
        ("key", True, f"the munge key it knows is worth nothing any more: {rekeyed} have a new one"),
        (
            "other_workers",
            not silent,
            f"without the new key: {', '.join(silent)}" if silent else "all have the new key",
        ),
        ("host", False, "not reached, not cleaned: it stays out of use until it is wiped"),
    ]
    return {
        "host": slot.host,
        "cleaned": False,
        "fenced": True,
        "checks": [{"check": name, "ok": ok, "detail": detail} for name, ok, detail in rows],
        "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
