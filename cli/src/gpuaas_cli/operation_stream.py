"""The progress of operations as a stream that continues after lost connections. Used by progress.py and batches.py.

It follows the event stream and resumes by sequence number. Without the permission to read events, it polls the
operation every second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import gpuaas_sdk as sdk
from gpuaas_sdk.client.generated_facts import LIVE_STATES

if TYPE_CHECKING:
    from gpuaas_sdk import Client
    from gpuaas_sdk.client.errors import GpuaasError
    from gpuaas_sdk.client.models import EventView, OperationView

LIVE = frozenset(LIVE_STATES["operation"])
HISTORY = 500  # events before now, so that `watch` also shows earlier steps
POLL_S = 1.0
OnLine = Callable[["GpuaasError | None"], None]


@dataclass(frozen=True)
class Moment:
    status: str
    step: int
    of: int
    message: str
    at: datetime

    @property
    def ended(self) -> bool:
        return self.status not in LIVE

    @classmethod
    def of_event(cls, event: EventView) -> Moment:
        data: dict[str, Any] = event.data
        at = datetime.fromisoformat(event.time)
        return cls(
            str(data.get("status", "")), data.get("step") or 0, data.get("of") or 0, data.get("message") or "", at
        )

    @classmethod
    def of_operation(cls, operation: OperationView) -> Moment:
        progress = operation.progress
        message = operation.stuck.message if operation.stuck else progress.message
        return cls(operation.status, progress.step, progress.of, message, datetime.now(UTC))


def sequence_now(client: Client, project_id: str) -> int:
    """Return the sequence number of the newest event. If it is read before a request, events that follow it include the
    first event of the request."""
    return client.list_operations(project_id, limit=1).event_sequence or 0


def moments(
    client: Client, project_id: str, operation_id: str, *, after: int | None = None, on_line: OnLine
) -> Iterator[Moment]:
    """Yield every step of the operation until it ends. Without `after`, steps of the recent past are included."""
    for _, moment in moments_of(client, project_id, {operation_id}, after=after, on_line=on_line):
        yield moment


def moments_of(
    client: Client, project_id: str, operations: set[str], *, after: int | None = None, on_line: OnLine
) -> Iterator[tuple[str, Moment]]:
    """Yield the steps of several operations, each with its operation id, until all have ended."""
    newest = sequence_now(client, project_id)
    start = after if after is not None else max(0, newest - HISTORY)
    waiting = set(operations)
    try:
        yield from _from_events(client, project_id, waiting, start, on_line)
    except sdk.errors.Gone:
        yield from _from_events(client, project_id, waiting, newest, on_line)
    except (sdk.errors.Denied, sdk.errors.NotFound):
        yield from _from_asking(client, project_id, waiting, on_line)


def _from_events(
    client: Client, project_id: str, waiting: set[str], after: int, on_line: OnLine
) -> Iterator[tuple[str, Moment]]:
    for operation_id in sorted(waiting):
        operation = client.get_operation(project_id, operation_id)
        if operation.status not in LIVE:
            waiting.discard(operation_id)
            yield operation_id, Moment.of_operation(operation)
    if not waiting:
        return
    for event in sdk.events.follow(client, project_id=project_id, after=after, on_line=on_line):
        whose = event.data.get("operation_id")
        if whose in waiting and event.type.startswith("apps.operation."):
            known = "status" in event.data  # `stuck` and `unstuck` have none: the operation continues
            moment = Moment.of_event(event) if known else Moment.of_operation(client.get_operation(project_id, whose))
            if moment.ended:
                waiting.discard(whose)
            yield whose, moment
            if not waiting:
                return


def _from_asking(client: Client, project_id: str, waiting: set[str], on_line: OnLine) -> Iterator[tuple[str, Moment]]:
    while True:
        try:
            for operation_id in sorted(waiting):
                moment = Moment.of_operation(client.get_operation(project_id, operation_id))
                on_line(None)
                if moment.ended:
                    waiting.discard(operation_id)
                yield operation_id, moment
            if not waiting:
                return
        except (sdk.errors.ConnectionFailed, sdk.errors.Unavailable) as error:
            on_line(error)
        time.sleep(POLL_S)
