"""Decommission: removes the cluster from its hosts, whatever state they are in, and collects evidence per host."""

from datetime import UTC, datetime
from typing import Any

from gpuaas_sdk import Again, Done, Failed, MemberReport, Work
from gpuaas_sdk.host_steps.context import reach_hosts, start_reporter
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Answer, Host, take_charge
from gpuaas_sdk.host_steps.journal import Key
from gpuaas_sdk.host_steps.outcomes import paused, should_pause, translate_errors
from gpuaas_sdk.host_steps.runner import Runner

from gpuaas_slurm import __version__, validate
from gpuaas_slurm.plan import WorkerSlot
from gpuaas_slurm.reconcile.context import Tools
from gpuaas_slurm.slurm import node_control
from gpuaas_slurm.steps import teardown


async def decommission(work: Work, tools: Tools) -> Done | Again | Failed:
    return await translate_errors(work, tools, lambda: _decommission(work, tools))


async def _decommission(work: Work, tools: Tools) -> Done | Again | Failed:
    async with reach_hosts(work, tools, allocations(work)) as hosts, start_reporter(work) as reporter:
        await take_charge(hosts)
        tools.forget(hosts)
        runner = Runner(tools.journal, reporter, pause=lambda: should_pause(work), results={"prove_clean": checks})
        if not await runner.run(teardown.stages(list(hosts.values()))):
            return paused(work)
        evidence: dict[str, Any] = {allocation_id: proven(tools, host) for allocation_id, host in hosts.items()}
        await reporter.sent()
        return Done(
            f"Nothing of the cluster is left on {len(hosts)} host{'s' if len(hosts) != 1 else ''}.",
            evidence=evidence,
            adapter_detail={"app_version": __version__, "steps": runner.timeline},
            members=[MemberReport(member_id=m.id, state="removed") for m in work.members()],
        )


def allocations(work: Work) -> list[str]:
    """Return the allocations of the instance: the workers' first, the controller's last. No plan is built, because the
    inputs may be invalid by now."""
    ordered = sorted(work.members(), key=lambda m: m.component_key == "controller")
    known = dict.fromkeys(m.allocation_id for m in reversed(ordered) if m.allocation_id)
    return [validate.word("id", a) for a in reversed(known)]


def checks(answer: Answer) -> dict[str, Any]:
    rows = [line.split("|", 2) for line in answer.lines.get("check", [])]
    made = [{"check": name, "ok": ok == "yes", "detail": detail} for name, ok, detail in rows]
    if bad := [row for row in made if not row["ok"]]:
        words = "; ".join(f"{row['check']}: {row['detail'].strip()}" for row in bad)
        raise StepFailed("teardown_incomplete", f"The host is not clean: {words}.", {"checks": made})
    return {"checks": made, "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def proven(tools: Tools, host: Host) -> dict[str, Any]:
    claim = host.claim
    key = Key(claim.operation_id, claim.instance_id, host.allocation_id, "prove_clean", claim.epoch)
    found = tools.journal.details(key)
    if not found:
        raise StepFailed("teardown_incomplete", f"No evidence was kept for {host.name}.", {"host": host.name})
    best = max(found, key=lambda row: len(row["checks"]))  # a resumed process may find no trace left to look at
    notes = {"check": "notes", "ok": True, "detail": "the app's own notes are gone from the host"}
    return {"host": host.name, "app_version": __version__, "checks": [*best["checks"], notes], "at": best["at"]}


async def departed(tools: Tools, host: Host, head: Host, slot: WorkerSlot) -> dict[str, Any]:
    """Return the evidence that the worker's host is clean and the scheduler no longer has the node. Raises StepFailed
    if the scheduler still has it."""
    status = await node_control.read_node(head, slot)
    if status.known:
        words = f"Slurm still shows the node {slot.node} ({status.state}): its slurmd came back while it was removed."
        raise StepFailed("teardown_incomplete", words, {"node": slot.node, "host": host.name})
    evidence = proven(tools, host)
    gone = {"check": "node", "ok": True, "detail": f"the scheduler knows no node {slot.node}"}
    return evidence | {"node": slot.node, "checks": [*evidence["checks"], gone]}
