"""Workers of a running cluster: add, drain, undrain, restart, remove, replace. Operations on different workers go on
side by side; none of them restarts the scheduler."""

from collections.abc import Mapping
from dataclasses import replace as changed
from datetime import UTC, datetime
from typing import Any

from gpuaas_sdk import Again, Done, Failed, MemberReport, Work

from gpuaas_slurm import conditions
from gpuaas_slurm.errors import StepFailed, explain
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.hosts import Answer, Host
from gpuaas_slurm.plan import BadPlan, Plan, Seat
from gpuaas_slurm.reconcile import packages
from gpuaas_slurm.reconcile.decommission import checks, departed
from gpuaas_slurm.reconcile.deploy import make_plan, preflight
from gpuaas_slurm.reconcile.ground import (
    Tools,
    declared_gpus,
    facts_of,
    guarded,
    paused,
    pausing,
    reach,
    reporter,
    take_charge,
)
from gpuaas_slurm.render.files import SLURM_CONF, joining_files
from gpuaas_slurm.render.slurm_conf import PROCTRACK
from gpuaas_slurm.reporter import Reporter
from gpuaas_slurm.runner import Runner
from gpuaas_slurm.steps import daemons, nodes, prepare, teardown
from gpuaas_slurm.steps.base import Stage, Task
from gpuaas_slurm.steps.deploy import KEY, prepared, shared, started

Outcome = Done | Again | Failed
LOOK_AGAIN_S = 1.0
UID = "id -u {user}"


async def add(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _add(work, tools))


async def drain(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _drain(work, tools))


async def undrain(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _undrain(work, tools))


async def restart(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _restart(work, tools))


async def remove(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _remove(work, tools))


async def replace(work: Work, tools: Tools) -> Outcome:
    return await guarded(work, tools, lambda: _replace(work, tools))


def seat_of(plan: Plan, member_id: str | None) -> Seat:
    found = [seat for seat in plan.workers if seat.member_id == member_id]
    if not found:
        raise BadPlan(f"Member {member_id} is not a worker of this cluster.")
    return found[0]


