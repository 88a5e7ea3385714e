"""The row of an event, and the event as it is sent to clients."""

from dataclasses import dataclass
from typing import NewType, TypedDict

from ..kit.json_types import Json

EventId = NewType("EventId", str)


@dataclass(frozen=True)
class EventRow:
    """The columns of `tables.events`, in their order."""

    tenant_id: str
    sequence: int
    id: EventId
    type: str
    project_id: str | None
    subject: str
    correlation_id: str
    trace_id: str
    at: int
    data: Json


class CloudEvent(TypedDict):
    """An event as it is sent to clients, with the attribute names of CloudEvents 1.0."""

    specversion: str
    id: str
    source: str
    type: str
    subject: str
    time: str | None
    datacontenttype: str
    sequence: int
    correlationid: str
    traceid: str
    data: Json
