"""Emptying a worker, for drain, remove and replace: nothing new starts there and what runs comes to its end.

People are told whose jobs it waits for and when the last is over. What happens at a deadline was asked for.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from gpuaas_sdk import Again, Failed, MemberReport, Work
from gpuaas_sdk.client.errors import ApiError
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.reporter import Reporter

from gpuaas_slurm.plan import WorkerSlot
from gpuaas_slurm.slurm import node_control
from gpuaas_slurm.slurm.node_control import NodeStatus

LOOK_AGAIN_S = 1.0
ENDING_S = 120.0  # jobs that went back to the queue may take this long to leave the node
# Which state a member is in while its worker is emptied by this kind of operation; of a replaced one nothing is said.
MEMBER_STATE = {"drain_member": "draining", "remove_member": "removing"}


async def emptied(work: Work, said: Reporter, head: Host, slot: WorkerSlot) -> NodeStatus | Again | Failed:
    """Drained, or how to go on. A drain of somebody else is as good as ours and is left as it is."""
    why = str(work.operation.params.get("reason") or "")
    standing = await (
        node_control.read_node(head, slot) if work.cancel_requested else node_control.drain(head, slot, why)
    )
    if work.cancel_requested and not standing.is_drained:
        return _called_off(work, slot)
    if standing.known and await _left_behind(work, standing):
        standing = await node_control.drain(head, slot, why, again=True)
    if not standing.known or standing.is_drained:
        return standing
    stays: dict[str, str] = {}
    late = overdue(work)
    if late is not None and work.operation.params.get("at_deadline") == "requeue" and late < ENDING_S:
        _, stays = await node_control.requeue(head, (job for job in standing.jobs if not job.ending))
    elif late is not None:
        return _too_late(work, slot, standing)
    if stays:
        return _cannot_go_back(work, slot, standing, stays)
    await _tell(work, said, slot, standing)
    return Again(LOOK_AGAIN_S, f"waiting for {standing.waits_for}")


async def _left_behind(work: Work, standing: NodeStatus) -> bool:
    """A drain of an operation of ours that did not come to its good end: this one takes it over."""
    if not standing.ours or standing.drained_for(work.operation.id):
        return False
    former = standing.reason.removeprefix(node_control.OURS).partition(":")[0]
    try:
        return not former or (await work.client.get_operation(work.project_id, former)).status != "succeeded"
    except ApiError:
        return True


def overdue(work: Work) -> float | None:
    """Seconds since its time was up; nothing while it is not."""
    limit, began = work.operation.params.get("deadline_s"), work.operation.started_at
    if not isinstance(limit, int | float) or began is None:
        return None
    past = (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds() - limit
    return past if past > 0 else None


async def _tell(work: Work, said: Reporter, slot: WorkerSlot, standing: NodeStatus) -> None:
    """Only what is new: the same forecast every second would be an event every second."""
    detail = forecast(work, slot, standing)
    if detail == {name: (work.operation.adapter_detail or {}).get(name) for name in detail}:
        return
    await said.sent()
    state = MEMBER_STATE.get(work.operation.kind)
    members = [reported(slot, standing, state, detail)] if state else []
    words = f"Waiting for {standing.waits_for}"
    await work.progress("draining", 1, 2, words, adapter_detail=detail, members=members)


def forecast(work: Work, slot: WorkerSlot, standing: NodeStatus) -> dict[str, Any]:
    params, began = work.operation.params, work.operation.started_at
    limit = params.get("deadline_s")
    deadline = None
    if isinstance(limit, int | float) and began is not None:
        ends = datetime.fromisoformat(began) + timedelta(seconds=limit)
        deadline = ends.isoformat(timespec="seconds").replace("+00:00", "Z")
    choice = {"deadline_at": deadline, "at_deadline": params.get("at_deadline", "give_back") if deadline else None}
    return {**_whose(slot, standing), "forecast": standing.forecast | choice}


def _whose(slot: WorkerSlot, standing: NodeStatus) -> dict[str, Any]:
    return {"node": slot.node, "reason": standing.reason, "drained_by": standing.by if standing.reason else ""}


def reported(slot: WorkerSlot, standing: NodeStatus, state: str, detail: dict[str, Any] | None = None) -> MemberReport:
    """What was told of an earlier drain does not stay beside a worker that takes jobs."""
    shown = detail or _whose(slot, standing)
    return MemberReport(member_id=slot.member_id, state=state, runtime_state=standing.state, adapter_detail=shown)


def _called_off(work: Work, slot: WorkerSlot) -> Failed:
    return Failed(
        "canceled",
        f"The {work.operation.kind} was canceled before {slot.host} was empty; it takes jobs again.",
        f"Run `gpuaas operation retry {work.operation.id}` to wait for it again.",
        retryable=True,
    )


def _too_late(work: Work, slot: WorkerSlot, standing: NodeStatus) -> Failed:
    return Failed(
        "drain_deadline",
        f"{slot.host} still waits for {standing.waits_for} after its time was up; it takes jobs again.",
        f"Wait for the job or cancel it, then run `gpuaas operation retry {work.operation.id}`; or ask again with"
        " at_deadline=requeue.",
        retryable=True,
        adapter_detail=forecast(work, slot, standing),
    )


def _cannot_go_back(work: Work, slot: WorkerSlot, standing: NodeStatus, stays: dict[str, str]) -> Failed:
    """Nothing is ended that cannot start again."""
    job, why = next(iter(stays.items()))
    user = next((one.user for one in standing.jobs if one.id == job), "somebody")
    more = f" and {len(stays) - 1} more" if len(stays) > 1 else ""
    return Failed(
        "jobs_stay",
        f"Job {job} of {user}{more} on {slot.host} cannot go back to the queue ({why}); the worker takes jobs again.",
        f"Ask its owner to end it, or wait, then run `gpuaas operation retry {work.operation.id}`.",
        retryable=True,
        adapter_detail={**forecast(work, slot, standing), "stays": stays},
    )
