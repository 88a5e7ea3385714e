"""What a reconcile function returns. It never sleeps and never loops: it reads the state, does the next step, returns:

    return Done("slurmctld answers and 1 node is idle.", members=[MemberReport(member_id=m.id, state="ready")])
    return Again(5, "slurmctld is starting")
    return Failed("disk_full", "node-a has no space left in /var.", "Free 2 GB on node-a, then retry.", retryable=True)

claim_runner.py acts on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..client.models import MemberReport
from ..client.request import JsonList, JsonObject


@dataclass(frozen=True, slots=True)
class Done:
    """The desired state is reached. `sentence` is what people read as the operation's end and, of an operation on the
    whole instance, as its health; work on one member says nothing of that, unless `status` is given."""

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
    """Not there yet: call me again in `seconds`, with a freshly read instance. The claim is kept meanwhile."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It cannot be reached; a person reads `why` and `way_out`. `retryable`: trying the same again may work.
    `undone`: nothing was changed, so what ran before still runs as it did."""

    code: str
    why: str
    way_out: str
    retryable: bool = False
    adapter_detail: JsonObject | None = None
    members: Sequence[MemberReport] = ()
    undone: bool = False


@dataclass(frozen=True, slots=True)
class HandBack:
    """Only the loop returns this: the controller is stopping, so the claim is released for another one."""

    why: str
    retry_in_s: int = 0


Outcome = Done | Again | Failed
