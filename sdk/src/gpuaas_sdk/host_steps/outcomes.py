"""Converts errors of host work into outcomes of the controller loop: retry later, fail with evidence, or stop.

Every reconcile function of an app runs inside these wrappers, from the outside in:

    with_rollback           app      undoes what a failed operation on a member changed (optional)
      └─ translate_errors   here     StepFailed, unreachable host, lost claim … → Again, Failed or StaleClaim
           └─ with_circuit_breaker   breaker.py: a host that failed too often is not set up again (deploy, add)
                └─ the reconcile function itself: plan, reach hosts, run stages, return Done
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from ..client.errors import MachineError, MachineUnreachable, stale_claim
from ..client.models import MemberReport
from ..controller.outcomes import Again, Failed
from ..controller.work import Work
from . import evidence
from .context import StepContext
from .errors import StaleOnHost, StepFailed, Unreached
from .journal import StepRow
from .store import StateAway
from .validate import BadWord

log = structlog.get_logger()
T = TypeVar("T")
CODES = {"machine_unreachable": "host_unreachable", "command_timed_out": "step_failed"}


async def translate_errors(work: Work, context: StepContext, body: Callable[[], Awaitable[T]]) -> T | Again | Failed:
    """Run the body and return its result. Expected errors are returned as Again or Failed; a lost claim is raised as
    StaleClaim."""
    try:
        return await _run(work, context, body)
    except StateAway as error:  # also while a failure is written to the journal
        return _journal_unavailable(work, context, str(error))


async def _run(work: Work, context: StepContext, body: Callable[[], Awaitable[T]]) -> T | Again | Failed:
    try:
        return await body()
    except StaleOnHost as error:
        raise stale_claim(work.operation.id, str(error), work.operation.correlation_id) from error
    except Unreached as error:
        return _host_unreachable(work, context, error.allocation_id, str(error))
    except MachineUnreachable as error:
        return _host_unreachable(work, context, work.members()[0].allocation_id or "", str(error))
    except MachineError as error:
        return _failed(work, context, StepFailed(CODES.get(error.code, error.code), str(error)))
    except (BadWord, *context.profile.failures.input_errors) as error:
        return _failed(work, context, StepFailed("inputs_invalid", str(error)))
    except StepFailed as error:
        return _failed(work, context, error)


def should_pause(work: Work) -> bool:
    """Return True if the controller is stopping or a cancel was requested. Checked between two stages."""
    return work.stopping or work.cancel_requested


def paused(work: Work) -> Again | Failed:
    """Return the outcome of a reconcile that `should_pause` ended: Again if the controller is stopping, Failed if a
    cancel was requested."""
    if not work.cancel_requested:
        return Again(0, "the controller is stopping")
    return Failed(
        "canceled",
        f"The {work.operation.kind} was canceled between two steps; the completed steps stay on the host.",
        f"Run `gpuaas operation retry {work.operation.id}` to continue, or decommission the instance to clean up.",
        retryable=True,
    )


def _host_unreachable(work: Work, context: StepContext, allocation_id: str, why: str) -> Again | Failed:
    waited, times = context.journal.wait(work.operation.id, allocation_id)
    if waited < context.patience_s:
        pause = min(2.0 ** (times - 1), 8.0, max(0.1, context.patience_s - waited))
        return Again(pause, f"{why} Trying again, for {context.patience_s:.0f} s in all.")
    context.journal.reached(work.operation.id, allocation_id)
    return _failed(work, context, StepFailed("host_unreachable", f"{why} Gave up after {waited:.0f} s."))


def _journal_unavailable(work: Work, context: StepContext, why: str) -> Again | Failed:
    """Return Again while the journal is unavailable, and Failed once that lasts longer than `patience_s`. No act starts
    meanwhile, because it must be recorded first; the next probe finds a step that was under way."""
    if context.journal.away_for() < context.patience_s:
        return Again(2.0, f"{why} Trying again, for {context.patience_s:.0f} s in all.")
    return _failed(work, context, StepFailed("state_unavailable", why))


def _failed(work: Work, context: StepContext, error: StepFailed) -> Failed:
    failures, kind = context.profile.failures, work.operation.kind
    names = {m.allocation_id: m.node_name or m.allocation_id for m in work.members() if m.allocation_id}
    detail = evidence.bundle(error.detail, _journal_rows(work, context), names)
    message = evidence.scrub(error.message)
    log.warning("operation fails", code=error.code, message=message, detail=detail)
    # After a deploy the platform itself knows which member an operation was about.
    members = [MemberReport(member_id=m.id, state="failed") for m in work.members() if kind == "deploy"]
    way_out = failures.way_out(error.code, work.operation.id, kind)
    undone = error.code in failures.nothing_changed
    return Failed(error.code, message, way_out, failures.retryable(error.code), detail, members, undone)


def _journal_rows(work: Work, context: StepContext) -> list[StepRow]:
    try:
        return context.journal.rows(work.operation.id)
    except StateAway:
        return []
