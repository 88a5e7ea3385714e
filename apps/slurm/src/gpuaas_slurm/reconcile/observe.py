"""Observes a running cluster between operations and reports its health. Nothing on the hosts is changed.

The controller's host is probed every time. Of the workers' hosts, only those that Slurm shows in trouble are probed,
and a few others in turn, so that the cost does not grow with the number of workers. A host that does not answer delays
only its own probe.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from gpuaas_sdk import MemberObservation, Observation, ObserveContext
from gpuaas_sdk.client.errors import ApiError, MachineError
from gpuaas_sdk.client.models import MemberView
from gpuaas_sdk.host_steps.host import Answer, Claim, parse, preamble
from gpuaas_sdk.host_steps.validate import BadWord

from gpuaas_slurm import __version__, drift, health, plan
from gpuaas_slurm.access import headers_wanted, read_tried, refreshed, try_headers
from gpuaas_slurm.conditions import SKEW_ALLOWED_S
from gpuaas_slurm.errors import BadPlan
from gpuaas_slurm.facts import AskedBetween, now_ms
from gpuaas_slurm.health import TAKES_JOBS, Worker
from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.probes import HEAD, WORKER, HeadSeen, HostSeen, read_head, read_host
from gpuaas_slurm.profile import PROFILE
from gpuaas_slurm.reconcile.context import Tools

log = structlog.get_logger()
IN_TURN = 4  # workers' hosts probed each time although Slurm shows nothing wrong with them
MOST_TROUBLED = 16  # for the others Slurm's own state must do
WITHIN_S = 25.0
ON_THEIR_WAY = ("pending", "provisioning", "removing")


@dataclass
class ObservedCluster:
    """The cluster under observation and the connections to its hosts."""

    context: ObserveContext
    plan: Plan

    async def ask(self, slot: WorkerSlot, script: str) -> Answer:
        """Run a script on a host without a claim, a fence or a log line, since an observation writes nothing."""
        claim = Claim(self.context.instance.id, str(self.context.instance.last_operation_id), 0)
        text = preamble(PROFILE, claim, step="look", unit="", within=WITHIN_S) + script
        result = await self.context.machine(slot.allocation_id).run(["bash", "-c", text], timeout=WITHIN_S)
        return parse(result.exit, result.stdout, result.stderr)


async def observe(context: ObserveContext, tools: Tools) -> Observation | None:
    try:
        cluster = ObservedCluster(context, await _plan(context, tools))
    except (BadPlan, BadWord) as error:
        log.warning("the cluster cannot be observed", instance_id=context.instance.id, error=str(error))
        return None
    if context.memory.get("since") != context.instance.last_operation_id:  # what was remembered is of before it
        context.memory.clear()
        context.memory["since"] = context.instance.last_operation_id
    head = await _head(cluster)
    workers = await _workers(cluster, head)
    judged = health.judge(context.instance.name, cluster.plan, head, workers)
    return Observation(
        judged.sentence,
        judged.status,
        conditions=[row.row() for row in judged.conditions],
        members=_members(context, cluster.plan, head, workers),
        access=await _access(cluster, head, workers),
        runtime_version=head.version or None,
        adapter_detail={
            "drift": drift.ledger(context.instance.name, cluster.plan, head, workers, _app_version(context))
        },
    )


async def _plan(context: ObserveContext, tools: Tools) -> Plan:
    instance = context.instance
    if context.project_id not in tools.slugs:
        try:
            tools.slugs[context.project_id] = (await context.client.get_project(context.project_id)).slug
        except ApiError:
            tools.slugs[context.project_id] = None
    there = [member for member in instance.members if _takes_part(member)]
    slug = tools.slugs[context.project_id]
    return plan.make(instance.id, instance.name, instance.inputs, there, instance.project_id, slug)


def _app_version(context: ObserveContext) -> str:
    return str((context.instance.adapter_detail or {}).get("app_version", ""))


async def _head(cluster: ObservedCluster) -> HeadSeen:
    try:
        began = now_ms()
        answer = await cluster.ask(cluster.plan.controller, HEAD)
    except MachineError as error:
        return HeadSeen(why=str(error))
    return read_head(answer, AskedBetween.since(began))


async def _workers(cluster: ObservedCluster, head: HeadSeen) -> list[Worker]:
    members = {m.id: m for m in cluster.context.members("worker")}
    known = [
        Worker(
            instance=cluster.context.instance.name,
            slot=slot,
            member_state=members[slot.member_id].state,
            node=head.nodes.get(slot.node),
            host=head if slot.allocation_id == cluster.plan.controller.allocation_id and head.reached else None,
            in_work=bool(members[slot.member_id].current_operation_id) or members[slot.member_id].state in ON_THEIR_WAY,
        )
        for slot in cluster.plan.workers
    ]
    asked = _to_ask(cluster, head, known)
    seen = await asyncio.gather(*(_worker_host(cluster, one) for one in asked))
    by_member = {one.slot.member_id: host for one, host in zip(asked, seen, strict=True)}
    return [_with_host(cluster.context.memory, one, by_member.get(one.slot.member_id, one.host)) for one in known]


def _to_ask(cluster: ObservedCluster, head: HeadSeen, known: list[Worker]) -> list[Worker]:
    if not head.reached:
        return []
    apart = [one for one in known if one.host is None and not one.in_work]
    fine = (*TAKES_JOBS, "drained", "draining")
    troubled = [one for one in apart if one.node is None or one.node.silent or one.node.state not in fine]
    known_hosts: dict[str, HostSeen] = cluster.context.memory.get("hosts", {})
    wrong = {
        key for key, seen in known_hosts.items() if not seen.reached or seen.files or abs(seen.skew_s) > SKEW_ALLOWED_S
    }
    troubled += [one for one in apart if one not in troubled and one.slot.member_id in wrong]
    quiet = [one for one in apart if one not in troubled]
    turn = cluster.context.memory.get("turn", 0) % max(1, len(quiet))
    cluster.context.memory["turn"] = turn + IN_TURN
    return troubled[:MOST_TROUBLED] + [*quiet[turn:], *quiet[:turn]][:IN_TURN]


async def _worker_host(cluster: ObservedCluster, one: Worker) -> HostSeen | None:
    try:
        began = now_ms()
        answer = await cluster.ask(one.slot, WORKER)
    except MachineError as error:
        return HostSeen(why=str(error))
    except ApiError as error:
        log.info("a worker's host was not observed", host=one.slot.host, why=error.code)
        return None
    return read_host(answer, AskedBetween.since(began))


def _with_host(memory: dict[str, Any], one: Worker, host: HostSeen | None) -> Worker:
    """Return the worker with the last known result of its host's probe, and count missed probes: a host that missed one
    probe may only be slow."""
    known_hosts, missed, silent = (memory.setdefault(name, {}) for name in ("hosts", "missed", "silent"))
    key = one.slot.member_id
    silent[key] = silent.get(key, 0) + 1 if one.node is not None and one.node.silent else 0
    if host is None:
        host = known_hosts.get(key)
    else:
        missed[key] = 0 if host.reached else missed.get(key, 0) + 1
        known_hosts[key] = host
    return replace(one, host=host, missed=missed.get(key, 0), silent=silent[key])


def _takes_part(member: MemberView) -> bool:
    """Return True if the member is observed. A member that is being added, was removed, or failed before it was
    accepted is not observed."""
    never_accepted = member.state == "failed" and member.runtime_state is None
    return member.state not in ("pending", "provisioning", "removed") and not never_accepted


def _members(context: ObserveContext, wanted: Plan, head: HeadSeen, workers: list[Worker]) -> list[MemberObservation]:
    found = []
    by_id = {one.slot.member_id: one for one in workers}
    for member in context.instance.members:
        if member.id == wanted.controller.member_id and head.reached:
            state = "running" if head.answers else "down"
            found.append(MemberObservation(member_id=member.id, runtime_state=state, runtime_version=head.version))
        elif member.id in by_id and head.answers and not by_id[member.id].in_work:
            found.append(_of_worker(member.runtime_state, by_id[member.id]))
    return found


def _of_worker(before: str | None, one: Worker) -> MemberObservation:
    """Return the observation of a worker. A change between idle and busy is left out, because jobs come and go."""
    state = one.runtime_state
    detail: dict[str, Any] = {"node": one.slot.node}
    if one.node is not None and one.node.reason:
        detail |= {"reason": one.node.reason, "drained_by": one.node.by, "since": one.node.since}
    return MemberObservation(
        member_id=one.slot.member_id,
        runtime_state=None if before in TAKES_JOBS and state in TAKES_JOBS else state,
        runtime_version=(one.node.version if one.node else "") or None,
        adapter_detail=detail,
    )


async def _access(cluster: ObservedCluster, head: HeadSeen, workers: list[Worker]) -> dict[str, Any] | None:
    """Return the access bundle of the deploy with later changes; None if there is no access bundle. New headers are
    tested before they are shown."""
    before: Mapping[str, Any] | None = cluster.context.instance.access
    if not before:
        return None
    wanted = headers_wanted(head)
    shown = {(one["partition"], one["gpu"]) for one in before.get("sbatch_headers", [])}
    tried = {}
    if head.answers and (new := [one for one in wanted if one not in shown]):
        tried = read_tried(await cluster.ask(cluster.plan.controller, try_headers(cluster.plan, new)))
    return refreshed(
        before, cluster.plan, head, workers, wanted, tried, app_version=_app_version(cluster.context) or __version__
    )
