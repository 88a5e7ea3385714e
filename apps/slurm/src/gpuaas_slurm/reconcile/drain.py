"""Drains a worker, for drain, remove and replace: no new job starts on the worker, and running jobs end.

The progress shows whose jobs the drain waits for and when the last one ends. The operation's `at_deadline` decides what
happens at the deadline.
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
# Which state a member is in while its worker is emptied by this kind of operation; a replaced member keeps its state.
MEMBER_STATE = {"drain_member": "draining", "remove_member": "removing"}


async def drain_worker(work: Work, reporter: Reporter, head: Host, slot: WorkerSlot) -> NodeStatus | Again | Failed:
    """Drain the worker. Returns the status of the node once it is drained, otherwise the outcome that the reconcile
    function must return. A drain by a person is accepted and left as it is."""
    why = str(work.operation.params.get("reason") or "")
    status = await (
        node_control.read_node(head, slot) if work.cancel_requested else node_control.drain(head, slot, why)
    )
    if work.cancel_requested and not status.is_drained:
        return _called_off(work, slot)
    if status.known and await _left_behind(work, status):
        status = await node_control.drain(head, slot, why, again=True)
    if not status.known or status.is_drained:
        return status
    stays: dict[str, str] = {}
    late = overdue(work)
    if late is not None and work.operation.params.get("at_deadline") == "requeue" and late < ENDING_S:
        _, stays = await node_control.requeue(head, (job for job in status.jobs if not job.ending))
    elif late is not None:
        return _too_late(work, slot, status)
    if stays:
        return _cannot_go_back(work, slot, status, stays)
    await _report_forecast(work, reporter, slot, status)
    return Again(LOOK_AGAIN_S, f"waiting for {status.waits_for}")


async def _left_behind(work: Work, status: NodeStatus) -> bool:
    """Return True if an earlier operation of the platform set the drain and did not succeed. This operation then takes
    over the drain."""
    if not status.ours or status.drained_for(work.operation.id):
        return False
    former = status.reason.removeprefix(node_control.OURS).partition(":")[0]
    try:
        return not former or (await work.client.get_operation(work.project_id, former)).status != "succeeded"
    except ApiError:
        return True


def overdue(work: Work) -> float | None:
    """Return the seconds since the operation's deadline; None if there is no deadline or it has not passed."""
    limit, began = work.operation.params.get("deadline_s"), work.operation.started_at
    if not isinstance(limit, int | float) or began is None:
        return None
    past = (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds() - limit
    return past if past > 0 else None


async def _report_forecast(work: Work, reporter: Reporter, slot: WorkerSlot, status: NodeStatus) -> None:
    """Report which jobs the drain waits for, but only if that has changed, because every report creates an event."""
    detail = forecast(work, slot, status)
    if detail == {name: (work.operation.adapter_detail or {}).get(name) for name in detail}:
        return
    await reporter.sent()
    state = MEMBER_STATE.get(work.operation.kind)
    members = [reported(slot, status, state, detail)] if state else []
    words = f"Waiting for {status.waits_for}"
    await work.progress("draining", 1, 2, words, adapter_detail=detail, members=members)


def forecast(work: Work, slot: WorkerSlot, status: NodeStatus) -> dict[str, Any]:
    params, began = work.operation.params, work.operation.started_at
    limit = params.get("deadline_s")
    deadline = None
    if isinstance(limit, int | float) and began is not None:
        ends = datetime.fromisoformat(began) + timedelta(seconds=limit)
        deadline = ends.isoformat(timespec="seconds").replace("+00:00", "Z")
    choice = {"deadline_at": deadline, "at_deadline": params.get("at_deadline", "give_back") if deadline else None}
    return {**_whose(slot, status), "forecast": status.forecast | choice}


def _whose(slot: WorkerSlot, status: NodeStatus) -> dict[str, Any]:
    return {"node": slot.node, "reason": status.reason, "drained_by": status.by if status.reason else ""}


def reported(slot: WorkerSlot, status: NodeStatus, state: str, detail: dict[str, Any] | None = None) -> MemberReport:
    """Return the member report of a drain. Its detail replaces that of an earlier drain, so that a worker which takes
    jobs again shows no old drain."""
    shown = detail or _whose(slot, status)
    return MemberReport(member_id=slot.member_id, state=state, runtime_state=status.state, adapter_detail=shown)


def _called_off(work: Work, slot: WorkerSlot) -> Failed:
    return Failed(
        "canceled",
        f"The {work.operation.kind} was canceled before {slot.host} was empty; it takes jobs again.",
        f"Run `gpuaas operation retry {work.operation.id}` to wait for it again.",
        retryable=True,
    )


def _too_late(work: Work, slot: WorkerSlot, status: NodeStatus) -> Failed:
    return Failed(
        "drain_deadline",
        f"{slot.host} still waits for {status.waits_for} after its time was up; it takes jobs again.",
        f"Wait for the job or cancel it, then run `gpuaas operation retry {work.operation.id}`; or ask again with"
        " at_deadline=requeue.",
        retryable=True,
        adapter_detail=forecast(work, slot, status),
    )


def _cannot_go_back(work: Work, slot: WorkerSlot, status: NodeStatus, stays: dict[str, str]) -> Failed:
    """Return the failure for jobs that Slurm cannot requeue. The jobs keep running, and the worker takes jobs again."""
    job, why = next(iter(stays.items()))
    user = next((one.user for one in status.jobs if one.id == job), "an unknown user")
    more = f" and {len(stays) - 1} more" if len(stays) > 1 else ""
    return Failed(
        "jobs_stay",
        f"Job {job} of {user}{more} on {slot.host} cannot go back to the queue ({why}); the worker takes jobs again.",
        f"Ask its owner to end it, or wait, then run `gpuaas operation retry {work.operation.id}`.",
        retryable=True,
        adapter_detail={**forecast(work, slot, status), "stays": stays},
    )
