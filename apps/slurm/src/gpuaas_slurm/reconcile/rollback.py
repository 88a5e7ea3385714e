"""Rolls back an operation on a worker: when it fails or is canceled, its changes in Slurm are undone.

A drain by the platform is undone; a worker that is not accepted yet is deleted from Slurm with its reservation. A
person's drain stays. What cannot be undone now, because the controller's host cannot be reached, is named in the
failure; a retry undoes it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import structlog
from gpuaas_sdk import Failed, Work
from gpuaas_sdk.host_steps.context import reach_hosts
from gpuaas_sdk.host_steps.errors import Unreached
from gpuaas_sdk.host_steps.evidence import bounded
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.outcomes import translate_errors

from gpuaas_slurm.plan import WorkerSlot
from gpuaas_slurm.reconcile.context import Tools
from gpuaas_slurm.reconcile.deploy import make_plan
from gpuaas_slurm.slurm import node_control
from gpuaas_slurm.steps import admission, nodes

log = structlog.get_logger()
COMING = ("add_member", "replace_member")
GONE_HALF = "stop_services"  # the step after which a worker that leaves cannot be given back


async def with_rollback(work: Work, tools: Tools, body: Callable[[], Awaitable[Any]]) -> Any:
    """Run the body and return its outcome. Before a failure is reported, the operation's changes in Slurm are
    undone."""
    outcome = await translate_errors(work, tools, body)
    if not isinstance(outcome, Failed):
        return outcome
    left = await translate_errors(work, tools, lambda: _roll_back(work, tools))
    if isinstance(left, dict):
        return replace(outcome, adapter_detail=bounded({**(outcome.adapter_detail or {}), **left})) if left else outcome
    log.warning("the operation leaves something in Slurm", why=left.why)
    return replace(outcome, why=f"{outcome.why} What it holds in Slurm could not be released: {left.why}")


async def _roll_back(work: Work, tools: Tools) -> dict[str, Any]:
    """Undo the operation's changes in Slurm. Returns the diagnosis of a worker that was removed from Slurm again; empty
    if none was removed."""
    found: dict[str, Any] = {}
    plan = await make_plan(work, tools)
    slots = {slot.member_id: slot for slot in plan.workers}
    operation = work.operation
    async with reach_hosts(work, tools, [plan.controller.allocation_id]) as hosts:
        head = hosts[plan.controller.allocation_id]
        if operation.kind in COMING and (new := slots.get(operation.member_id or "")):
            found = await _remove_unaccepted(work, tools, head, new)
        if old := slots.get((operation.old_member_id if operation.kind in COMING else operation.member_id) or ""):
            await _undo_drain(work, tools, head, old)
    return found


async def _remove_unaccepted(work: Work, tools: Tools, head: Host, slot: WorkerSlot) -> dict[str, Any]:
    if not await admission.outside(head, slot):
        return {}
    found: dict[str, Any] = {}
    try:
        async with reach_hosts(work, tools, [slot.allocation_id]) as hosts:
            found = {"worker": {"host": slot.host, **await admission.stop(hosts[slot.allocation_id])}}
    except Unreached as error:
        log.warning("its slurmd could not be stopped; it is closed to jobs", host=slot.host, error=str(error))
    await admission.take_off(head, slot)
    return found


async def _undo_drain(work: Work, tools: Tools, head: Host, slot: WorkerSlot) -> None:
    """Undrain the worker if this operation drained it. If its services were already stopped, the node is deleted from
    Slurm instead, because it must not get jobs."""
    standing = await node_control.read_node(head, slot)
    if not standing.drained_for(work.operation.id):
        return
    rows = tools.journal.rows(work.operation.id)
    if standing.is_drained and any(r["step"] == GONE_HALF and r["allocation_id"] == slot.allocation_id for r in rows):
        step = nodes.delete(slot)
        await head.script(step.script(), step=step.name, unit=step.unit, within=step.within)
        return
    await node_control.undrain(head, slot, work.operation.id)
