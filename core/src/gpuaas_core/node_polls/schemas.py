"""Request and answer of the node agent's poll."""

from typing import Annotated

from pydantic import Field, StringConstraints

from ..capacity.schemas import Facts
from ..kit.wire import Id, Input, View, Whole, YesNo
from ..machine_access.schemas import TrustView
from ..node_tasks.schemas import LeasedTask

LONGEST_WAIT_S = 30


class Poll(Input):
    applied_generation: Whole = Field(ge=0, description="the generation of trust that this host has applied")
    acknowledged_generation: Whole = Field(
        ge=0, description="the last applied generation that an answered poll reported; 0 if there was none"
    )
    takes_task: YesNo = Field(False, description="the agent runs no task and can take one")
    working_on: Id | None = Field(None, description="the task it runs; the poll is answered when that task has ended")
    machine_id: Annotated[str, StringConstraints(max_length=64)] = ""
    boot_id: Annotated[str, StringConstraints(max_length=64)] = ""
    facts: Facts | None = Field(None, description="in the first poll of a process, and when they changed")
    wait_s: Whole = Field(0, ge=0, le=LONGEST_WAIT_S, description="the next poll is expected when this time is up")


class PollView(View):
    trust: TrustView | None = Field(description="if the host must trust something else than it has applied")
    task: LeasedTask | None = Field(description="if the agent takes a task and one is queued")
    renew_identity: bool = Field(description="the node should create and register its next key now")
