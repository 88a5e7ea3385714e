"""Connects the SDK's controller loop to the reconcilers: one loop per identity, all in one process with one journal."""

import asyncio
import hashlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog
from gpuaas_sdk import (
    Again,
    AsyncClient,
    Controller,
    Done,
    Failed,
    Observation,
    ObserveContext,
    ObservePolicy,
    ServiceAccount,
    TelemetrySender,
    Work,
)
from gpuaas_sdk.controller.telemetry import moment
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.outcomes import translate_errors
from gpuaas_sdk.host_steps.store import place

from gpuaas_slurm import APP_SLUG, PROGRAM, __version__, logs
from gpuaas_slurm.reconcile import cluster, keys, members, versions
from gpuaas_slurm.reconcile.context import Tools
from gpuaas_slurm.reconcile.decommission import decommission
from gpuaas_slurm.reconcile.deploy import deploy
from gpuaas_slurm.reconcile.observe import observe

log = structlog.get_logger()
Outcome = Done | Again | Failed
Reconcile = Callable[[Work, Tools], Awaitable[Outcome]]

RECONCILERS: dict[str, Reconcile] = {
    "deploy": deploy,
    "decommission": decommission,
    "stop": cluster.stop,
    "start": cluster.start,
    "restart": cluster.restart,
    "rotate_keys": keys.rotate,
    "reconfigure": cluster.reconfigure,
    "upgrade": cluster.upgrade,
    "rollback": cluster.upgrade,
    "add_member": members.add,
    "drain_member": members.drain,
    "undrain_member": members.undrain,
    "restart_member": members.restart,
    "remove_member": members.remove,
    "replace_member": members.replace,
}


async def run(identities: list[Path], state: str, holder: str, concurrency: int = 16) -> None:
    """Run the loops until SIGTERM or SIGINT; then they release their claims.

    Operations mostly wait for hosts, so 16 at once per project cost little, and a slow host delays no other operation.
    """
    import asyncssh  # noqa: F401  (half a second of import: at start, not when the first operation waits)

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    journal = Journal(place(state), app=PROGRAM)
    log.info("controller starts", version=__version__, holder=holder, identities=len(identities), state=journal.name)
    try:
        async with asyncio.TaskGroup() as group:
            for path in identities:
                group.create_task(_serve(ServiceAccount.load(path), journal, holder, concurrency, stop))
    finally:
        journal.close()
        log.info("controller stopped")


async def _serve(
    identity: ServiceAccount, journal: Journal, holder: str, concurrency: int, stop: asyncio.Event
) -> None:
    tools = Tools(journal)
    reconcilers = {kind: _bind(reconcile, tools) for kind, reconcile in RECONCILERS.items()}
    async with AsyncClient.for_service_account(identity) as client, TelemetrySender(client) as telemetry:
        tools.telemetry = telemetry
        controller = Controller(
            client,
            app_slug=APP_SLUG,
            holder=holder,
            reconcilers=reconcilers,
            concurrency=concurrency,
            observe=_bind_observe(tools),
            observe_policy=ObservePolicy(every_s=float(os.environ.get("GPUAAS_SLURM_OBSERVE_S", "30"))),
        )
        with logs.send_to_platform(telemetry, client.project_id):
            await controller.run(stop)


def _bind_observe(tools: Tools) -> Callable[[ObserveContext], Awaitable[Observation | None]]:
    async def bound(context: ObserveContext) -> Observation | None:
        with structlog.contextvars.bound_contextvars(instance_id=context.instance.id, project_id=context.project_id):
            return await observe(context, tools)

    return bound


def _bind(reconcile: Reconcile, tools: Tools) -> Callable[[Work], Awaitable[Outcome]]:
    async def bound(work: Work) -> Outcome:
        words = {
            "correlation_id": work.operation.correlation_id,
            "operation_id": work.operation.id,
            "instance_id": work.instance.id,
            "project_id": work.project_id,
            "claim_epoch": work.claim_epoch,
        }
        with structlog.contextvars.bound_contextvars(**words):
            log.info("reconcile starts", operation_kind=work.operation.kind)
            started = moment()
            outcome = await translate_errors(work, tools, lambda: _before(work, tools)) or await reconcile(work, tools)
            log.info("reconcile ends", outcome=type(outcome).__name__, why=getattr(outcome, "why", ""))
            _send_span(tools, work, started, outcome)
            return outcome

    return bound


async def _before(work: Work, tools: Tools) -> None:
    tools.journal.forget_old()
    await versions.check(work)


def _send_span(tools: Tools, work: Work, started_at: str, outcome: Outcome) -> None:
    if tools.telemetry is None:
        return
    operation = work.operation
    tools.telemetry.span(
        f"{operation.kind}, claim {work.claim_epoch}",
        started_at=started_at,
        ended_at=moment(),
        trace_id=hashlib.sha256(operation.id.encode()).hexdigest()[:32],  # the same for every claim of an operation
        correlation_id=operation.correlation_id,
        operation_id=operation.id,
        status="error" if isinstance(outcome, Failed) else "ok",
        outcome=type(outcome).__name__,
    )
