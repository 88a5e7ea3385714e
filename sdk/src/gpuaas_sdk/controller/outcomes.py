"""The outcomes that a reconcile function returns. It never sleeps or loops: it reads the state, does the next step and
returns:

    return Done("slurmctld answers and 1 node is idle.", members=[MemberReport(member_id=m.id, state="ready")])
    return Again(5, "slurmctld is starting")
    return Failed("disk_full", "node-a has no space left in /var.", "Free 2 GB on node-a, then retry.", retryable=True)

claim_runner.py handles the outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..client.models import MemberReport
from ..client.request import JsonList, JsonObject


@dataclass(frozen=True, slots=True)
class Done:
    """The desired state is reached. `sentence` is shown as the operation's result and, for an operation on the whole
    instance, as its health. An operation on one member changes the health only if `status` is given."""

    sentence: str
    status: str | None = None  # "healthy" after an operation on the whole instance
    access: JsonObject | None = None
    runtime_version: str | None = None
    adapter_detail: JsonObject | None = None
    conditions: JsonList | None = None
    evidence: JsonObject | None = (
        None  # per machine that was left: {allocation_id: {"checks": [{"check", "ok", "detail"}]}}
    )
    members: Sequence[MemberReport] = ()


@dataclass(frozen=True, slots=True)
class Again:
    """The desired state is not reached yet: call the reconcile function again in `seconds`, with the instance read
    again. The claim is kept."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The desired state cannot be reached. People read `why` and `way_out`. `retryable`: a retry may succeed. `undone`:
    nothing was changed, so the instance runs as before."""

    code: str
    why: str
    way_out: str
    retryable: bool = False
    adapter_detail: JsonObject | None = None
    members: Sequence[MemberReport] = ()
    undone: bool = False


@dataclass(frozen=True, slots=True)
class HandBack:
    """The controller is stopping and releases the claim for another controller. Only the loop returns this."""

    why: str
    retry_in_s: int = 0


Outcome = Done | Again | Failed
