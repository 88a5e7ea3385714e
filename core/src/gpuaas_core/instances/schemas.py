"""What instances, members and their operations look like on the wire."""

from ipaddress import ip_network
from typing import Annotated, Any, Literal

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
from ..operations import schemas as operations
from ..operations.schemas import ClaimReport, Detail
from ..policy.schemas import BoundaryMode, ControlPlaneScope, Mode

MOST_INTEGRATION = 4 * 1024

_KEY = describe_pattern(
    r"^[a-z][a-z0-9_]{0,39}$", "1 to 40 lower-case letters, digits and underscores, starting with a letter"
)
Key = Annotated[str, StringConstraints(pattern=_KEY)]
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
    """Of an instance or one of its members."""

    instance_id: str
    member_id: str | None
    old_member_id: str | None
    from_version: str | None
    to_version: str | None


class AcceptedView(View):
    instance: InstanceView
    operation: OperationView


class BatchView(View):
    """One operation per member, all of one request."""

    batch_id: str
    instance: InstanceView
    operations: list[OperationView]


class MemberRemovedView(View):
    member_id: str
    state: str
    orphan_id: str


class OrphanView(View):
    id: str
    instance_id: str
    member_id: str
    operation_id: str | None
    allocation_id: str
    node_id: str
    node_name: str
    address: str
    reason: str
    created_by: str
    created_at: Moment
    resolved_by: str | None
    resolved_at: Moment | None
    resolution: str | None


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
    """One input that an update would change, and what the app says changing it does."""

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
    changes: list[ChangeView] = Field(default_factory=list, description="of an update")
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
    """Of many members, send several reports."""

    members: list[MemberReport] = Field(default_factory=list, max_length=500)
    health: Health | None = None
    conditions: list[Condition] = Field(default_factory=list, max_length=50)


class Complete(operations.Complete):
    health: Health | None = None
    conditions: list[Condition] = Field(default_factory=list, max_length=50)
    observed_generation: Whole | None = Field(None, ge=1, description="of the inputs that were applied")
    access: Detail | None = None
    runtime_version: Short | None = None
    evidence: Detail | None = Field(
        None,
        description="required for a decommission, a remove and a replace: per allocation an object with `checks`,"
        " rows of `check`, `ok` and `detail`",
    )
    members: list[MemberReport] = Field(default_factory=list, max_length=500)


class Fail(operations.Fail):
    undone: YesNo = Field(
        False,
        description="not for a deploy or decommission: nothing was changed, the instance or member is as it was before",
    )
    members: list[MemberReport] = Field(default_factory=list, max_length=500)


class AskCertificate(Input):
    ssh_public_key: Annotated[str, StringConstraints(max_length=1000)]
    source_addresses: list[Annotated[str, StringConstraints(max_length=60)]] = Field(
        default_factory=list,
        max_length=16,
        description="the certificate works only from these addresses or networks, as hosts see them; any if left out",
    )

    @field_validator("source_addresses")
    @classmethod
    def _networks(cls, value: list[str]) -> list[str]:
        try:
            return [str(ip_network(one)) for one in value]
        except ValueError as error:
            raise ValueError("an address or a network, e.g. 10.1.2.3 or 10.1.2.0/24") from error


class AskKeyAccess(AskCertificate):
    allocation_id: Id


class AskAccess(ClaimReport, AskKeyAccess):
    pass


class NoteIntegration(ClaimReport):
    allocation_id: Id
    integration: dict[str, Any] = Field(description=f"opaque; at most {MOST_INTEGRATION} bytes as JSON, no secrets")

    @field_validator("integration")
    @classmethod
    def _small(cls, value: dict[str, Any]) -> dict[str, Any]:
        if len(canonical(value).encode()) > MOST_INTEGRATION:
            raise ValueError(f"more than {MOST_INTEGRATION} bytes as JSON")
        return value


class GrantView(View):
    id: str
    allocation_id: str
    principal: str
    certificate: str
    expires_in_s: int
    address: str
    port: int
    login_user: str
    host_ca_public_key: str = Field(description="the authority that signs host certificates now")
    host_ca_public_keys: list[str] = Field(
        description="every authority to accept: while one takes over from another, hosts show certificates of both"
    )
    host_principal: str


class NameSecret(Input):
    name: Key


class GenerateSecret(NameSecret):
    length: Whole = Field(32, ge=16, le=256)
    alphabet: Literal["alphanumeric", "hex", "digits"] = "alphanumeric"


class IssueSecret(GenerateSecret):
    value: Annotated[str, StringConstraints(min_length=1, max_length=16_384)] | None = Field(
        None, description="instead of a generated one; it is sealed and never shown again"
    )


class ClaimSecret(ClaimReport, GenerateSecret):
    pass


class AskSecret(ClaimReport, NameSecret):
    version: Whole | None = Field(None, ge=1, le=1_000_000, description="the newest one by default")


class SecretView(View):
    """What may be known of a secret: not its value."""

    id: str
    name: str
    version: int
    origin: str
    created_by: str
    created_at: Moment


class SecretGoneView(View):
    name: str
    versions: int


class SealedSecretView(View):
    name: str
    version: int
    sealed: Annotated[str, Field(description="a JWE for the caller's registered key; inside, a JWS of the platform")]
    expires_in_s: int
