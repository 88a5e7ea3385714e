"""Workers of a running cluster: add, drain, undrain, restart, remove, replace.

Operations on different workers run in parallel; none of them restarts the scheduler.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

from gpuaas_sdk import Again, Done, Failed, MemberReport, Work
from gpuaas_sdk.host_steps.breaker import with_circuit_breaker
from gpuaas_sdk.host_steps.context import reach_hosts, start_reporter
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Answer, Host, together
from gpuaas_sdk.host_steps.outcomes import paused, should_pause
from gpuaas_sdk.host_steps.reporter import Reporter
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Stage, Task, in_one_go

from gpuaas_slurm import conditions
from gpuaas_slurm.errors import BadPlan
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.reconcile import lost_worker, packages
from gpuaas_slurm.reconcile.context import Tools, declared_gpus, read_facts, untouched
from gpuaas_slurm.reconcile.decommission import checks, departed, proven
from gpuaas_slurm.reconcile.deploy import make_plan, preflight
from gpuaas_slurm.reconcile.drain import drain_worker, reported
from gpuaas_slurm.reconcile.rollback import with_rollback
from gpuaas_slurm.render.files import SLURM_CONF, joining_files
from gpuaas_slurm.render.slurm_conf import PROCTRACK
from gpuaas_slurm.slurm import hints, node_control
from gpuaas_slurm.steps import admission, daemons, nodes, prepare, teardown
from gpuaas_slurm.steps.deploy import KeyOf, Shared, prepared, rekeyed, shared

Outcome = Done | Again | Failed
WAIT_FOR_A_PERSON_S = 3.0
REKEYED = "again_join_key"


async def add(work: Work, tools: Tools) -> Outcome:
    return await with_rollback(work, tools, lambda: with_circuit_breaker(work, tools, lambda: _add(work, tools)))


async def drain(work: Work, tools: Tools) -> Outcome:
    return await with_rollback(work, tools, lambda: _drain(work, tools))


async def undrain(work: Work, tools: Tools) -> Outcome:
    return await with_rollback(work, tools, lambda: _undrain(work, tools))


async def restart(work: Work, tools: Tools) -> Outcome:
    return await with_rollback(work, tools, lambda: _restart(work, tools))


async def remove(work: Work, tools: Tools) -> Outcome:
    return await with_rollback(work, tools, lambda: _remove(work, tools))


async def replace(work: Work, tools: Tools) -> Outcome:
    return await with_rollback(work, tools, lambda: _replace(work, tools))


def slot_of(plan: Plan, member_id: str | None) -> WorkerSlot:
    found = [slot for slot in plan.workers if slot.member_id == member_id]
    if not found:
        raise BadPlan(f"Member {member_id} is not a worker of this cluster.")
    return found[0]


async def _add(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    slot = slot_of(plan, work.operation.member_id)
    async with (
        reach_hosts(work, tools, [plan.controller.allocation_id, slot.allocation_id]) as hosts,
        start_reporter(work) as reporter,
    ):
        head, host = hosts[plan.controller.allocation_id], hosts[slot.allocation_id]
        runner = Runner(tools.journal, reporter, pause=lambda: should_pause(work), surveyed=False)
        try:
            if not await _join(work, tools, plan, slot, head, host, runner):
                return await _taken_back(work, tools, reporter, head, host, slot)
            opened: Stage = (Task(host, admission.open_door(slot)),)
            status, _ = await together(node_control.read_node(head, slot), runner.run([opened]))
        except StepFailed as error:
            if error.code != "drained_by_person":
                raise
            return await _waits_for_a_person(work, reporter, head, slot, error.message)
        await reporter.sent()
        return Done(
            f"{slot.host} is a worker of {plan.cluster}, and a job ran on it.",
            members=[reported(slot, status, "ready")],
            adapter_detail={"node": slot.node, "steps": runner.timeline},
        )


async def _waits_for_a_person(work: Work, reporter: Reporter, head: Host, slot: WorkerSlot, why: str) -> Again:
    """Return Again while a person's drain keeps the worker from being accepted. The worker's reservation stays, so that
    the worker takes no jobs when the person undrains it."""
    status = await node_control.read_node(head, slot)
    words = f"Waiting for {status.by or 'the person'}, who drained {slot.host} in Slurm: {why}"
    await reporter.sent()
    if work.operation.progress.message != words:
        detail = {"node": slot.node, "reason": why, "drained_by": status.by}
        await work.progress("proving", 1, 2, words, adapter_detail=detail)
    return Again(WAIT_FOR_A_PERSON_S, words)


async def _taken_back(
    work: Work, tools: Tools, reporter: Reporter, head: Host, host: Host, slot: WorkerSlot
) -> Outcome:
    """Return the outcome of an add that was interrupted. If it was canceled, the host is cleaned first, so that the
    platform can count the member as removed."""
    if not work.cancel_requested:
        return paused(work)
    runner = _leaving(work, tools, reporter)
    if not await runner.run([*leaving(head, host, slot), *forgetting(head, slot)]):
        return Again(0, "the controller is stopping")
    await reporter.sent()
    return Failed(
        "canceled",
        f"The {work.operation.kind} was canceled, and nothing of the cluster is left on {slot.host}.",
        "Add the worker again when you want it.",
        retryable=True,
        adapter_detail={"evidence": {slot.allocation_id: proven(tools, host)}},
    )


async def _join(work: Work, tools: Tools, plan: Plan, slot: WorkerSlot, head: Host, host: Host, runner: Runner) -> bool:
    """Join the worker to the cluster. Returns True when it has joined, False if the operation must pause first."""
    hosts = {slot.allocation_id: host}
    seen, common = await together(read_facts(hosts), shared(head))
    uid = _uid(common, head, plan)
    if await packages.provide(work, tools, hosts, seen, runner):
        seen = await read_facts(hosts)
    facts: HostFacts = seen[slot.allocation_id]
    tools.facts[slot.allocation_id] = facts
    known = changed(facts, declared_gpus=declared_gpus(work, slot.allocation_id))
    more = (conditions.same_uid(uid), conditions.same_confinement(confinement(common.conf[SLURM_CONF])))
    preflight(host, known, more)
    runner.untouched = untouched(work, seen)
    try:
        return await runner.run(_joining(plan, slot, head, host, facts, common, uid))
    except StepFailed as error:
        answers = conditions.ask(known, host.claim.instance_id, (*conditions.PREFLIGHT, *more))
        error.detail.setdefault("checks", answers)
        if error.code == "job_proof_failed":
            last = [line for line in str(error.detail.get("output", "")).splitlines() if line.strip()][-1:]
            error.message = f"The proof job on {slot.host} failed: {' '.join(last) or 'no output'}"
        raise


def _joining(
    plan: Plan, slot: WorkerSlot, head: Host, host: Host, facts: HostFacts, common: Shared, uid: int
) -> list[Stage]:
    async def the_key() -> bytes:
        return common.key

    files = joining_files(plan, slot.allocation_id, facts, common.conf)
    options = next(file for file in files if file.path == admission.OPTIONS)
    return [
        in_one_go(
            (Task(host, prepare.preflight()),),
            (Task(host, prepare.files(files)),),
            (
                *prepared(plan, host, uid),
                Task(host, daemons.join_key(the_key, hashlib.sha256(common.key).hexdigest(), slot)),
                Task(host, admission.close_door(slot, options)),
            ),
            (Task(host, admission.join(slot)),),
        ),
        in_one_go(
            (Task(head, admission.admit(plan, slot)),),
            (Task(head, admission.accept(plan, slot, len(facts.gpus))),),
        ),
    ]


def _uid(common: Shared, head: Host, plan: Plan) -> int:
    if common.uid is None:
        raise StepFailed("step_failed", f"{head.name} does not have the user {plan.user}.", {"host": head.name})
    return common.uid


def confinement(slurm_conf: str) -> tuple[str, ...]:
    """Return the kinds of job confinement that this slurm.conf supports; empty if its ProctrackType is unknown."""
    wanted = next((line.partition("=")[2] for line in slurm_conf.splitlines() if line.startswith("ProctrackType=")), "")
    return tuple(kind for kind, (proctrack, _) in PROCTRACK.items() if proctrack == wanted)


async def _drain(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    slot = slot_of(plan, work.operation.member_id)
    async with reach_hosts(work, tools, [plan.controller.allocation_id]) as hosts, start_reporter(work) as reporter:
        status = await drain_worker(work, reporter, hosts[plan.controller.allocation_id], slot)
        if not isinstance(status, node_control.NodeStatus):
            return status
        await reporter.sent()
        whose = "" if status.ours else f" It was drained by {status.by or 'a person'} in Slurm: {status.reason}."
        return Done(f"Nothing runs on {slot.host} any more.{whose}", members=[reported(slot, status, "drained")])


async def _undrain(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    slot = slot_of(plan, work.operation.member_id)
    async with reach_hosts(work, tools, [plan.controller.allocation_id]) as hosts:
        head = hosts[plan.controller.allocation_id]
        status = await node_control.read_node(head, slot)
        if status.state in ("drained", "draining"):
            if not status.ours:
                return _drained_by_person(work, slot, status)
            await node_control.undrain(head, slot)
            status = await node_control.read_node(head, slot)
        if status.drained_by_person:
            return _drained_by_person(work, slot, status)
        if status.state not in ("idle", "busy", "reserved"):
            raise StepFailed("step_failed", f"{slot.host} is {status.state} in Slurm ({status.reason}).")
        return Done(f"{slot.host} takes jobs again.", members=[reported(slot, status, "ready")])


def _drained_by_person(work: Work, slot: WorkerSlot, status: node_control.NodeStatus) -> Failed:
    return Failed(
        "drained_by_person",
        f"{status.by or 'A person'} drained {slot.host} in Slurm: {status.reason}. The platform leaves that alone.",
        f"Ask them, or on the controller: {hints.undrain(slot.node)}; then run"
        f" `gpuaas operation retry {work.operation.id}`.",
        retryable=True,
        members=[reported(slot, status, "failed")],
    )


async def _restart(work: Work, tools: Tools) -> Outcome:
    """Restart the slurmd of one worker; its jobs keep running."""
    plan = await make_plan(work, tools)
    slot = slot_of(plan, work.operation.member_id)
    async with (
        reach_hosts(work, tools, [plan.controller.allocation_id, slot.allocation_id]) as hosts,
        start_reporter(work) as reporter,
    ):
        head, host = hosts[plan.controller.allocation_id], hosts[slot.allocation_id]
        await _could_come_back(work, slot, host)
        notes: list[str] = []
        runner = Runner(
            tools.journal, reporter, pause=lambda: should_pause(work), results={REKEYED: foreign_key(slot, notes)}
        )
        keyed: list[Stage] = [(rekeyed(KeyOf(head), host),)] if host is not head else []
        if not await runner.run([*keyed, (Task(host, nodes.restart(head is host, slot)),)]):
            return paused(work)
        await reporter.sent()
        status = await node_control.read_node(head, slot)
        now = f"stays drained by {status.by}: {status.reason}" if status.drained_by_person else "takes jobs"
        return Done(
            " ".join([f"{slot.host} was restarted and {now}.", *notes]),
            members=[reported(slot, status, "ready")],
            adapter_detail={"node": slot.node, "notes": notes, "steps": runner.timeline},
        )


async def _could_come_back(work: Work, slot: WorkerSlot, host: Host) -> None:
    seen = (await read_facts({slot.allocation_id: host}))[slot.allocation_id]
    known = changed(seen, declared_gpus=declared_gpus(work, slot.allocation_id))
    for row in conditions.ask(known, host.claim.instance_id, conditions.COMING_BACK):
        if not row["ok"]:
            raise StepFailed(str(row["code"]), str(row["sentence"]), {"step": "preflight", "host": host.name})


def foreign_key(slot: WorkerSlot, notes: list[str]) -> Callable[[Answer], dict[str, Any]]:
    """Return a function that reads the step's output, and adds a note if the worker had a wrong munge key. With a wrong
    key its jobs were rejected until now."""

    def read(answer: Answer) -> dict[str, Any]:
        if "foreign_key" in answer.lines:
            notes.append(f"{slot.host} had another munge key than the cluster; it has the right one again.")
        return {"foreign_key": "foreign_key" in answer.lines}

    return read


async def _remove(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    slot = slot_of(plan, work.operation.member_id)
    return await (
        lost_worker.take_out(work, tools, plan, slot)
        if lost_worker.is_gone(work)
        else _take_out(work, tools, plan, slot, [])
    )


async def _take_out(work: Work, tools: Tools, plan: Plan, slot: WorkerSlot, more: list[MemberReport]) -> Outcome:
    """Remove a worker: drain it, stop it, delete it from Slurm, clean the host, collect evidence. The order ensures
    that the worker cannot rejoin."""
    wanted = [plan.controller.allocation_id, slot.allocation_id]
    if slot.allocation_id == plan.controller.allocation_id:  # the platform does not ask for it
        raise BadPlan(f"{slot.host} also runs the controller, which cannot go with the worker.")
    async with reach_hosts(work, tools, wanted) as hosts, start_reporter(work) as reporter:
        head, host = hosts[plan.controller.allocation_id], hosts[slot.allocation_id]
        status = await drain_worker(work, reporter, head, slot)
        if not isinstance(status, node_control.NodeStatus):
            return status
        last_seen = status.state if status.known else None  # what an earlier life saw stays
        going = MemberReport(member_id=slot.member_id, state="removing", runtime_state=last_seen)
        reporter.say("removing", 1, len(teardown.ORDER), f"Removing {slot.host}", [going])
        # From here there is no way back: a cancel that comes now comes too late.
        runner = _leaving(work, tools, reporter)
        tools.forget([slot.allocation_id])
        if not await runner.run(leaving(head, host, slot)):
            return Again(0, "the controller is stopping")
        evidence = await departed(tools, host, head, slot)
        if not await runner.run(forgetting(head, slot)):
            return Again(0, "the controller is stopping")
        await reporter.sent()
        return Done(
            f"{slot.host} is no longer part of {plan.cluster}, and nothing of the cluster is left on it.",
            evidence={slot.allocation_id: evidence},
            members=[*more, MemberReport(member_id=slot.member_id, state="removed")],
            adapter_detail={"node": slot.node, "steps": runner.timeline},
        )


def _leaving(work: Work, tools: Tools, reporter: Reporter) -> Runner:
    results = {"prove_clean": checks}
    return Runner(tools.journal, reporter, pause=lambda: work.stopping, results=results, surveyed=False)


def leaving(head: Host, host: Host, slot: WorkerSlot) -> list[Stage]:
    stop, gone = Task(host, teardown.stop_services()), Task(head, nodes.delete(slot))
    return [(stop,), (gone,), *teardown.emptied([host])]


def forgetting(head: Host, slot: WorkerSlot) -> list[Stage]:
    """Return the stage that removes the worker's notes from the controller's host. It must run last, because every
    command about the worker writes a note again."""
    return [(Task(head, nodes.forget(slot)),)]


async def _replace(work: Work, tools: Tools) -> Outcome:
    """Join the new worker, then remove the old worker if it is still a member. If the old host is gone, the old worker
    is removed first. A repeated call skips finished steps."""
    if lost_worker.is_gone(work):
        return await _replace_lost(work, tools)
    come = await with_circuit_breaker(work, tools, lambda: _add(work, tools))
    if not isinstance(come, Done):
        return come
    plan, new = await make_plan(work, tools), list(come.members or [])
    if work.operation.old_member_id not in {slot.member_id for slot in plan.workers}:
        return come
    gone = await _take_out(work, tools, plan, slot_of(plan, work.operation.old_member_id), new)
    return changed(gone, members=[*new, *gone.members]) if isinstance(gone, Failed) else gone  # the new one works


async def _replace_lost(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    gone = await lost_worker.take_out(work, tools, plan, slot_of(plan, work.operation.old_member_id))
    if not isinstance(gone, Done):
        return gone
    come = await with_circuit_breaker(work, tools, lambda: _add(work, tools))
    if not isinstance(come, Done):
        return come
    detail = {"lost": gone.adapter_detail, "new": come.adapter_detail}
    return changed(come, evidence=gone.evidence, adapter_detail=detail)