async def _add(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    seat = seat_of(plan, work.operation.member_id)
    async with reach(work, tools, [plan.controller.allocation_id, seat.allocation_id]) as hosts, reporter(work) as said:
        head, host = hosts[plan.controller.allocation_id], hosts[seat.allocation_id]
        runner = Runner(tools.journal, said, pause=lambda: pausing(work))
        if not await _join(work, tools, plan, seat, head, host, runner):
            return paused(work)
        await said.sent()
        report = await _member(head, seat, "ready")
        return Done(
            f"{seat.host} is a worker of {plan.cluster}, and a job ran on it.",
            members=[report],
            adapter_detail={"node": seat.node, "steps": runner.timeline},
        )


async def _join(work: Work, tools: Tools, plan: Plan, seat: Seat, head: Host, host: Host, runner: Runner) -> bool:
    """True when the worker is part of the cluster; False when asked to pause."""
    facts = (await facts_of({seat.allocation_id: host}))[seat.allocation_id]
    if await packages.provide(work, tools, {seat.allocation_id: host}, {seat.allocation_id: facts}, runner):
        facts = (await facts_of({seat.allocation_id: host}))[seat.allocation_id]
    files = await shared(head)
    conf = {path: data.decode() for path, data in files.items() if path != KEY}
    uid = await _uid(head, plan)
    known = changed(facts, declared_gpus=declared_gpus(work, seat.allocation_id))
    preflight(host, known, (conditions.same_uid(uid), conditions.same_confinement(confinement(conf[SLURM_CONF]))))
    runner.untouched = '[ ! -f "$OWN/before" ]'
    return await runner.run(_joining(plan, seat, head, host, facts, conf, files[KEY], uid))


def _joining(
    plan: Plan, seat: Seat, head: Host, host: Host, facts: HostFacts, conf: Mapping[str, str], key: bytes, uid: int
) -> list[Stage]:
    async def the_key() -> bytes:
        return key

    return [
        (Task(host, prepare.preflight()),),
        (Task(host, prepare.files(joining_files(plan, seat.allocation_id, facts, conf))),),
        (*prepared(plan, host, uid), Task(host, daemons.join_key(the_key))),
        (started(plan, host, seat),),
        (Task(head, nodes.accept(plan, seat)),),
    ]


async def _uid(head: Host, plan: Plan) -> int:
    answer = await head.script(f'say uid "$({UID.format(user=plan.user)})"\nexit 0\n')
    if not answer.one("uid").isdigit():
        raise StepFailed("step_failed", f"{head.name} does not have the user {plan.user}.", {"host": head.name})
    return int(answer.one("uid"))


def confinement(slurm_conf: str) -> tuple[str, ...]:
    """The kinds of hosts the running configuration is right for."""
    wanted = next((line.partition("=")[2] for line in slurm_conf.splitlines() if line.startswith("ProctrackType=")), "")
    return tuple(kind for kind, (proctrack, _) in PROCTRACK.items() if proctrack == wanted)


async def _drain(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    seat = seat_of(plan, work.operation.member_id)
    async with reach(work, tools, [plan.controller.allocation_id]) as hosts, reporter(work) as said:
        head = hosts[plan.controller.allocation_id]
        standing = await _emptied(work, tools, said, head, seat)
        if not isinstance(standing, nodes.Standing):
            return standing
        await said.sent()
        whose = "" if standing.ours else f" It was drained by {standing.by or 'somebody'} in Slurm: {standing.reason}."
        return Done(f"Nothing runs on {seat.host} any more.{whose}", members=[_reported(seat, standing, "drained")])


async def _emptied(work: Work, tools: Tools, said: Reporter, head: Host, seat: Seat) -> nodes.Standing | Again | Failed:
    """Drained, or how to go on. A drain of ours never outlives a drain operation that was called off or ran out of
    time; a drain of somebody else is as good as ours and is left as it is."""
    standing = await nodes.standing(head, seat)
    if work.cancel_requested and not standing.is_drained:
        return await _called_off(work, head, seat, standing)
    if standing.known and standing.state not in ("drained", "draining"):
        _ok(await nodes.drain(head, seat, str(work.operation.params.get("reason") or "")), head, "drain")
        standing = await nodes.standing(head, seat)
    if not standing.known or standing.is_drained:
        return standing
    if _late(work):
        if standing.ours:
            await nodes.undrain(head, seat)
        return Failed(
            "drain_deadline",
            f"{seat.host} still waits for {standing.waits_for} after its time was up; it takes jobs again.",
            f"Wait for the job or cancel it, then run `gpuaas operation retry {work.operation.id}`.",
            retryable=True,
            members=[_reported(seat, standing, "failed")],
        )
    said.say("draining", 1, 2, f"Waiting for {standing.waits_for}")
    await said.sent()
    return Again(LOOK_AGAIN_S, f"waiting for {standing.waits_for}")


async def _called_off(work: Work, head: Host, seat: Seat, standing: nodes.Standing) -> Again | Failed:
    if standing.ours:
        await nodes.undrain(head, seat)
    return paused(work)


def _late(work: Work) -> bool:
    limit = work.operation.params.get("deadline_s")
    if not isinstance(limit, int | float) or work.operation.started_at is None:
        return False
    began = datetime.fromisoformat(work.operation.started_at)
    return (datetime.now(UTC) - began).total_seconds() > limit


async def _undrain(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    seat = seat_of(plan, work.operation.member_id)
    async with reach(work, tools, [plan.controller.allocation_id]) as hosts:
        head = hosts[plan.controller.allocation_id]
        standing = await nodes.standing(head, seat)
        if standing.state in ("drained", "draining"):
            if not standing.ours:
                return _somebody_elses(work, seat, standing)
            _ok(await nodes.undrain(head, seat), head, "undrain")
            standing = await nodes.standing(head, seat)
        if standing.state not in ("idle", "busy"):
            raise StepFailed("step_failed", f"{seat.host} is {standing.state} in Slurm ({standing.reason}).")
        return Done(f"{seat.host} takes jobs again.", members=[_reported(seat, standing, "ready")])


def _somebody_elses(work: Work, seat: Seat, standing: nodes.Standing) -> Failed:
    return Failed(
        "drained_by_somebody",
        f"{standing.by or 'Somebody'} drained {seat.host} in Slurm: {standing.reason}. The platform leaves that alone.",
        f"Ask them, or on the controller: scontrol update nodename={seat.node} state=undrain; then run"
        f" `gpuaas operation retry {work.operation.id}`.",
        retryable=True,
        members=[_reported(seat, standing, "failed")],
    )


async def _restart(work: Work, tools: Tools) -> Outcome:
    """slurmd lets jobs live while it restarts."""
    plan = await make_plan(work, tools)
    seat = seat_of(plan, work.operation.member_id)
    async with reach(work, tools, [plan.controller.allocation_id, seat.allocation_id]) as hosts, reporter(work) as said:
        head, host = hosts[plan.controller.allocation_id], hosts[seat.allocation_id]
        runner = Runner(tools.journal, said, pause=lambda: pausing(work))
        again = daemons.restarted(started(plan, host, seat).step)
        if not await runner.run([(Task(host, again),)]):
            return paused(work)
        await said.sent()
        return Done(f"{seat.host} was restarted and takes jobs.", members=[await _member(head, seat, "ready")])


async def _remove(work: Work, tools: Tools) -> Outcome:
    plan = await make_plan(work, tools)
    return await _take_out(work, tools, plan, seat_of(plan, work.operation.member_id), [])


async def _take_out(work: Work, tools: Tools, plan: Plan, seat: Seat, more: list[MemberReport]) -> Outcome:
    """Empty it, stop it, delete it from Slurm, clean the host, prove it: in this order, so that it cannot come back."""
    wanted = [plan.controller.allocation_id, seat.allocation_id]
    if seat.allocation_id == plan.controller.allocation_id:  # the platform does not ask for it
        raise BadPlan(f"{seat.host} also runs the controller, which cannot go with the worker.")
    async with reach(work, tools, wanted) as hosts, reporter(work) as said:
        head, host = hosts[plan.controller.allocation_id], hosts[seat.allocation_id]
        standing = await _emptied(work, tools, said, head, seat)
        if not isinstance(standing, nodes.Standing):
            return standing
        going = MemberReport(member_id=seat.member_id, state="removing", runtime_state=standing.state)
        await work.progress("removing", 1, len(teardown.ORDER), f"Taking {seat.host} out", members=[going])
        await take_charge({seat.allocation_id: host})
        runner = Runner(tools.journal, said, pause=lambda: pausing(work), found={"prove_clean": checks})
        if not await runner.run(leaving(head, host, seat)):
            return paused(work)
        await said.sent()
        return Done(
            f"{seat.host} is no longer part of {plan.cluster}, and nothing of the cluster is left on it.",
            evidence={seat.allocation_id: await departed(tools, host, head, seat)},
            members=[*more, MemberReport(member_id=seat.member_id, state="removed")],
            adapter_detail={"node": seat.node, "steps": runner.timeline},
        )


def leaving(head: Host, host: Host, seat: Seat) -> list[Stage]:
    stop, *rest = [step() for step in teardown.ORDER if step is not teardown.stop_jobs]
    return [(Task(host, stop),), (Task(head, nodes.delete(seat)),), *((Task(host, step),) for step in rest)]


async def _replace(work: Work, tools: Tools) -> Outcome:
    """The new one comes first; then the old one goes. Each half finds what it has already done."""
    come = await _add(work, tools)
    if not isinstance(come, Done):
        return come
    plan = await make_plan(work, tools)
    return await _take_out(work, tools, plan, seat_of(plan, work.operation.old_member_id), list(come.members or []))


def _ok(answer: Answer, head: Host, step: str) -> Answer:
    if answer.exit != 0:
        raise explain(answer, host=head.name, step=step, title="Asking the scheduler", code="step_failed")
    return answer


async def _member(head: Host, seat: Seat, state: str) -> MemberReport:
    return _reported(seat, await nodes.standing(head, seat), state)


def _reported(seat: Seat, standing: nodes.Standing, state: str) -> MemberReport:
    detail: dict[str, Any] = {"node": seat.node, "reason": standing.reason, "drained_by": standing.by}
    return MemberReport(
        member_id=seat.member_id,
        state=state,
        runtime_state=standing.state,
        adapter_detail=detail if standing.reason else None,
    )
