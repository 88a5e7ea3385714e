"""The circuit breaker: a host that could not be set up again and again is not tried blindly a further time.

Counted are failures after the host was touched (a preflight that says no is cheap, and sees by itself when its cause is
gone), per host and, over all hosts, per version of the app. A success, an hour, another version or a person's
`try_anyway` closes it again. The memory is the app's own journal.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from gpuaas_sdk import Done, Work
from gpuaas_sdk.client.errors import MachineError, MachineUnreachable
from gpuaas_sdk.host_steps.evidence import bounded
from gpuaas_sdk.host_steps.journal import Setback

from gpuaas_slurm import __version__
from gpuaas_slurm.errors import StepFailed
from gpuaas_slurm.reconcile.ground import Tools

WINDOW_S = 3600.0
MOST_OF_A_HOST = 3
MOST_OF_A_VERSION = 6  # on any hosts, without a success in between
COUNTED = ("step_failed", "accounting_not_ready", "job_proof_failed", "packages_not_delivered")


async def tried(work: Work, tools: Tools, body: Callable[[], Awaitable[Any]]) -> Any:
    """Runs the body unless its hosts have failed too often, and remembers how it ended."""
    allocations = _allocations(work)
    if not work.operation.params.get("try_anyway"):
        _refuse(work, tools, allocations)
    try:
        outcome = await body()
    except MachineUnreachable:
        raise
    except MachineError as error:
        _remember(work, tools, StepFailed("step_failed", str(error)))
        raise
    except StepFailed as error:
        if error.code in COUNTED:
            _remember(work, tools, error)
        raise
    if isinstance(outcome, Done):
        tools.journal.set_up(__version__, allocations)
    return outcome


def _allocations(work: Work) -> list[str]:
    """Those that the operation sets up: one member's, or all."""
    member = work.operation.member_id
    return [m.allocation_id for m in work.members() if m.allocation_id and (member is None or m.id == member)]


def _refuse(work: Work, tools: Tools, allocations: list[str]) -> None:
    known = [one for one in tools.journal.setbacks(__version__, WINDOW_S) if one.operation_id != work.operation.id]
    for allocation_id in allocations:
        of_host = [one for one in known if one.allocation_id == allocation_id]
        if len(of_host) >= MOST_OF_A_HOST:
            host = next((m.node_name for m in work.members() if m.allocation_id == allocation_id), allocation_id)
            raise _open(f"Setting up {host} failed {len(of_host)} times in a row", of_host, MOST_OF_A_HOST)
    fresh = [one for one in known if one.at > tools.journal.worked_at(__version__)]
    if len(fresh) >= MOST_OF_A_VERSION:
        hosts = len({one.allocation_id for one in fresh})
        words = f"Version {__version__} of the app failed {len(fresh)} times in a row, on {hosts} hosts"
        raise _open(words, fresh, MOST_OF_A_VERSION)


def _open(words: str, found: list[Setback], most: int) -> StepFailed:
    last, closes = found[-1], found[-most].at + WINDOW_S
    return StepFailed(
        "bootstrap_circuit_open",
        f"{words}, so it is not tried again by itself. The last time: {last.message}",
        {
            "last_failure": {
                "operation_id": last.operation_id,
                "at": _moment(last.at),
                "code": last.code,
                **last.detail,
            },
            "failures": [{"operation_id": f.operation_id, "at": _moment(f.at), "code": f.code} for f in found[-10:]],
            "closes_at": _moment(closes),
        },
    )


def _remember(work: Work, tools: Tools, error: StepFailed) -> None:
    allocations = _allocations(work)
    by_name = {m.node_name: m.allocation_id for m in work.members() if m.allocation_id in allocations}
    blamed = by_name.get(str(error.detail.get("host")), allocations[0])
    detail = bounded(error.detail, 4_000)
    tools.journal.setback(Setback(work.operation.id, blamed, __version__, error.code, error.message, detail), WINDOW_S)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
