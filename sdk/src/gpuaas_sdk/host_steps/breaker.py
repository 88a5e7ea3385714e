"""The circuit breaker: after several failures to set up a host, the host is not tried again automatically.

It counts failures that happened after the host was changed, per host and, over all hosts, per version of the app.
Failed preflights do not count. A success, an hour, another version or `try_anyway` closes the breaker again. The counts
are in the app's journal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from ..client.errors import MachineError, MachineUnreachable
from ..controller.outcomes import Again, Done, Failed
from ..controller.work import Work
from .context import StepContext
from .errors import StepFailed
from .evidence import bounded
from .journal import Setback

WINDOW_S = 3600.0
MOST_PER_HOST = 3
MOST_PER_VERSION = 6  # on any hosts, without a success in between
Outcome = Done | Again | Failed


async def with_circuit_breaker(work: Work, context: StepContext, body: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Run the body and record its result in the journal. Raises StepFailed without running the body if its hosts have
    failed too often."""
    allocations = _allocations(work)
    if not work.operation.params.get("try_anyway"):
        _check_closed(work, context, allocations)
    try:
        outcome = await body()
    except MachineUnreachable:
        raise
    except MachineError as error:
        _record(work, context, StepFailed("step_failed", str(error)))
        raise
    except StepFailed as error:
        if error.code in context.profile.failures.counted:
            _record(work, context, error)
        raise
    if isinstance(outcome, Done):
        context.journal.set_up(context.profile.version, allocations)
    return outcome


def _allocations(work: Work) -> list[str]:
    """Return the allocations that the operation sets up: that of its member, or all if it is on the whole instance."""
    member = work.operation.member_id
    return [m.allocation_id for m in work.members() if m.allocation_id and (member is None or m.id == member)]


def _check_closed(work: Work, context: StepContext, allocations: list[str]) -> None:
    journal, version = context.journal, context.profile.version
    known = [one for one in journal.setbacks(version, WINDOW_S) if one.operation_id != work.operation.id]
    for allocation_id in allocations:
        of_host = [one for one in known if one.allocation_id == allocation_id]
        if len(of_host) >= MOST_PER_HOST:
            host = next((m.node_name for m in work.members() if m.allocation_id == allocation_id), allocation_id)
            raise _circuit_open(f"Setting up {host} failed {len(of_host)} times in a row", of_host, MOST_PER_HOST)
    fresh = [one for one in known if one.at > journal.worked_at(version)]
    if len(fresh) >= MOST_PER_VERSION:
        hosts = len({one.allocation_id for one in fresh})
        reason = f"Version {version} of the app failed {len(fresh)} times in a row, on {hosts} hosts"
        raise _circuit_open(reason, fresh, MOST_PER_VERSION)


def _circuit_open(reason: str, failures: list[Setback], most: int) -> StepFailed:
    last, closes = failures[-1], failures[-most].at + WINDOW_S
    return StepFailed(
        "bootstrap_circuit_open",
        f"{reason}, so it is not tried again automatically. The last failure: {last.message}",
        {
            "last_failure": {
                "operation_id": last.operation_id,
                "at": _iso(last.at),
                "code": last.code,
                **last.detail,
            },
            "failures": [{"operation_id": f.operation_id, "at": _iso(f.at), "code": f.code} for f in failures[-10:]],
            "closes_at": _iso(closes),
        },
    )


def _record(work: Work, context: StepContext, error: StepFailed) -> None:
    allocations = _allocations(work)
    by_name = {m.node_name: m.allocation_id for m in work.members() if m.allocation_id in allocations}
    blamed = by_name.get(str(error.detail.get("host"))) or allocations[0]
    detail = bounded(error.detail, 4_000)
    setback = Setback(work.operation.id, blamed, context.profile.version, error.code, error.message, detail)
    context.journal.setback(setback, WINDOW_S)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
