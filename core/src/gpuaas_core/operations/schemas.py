"""Wire models of operations, claims and reports. A target adds its own fields to these models (`targets.Wire`)."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from ..kit.wire import (
    ActionView,
    Id,
    Input,
    Keepable,
    Moment,
    Sentence,
    Slug,
    View,
    Whole,
    YesNo,
    canonical,
    describe_pattern,
)
from ..machine_access.schemas import AskKeyAccess

_CODE = describe_pattern(
    r"^[a-z][a-z0-9_]{1,62}$", "2 to 63 lower-case letters, digits and underscores, starting with a letter"
)
_HOLDER = describe_pattern(r"^[A-Za-z0-9._:@-]{1,120}$", "1 to 120 letters, digits and ._:@-")
Phase = Annotated[str, StringConstraints(max_length=80), Keepable]
Detail = dict[str, Any]
MOST_INTEGRATION = 4 * 1024


class Because(Input):
    reason: Sentence | None = None


class Justified(Input):
    """The reason of a request that cannot be undone. The reason is recorded."""

    reason: Annotated[str, StringConstraints(min_length=3, max_length=500), Keepable]


class Retry(Input):
    try_anyway: YesNo = Field(
        False, description="tells the app to try although it refuses after repeated failures; this one time"
    )


class ProgressView(View):
    step: int
    of: int
    message: str
    percent: int


class OperationError(Input):
    code: Annotated[str, StringConstraints(pattern=_CODE)]
    message: Sentence
    way_out: Sentence
    retryable: YesNo = False


class OperationErrorView(View):
    code: str
    message: str
    way_out: str
    retryable: bool


class TargetView(View):
    kind: str = ""
    id: str = ""
    app_slug: str
    version: str


class StuckView(View):
    reason: str
    message: str
    since: Moment


class OperationView(View):
    id: str
    kind: str
    batch_id: str | None
    params: Detail
    target: TargetView
    status: str
    phase: str
    progress: ProgressView
    error: OperationErrorView | None
    adapter_detail: Detail | None
    evidence: Detail | None
    attempts: int
    claim_epoch: int
    claimed_by: str | None
    cancel_requested: bool
    stuck: StuckView | None
    deadline_at: Moment | None
    retry_of: str | None
    correlation_id: str
    requested_by: str
    available_actions: list[ActionView]
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None


class CanceledBatch(View):
    """The operations of a canceled batch. Operations that had ended before are not changed."""

    batch_id: str
    operations: list[Any]


class Claim(Input):
    app_slug: Slug
    holder: Annotated[str, StringConstraints(pattern=_HOLDER)]
    wait_s: Whole = Field(0, ge=0, le=30)
    holding: list[Id] = Field(default_factory=list, max_length=500, description="operations worked on right now")


class ClaimView(View):
    """A claim. Each target adds `operation` (its own view of the operation) and the data that its controller needs
    to begin."""

    claim_epoch: int
    lease_expires_in_s: int


class ClaimReport(Input):
    claim_epoch: Whole = Field(ge=1)


class LeaseView(View):
    lease_expires_in_s: int
    cancel_requested: bool


class Progress(ClaimReport):
    phase: Phase
    step: Whole = Field(ge=0, le=10_000)
    of: Whole = Field(ge=0, le=10_000)
    message: Sentence
    adapter_detail: Detail | None = None


class Complete(ClaimReport):
    message: Sentence | None = Field(None, description="how the operation ended, for people")
    adapter_detail: Detail | None = None
    evidence: Detail | None = None


class Fail(ClaimReport):
    error: OperationError
    undone: YesNo = Field(False, description="nothing was changed, the target is as it was before")
    adapter_detail: Detail | None = None


class ReturnClaim(ClaimReport):
    retry_in_s: Whole = Field(0, ge=0, le=3600)
    reason: Sentence = ""


class AskAccess(ClaimReport, AskKeyAccess):
    pass


class NoteIntegration(ClaimReport):
    allocation_id: Id
    integration: Detail = Field(description=f"opaque; at most {MOST_INTEGRATION} bytes as JSON, no secrets")

    @field_validator("integration")
    @classmethod
    def _small(cls, value: Detail) -> Detail:
        if len(canonical(value).encode()) > MOST_INTEGRATION:
            raise ValueError(f"more than {MOST_INTEGRATION} bytes as JSON")
        return value
