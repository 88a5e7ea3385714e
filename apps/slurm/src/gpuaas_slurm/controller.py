"""Wires the SDK's controller loop to the reconcilers: one loop per identity, all in this process, one journal."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog
from gpuaas_sdk import Again, AsyncClient, Controller, Done, Failed, ServiceAccount, Work

from gpuaas_slurm import APP_SLUG, __version__
from gpuaas_slurm.reconcile.decommission import decommission
from gpuaas_slurm.reconcile.deploy import deploy
from gpuaas_slurm.reconcile.ground import Tools
from gpuaas_slurm.state.journal import Journal

log = structlog.get_logger()
Outcome = Done | Again | Failed
Reconcile = Callable[[Work, Tools], Awaitable[Outcome]]


async def run(identities: list[Path], state: Path, holder: str, concurrency: int = 4) -> None:
    """Until SIGTERM or SIGINT; the loops then hand back what they hold."""
    import asyncssh  # noqa: F401  (half a second of import: at start, not when the first operation waits)

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    journal = Journal(state / "journal.db")
    log.info("controller starts", version=__version__, holder=holder, identities=len(identities), state=str(state))
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
    reconcilers = {"deploy": _bind(deploy, tools), "decommission": _bind(decommission, tools)}
    async with AsyncClient.for_service_account(identity) as client:
        controller = Controller(
            client, app_slug=APP_SLUG, holder=holder, reconcilers=reconcilers, concurrency=concurrency
        )
        await controller.run(stop)


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
            log.info("reconcile starts", kind=work.operation.kind)
            outcome = await reconcile(work, tools)
            log.info("reconcile ends", outcome=type(outcome).__name__, why=getattr(outcome, "why", ""))
            return outcome

    return bound
