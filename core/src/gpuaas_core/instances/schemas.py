"""Wire models of instances, members and their operations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from ..kit.json_types import Json
from ..kit.wire import (
    ActionView,
    Id,
    Input,
    Keepable,
    Key,
    Moment,
    Sentence,
    Slug,
    View,
    Whole,
    YesNo,
)
from ..machine_access import schemas as machine_access
from ..operations import schemas as operations
from ..operations.schemas import Detail
from ..policy.schemas import BoundaryMode, ControlPlaneScope, Mode
from .states import OF_MEMBER

Short = Annotated[str, StringConstraints(max_length=120), Keepable]
HealthStatus = Literal["healthy", "progressing", "degraded", "drained", "failed", "unhealthy", "unknown"]
MemberState = Literal["provisioning", "ready", "draining", "drained", "removing", "removed", "failed"]
Effect = Literal["pushed", "needs_restart", "needs_drain", "refused", "unknown"]


class CreateInstance(Input):
    name: Slug
    app_slug: Slug
    version: Annotated[str, StringConstraints(max_length=40)] | None = None
    topology: Key = "single_node"
    operating_mode: Mode | None = Field(None, description="a hint")
    control_plane_scope: ControlPlaneScope | None = Field(None, description="a hint")
    runtime_backend: Annotated[str, StringConstraints(max_length=20)] | None = Field(None, description="a hint")
    tenant_boundary_mode: BoundaryMode | None = Field(None, description="a hint")
    inputs: Detail = Field(default_factory=dict)
    placement_intent: dict[Key, Annotated[list[Id], Field(min_length=1, max_length=500)]] = Field(min_length=1)
    operator_id: Id | None = Field(None, description="the only service account whose controller works on it")
    validate_only: YesNo = False


class Decommission(Input):
    reason: Sentence | None = None
    validate_only: YesNo = False


class UpdateInstance(Input):
    inputs: Detail
    validate_only: YesNo = False


class UpgradeInstance(Input):
    version: Annotated[str, StringConstraints(max_length=40)]


class Health(Input):
    status: HealthStatus
    sentence: Sentence


class Condition(Input):
    type: Short
    status: Literal["True", "False", "Unknown"]
    reason: Short = ""
    message: Sentence = ""
    observed_generation: Whole | None = None


class ConditionView(View):
    type: str
    status: str
    reason: str
    message: str
    observed_generation: int | None
    last_transition_at: Moment


class HealthView(View):
    status: str
    sentence: str


class MemberView(View):
    id: str
    instance_id: str
    component_key: str
    ordinal: int
    state: str
    allocation_id: str
    node_id: str
    node_name: str
    address: str
    facts: Detail
    runtime_state: str | None
    runtime_version: str | None
    adapter_detail: Detail | None
    replaces: str | None
    current_operation_id: str | None
    last_operation_id: str | None
    available_actions: list[ActionView]
    correlation_id: str


class MemberCount(View):
    component_key: str
    state: str
    count: int


class InstanceView(View):
    id: str
    etag: Annotated[str, Field(description="send it as If-Match with an update")] = ""
    name: str
    project_id: str
    org_id: str
    app_slug: str
    version: str
    topology: str
    state: str
    health: HealthView
    conditions: list[ConditionView]
    generation: int
    observed_generation: int
    inputs: Detail
    placement_intent: dict[str, list[str]]
    operating_mode: str
    control_plane_scope: str
    runtime_backend: str
    tenant_boundary_mode: str
    requested: dict[str, str]
    operator_id: str | None = Field(description="the service account that operates it; none: any that may")
    previous_version: str | None
    runtime_version: str | None
    access: Detail | None
    adapter_detail: Detail | None
    members: list[MemberView]
    members_total: int
    member_counts: list[MemberCount] = Field([], description="how many of each component are in which state")
    current_operation_id: str | None
    last_operation_id: str | None
    available_actions: list[ActionView]
    correlation_id: str
    created_at: Moment
    updated_at: Moment


class OperationView(operations.OperationView):
    """An operation on an instance or on one of its members."""

    instance_id: str
    member_id: str | None
    old_member_id: str | None
    from_version: str | None
    to_version: str | None


class AcceptedView(View):
    instance: InstanceView
    operation: OperationView


class BatchView(View):
    """The operations that one request queued, one per member."""

    batch_id: str
    instance: InstanceView
    operations: list[OperationView]


class MemberRemovedView(View):
    member_id: str
    state: str
    orphan_id: str


class PlannedHost(View):
    allocation_id: str
    node_name: str
    address: str
    components: list[str]
    sku: str | None = Field(default=None, description="the kind of machine")
    price_micros_per_hour: int | None = Field(
        default=None, description="null: its kind has no record, so no price is known"
    )
    currency: str | None = None


class ChangeView(View):
    """One input that an update would change, and the effect that the app declares for it."""

    field: str = Field(description="JSON Pointer into the inputs")
    old: Any = None
    new: Any = None
    effect: Effect
    sentence: str


class PlanView(View):
    summary: str
    app_slug: str
    version: str
    topology: str
    hosts: list[PlannedHost]
    inputs: Detail
    warnings: list[str] = Field(default_factory=list)
    changes: list[ChangeView] = Field(default_factory=list[ChangeView], description="of an update")
    charged_to: str


class PlannedView(View):
    plan: PlanView


class ClaimView(operations.ClaimView):
    operation: OperationView
    instance: InstanceView = Field(description="with its first members; the list of members has them all, in pages")


class MemberReport(Input):
    member_id: Id
    state: MemberState
    runtime_state: Short | None = None
    runtime_version: Short | None = None
    adapter_detail: Detail | None = None


class Progress(operations.Progress):
    """A progress report of an operation on an instance. A report has at most 500 members; send several reports if there
    are more."""

    members: list[MemberReport] = Field(default_factory=list[MemberReport], max_length=500)
    health: Health | None = None
    conditions: list[Condition] = Field(default_factory=list[Condition], max_length=50)


class Complete(operations.Complete):
    health: Health | None = None
    conditions: list[Condition] = Field(default_factory=list[Condition], max_length=50)
    observed_generation: Whole | None = Field(None, ge=1, description="of the inputs that were applied")
    access: Detail | None = None
    runtime_version: Short | None = None
    evidence: Detail | None = Field(
        None,
        description="required for a decommission, a remove and a replace: per allocation an object with `checks`,"
        " rows of `check`, `ok` and `detail`",
    )
    members: list[MemberReport] = Field(default_factory=list[MemberReport], max_length=500)


class Fail(operations.Fail):
    undone: YesNo = Field(
        False,
        description="not for a deploy or decommission: nothing was changed, the instance or member is as it was before",
    )
    members: list[MemberReport] = Field(default_factory=list[MemberReport], max_length=500)


class AddMembers(Input):
    component_key: Key
    allocation_ids: Annotated[list[Id], Field(min_length=1, max_length=100)]
    validate_only: YesNo = False


class Emptying(Input):
    """How running work is handled before a member is drained, removed or replaced."""

    reason: Sentence | None = None
    deadline_s: Whole | None = Field(default=None, ge=0, le=7 * 24 * 3600, description="how long work may go on")
    at_deadline: Literal["give_back", "requeue"] | None = Field(
        default=None,
        description="what happens to work that still goes on then: the member is given back to it (the default), or the"
        " work goes back to where it waited and starts again elsewhere",
    )

    @model_validator(mode="after")
    def _needs_a_deadline(self) -> Self:
        if self.at_deadline and self.deadline_s is None:
            raise ValueError("at_deadline needs deadline_s (0: at once)")
        return self


class DrainMember(Emptying):
    pass


class Leaving(Emptying):
    """The removal of a member. `host_is_gone` needs a reason, because a lost machine cannot be cleaned."""

    host_is_gone: YesNo = Field(
        default=False, description="the machine does not come back: fence it, and record that it was not cleaned"
    )

    @model_validator(mode="after")
    def _justified(self) -> Self:
        if self.host_is_gone and len(self.reason or "") < 3:
            raise ValueError("host_is_gone needs a reason of at least 3 characters")
        return self

    @property
    def params(self) -> Json:
        return {
            "reason": self.reason,
            "deadline_s": self.deadline_s,
            "at_deadline": self.at_deadline,
            "host_is_gone": self.host_is_gone or None,
        }


class RemoveMember(Leaving):
    validate_only: YesNo = False


class NamedMembers(Input):
    member_ids: Annotated[list[Id], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.member_ids)) != len(self.member_ids):
            raise ValueError("a member is named twice")
        return self

    @property
    def params(self) -> Json:
        return self.model_dump(exclude={"member_ids"})


class AskMembers(NamedMembers):
    reason: Sentence | None = None


class EmptyMembers(NamedMembers, Emptying):
    """A request to drain or remove several members."""


class ReplaceMember(Leaving):
    allocation_id: Id


class MemberObservation(Input):
    member_id: Id
    runtime_state: Short | None = None
    runtime_version: Short | None = None
    adapter_detail: Detail | None = None


class Observation(Input):
    """An observation of a running instance by its controller. `last_operation_id` and `observed_generation` are the
    values that the controller read before the observation began."""

    last_operation_id: Id
    observed_generation: Whole = Field(ge=1)
    health: Health
    conditions: list[Condition] = Field(
        default_factory=list[Condition], max_length=50, description="those of other types stay as they are"
    )
    members: list[MemberObservation] = Field(
        default_factory=list[MemberObservation],
        max_length=500,
        description="those that an operation works on are passed over",
    )
    access: Detail | None = Field(None, description="the whole access bundle; left out, it stays as it is")
    runtime_version: Short | None = None
    adapter_detail: Detail | None = Field(
        None, description="keys named here take the place of the same ones; null: gone"
    )


class ObservedView(View):
    instance_id: str
    changed: list[str] = Field(description="what changed: health, conditions, access, members …")


class AccessGrantView(machine_access.AccessGrantView):
    member_id: str | None = Field(description="of a person's: whose machine was asked for")

    @model_validator(mode="before")
    @classmethod
    def _member(cls, facts: Mapping[str, object]) -> Mapping[str, object]:
        entered = facts.get("purpose") == "person" and facts.get("subject_kind") == OF_MEMBER
        return {"member_id": facts.get("subject_id") if entered else None, **facts}


class OpenSshSession(machine_access.AskCertificate):
    """A request for an SSH session, with the public part of an SSH key that was generated for this session."""


class SshSessionView(machine_access.GrantView):
    member_id: str
    ends_at: Moment = Field(description="the machine ends the session by then")
