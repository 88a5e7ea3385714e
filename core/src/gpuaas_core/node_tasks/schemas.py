"""Requests and responses of tasks."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from ..kit.json_types import Json
from ..kit.wire import Id, Input, Keepable, Moment, Sentence, View, Whole, YesNo, canonical

MOST_EVIDENCE = 64 * 1024
LONGEST_WAIT_S = 30


class SignedTask(View):
    """A task with its signature. The node runs only what `payload` contains, and only if the signature of `payload` is
    valid."""

    payload: str
    key_id: str
    signature: str


class LeasedTask(View):
    task_id: str
    attempt: int
    epoch: int
    lease_expires_in_s: int
    document: SignedTask


class RenewTask(Input):
    attempt: Whole = Field(ge=1)
    epoch: Whole = Field(ge=0, le=2**53)


class TaskLeaseView(View):
    lease_expires_in_s: int


class ReportTask(RenewTask):
    outcome: Literal["succeeded", "failed", "refused", "interrupted"]
    message: Sentence = ""
    evidence: dict[str, Any] = Field(default_factory=dict, description=f"at most {MOST_EVIDENCE} bytes as JSON")

    @field_validator("evidence")
    @classmethod
    def _small(cls, value: Json) -> Json:
        if len(canonical(value).encode()) > MOST_EVIDENCE:
            raise ValueError(f"more than {MOST_EVIDENCE} bytes as JSON")
        return value


class AskTask(Input):
    claim_epoch: Whole = Field(ge=1, le=2**53)
    allocation_id: Id
    kind: Annotated[str, StringConstraints(max_length=40)]
    arguments: dict[str, Any] = Field(description="see contracts/node-tasks.json for the kind's schema; never a secret")


class WipeNode(Input):
    by_hand: YesNo = Field(False, description="an operator has cleaned the node; no wipe task is queued")
    reason: Annotated[str, StringConstraints(min_length=3, max_length=500), Keepable]


class WipeView(View):
    node_id: str
    allocation_id: str
    wipe: str
    task_id: str | None


class TaskView(View):
    id: str
    node_id: str
    allocation_id: str | None
    project_id: str | None
    operation_id: str | None
    kind: str
    arguments: dict[str, Any]
    epoch: int
    idempotent: bool
    state: str
    attempt: int = Field(description="how often it was leased to the node")
    message: str
    evidence: dict[str, Any] = Field(description="what the node reported")
    asked_by: str
    correlation_id: str
    deadline_at: Moment
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None


class AgentView(View):
    version: str
    path: str
    sha256: str
    size: int
    installer_path: str
    installer_sha256: str
