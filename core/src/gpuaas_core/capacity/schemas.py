"""Requests and responses for nodes, allocations, quotas, regions, SKUs and pools."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from ..kit.wire import ActionView, Id, Input, Moment, Slug, Title, View, Whole, describe_pattern
from ..policy.schemas import Name, Reason

_ADDRESS = describe_pattern(r"^[0-9a-fA-F:.]{3,45}$", "an IPv4 or IPv6 address")
Address = Annotated[str, StringConstraints(pattern=_ADDRESS)]
_CURRENCY = describe_pattern(r"^[A-Z]{3}$", "a currency as three capital letters, e.g. EUR")
Currency = Annotated[str, StringConstraints(pattern=_CURRENCY)]
Lease = Annotated[Whole, Field(ge=60, le=366 * 24 * 3600)]
LONGEST_WAIT_S = 24 * 3600


class Gpu(Input):
    path: Annotated[str, StringConstraints(max_length=120)]
    model: Annotated[str, StringConstraints(max_length=80)] = "gpu"


class Facts(Input):
    hostname: Annotated[str, StringConstraints(max_length=255)]
    cpus: Whole = Field(ge=1, le=4096)
    memory_mb: Whole = Field(ge=1)
    gpus: list[Gpu] = Field(default_factory=list[Gpu], max_length=64)
    os: Annotated[str, StringConstraints(max_length=120)] = ""
    kernel: Annotated[str, StringConstraints(max_length=120)] = ""
    agent_version: Annotated[str, StringConstraints(max_length=40)] = ""
    machine_id: Annotated[str, StringConstraints(max_length=64)] = ""
    boot_id: Annotated[str, StringConstraints(max_length=64)] = ""


class NodeView(View):
    id: str
    tenant_id: str
    name: str
    state: str
    standing: str = Field(
        description="what administrators decided: ready, cordoned or draining; kept while the node is silent"
    )
    standing_reason: str | None
    address: str
    ssh_port: int
    labels: dict[str, Any]
    region: str
    sku: str
    pool: str | None
    facts: dict[str, Any]
    trust_generation: int
    trust_applied: int
    last_seen_at: Moment
    created_at: Moment
    available_actions: list[ActionView]


class Decide(Input):
    reason: Reason = ""


class PutIntoPool(Input):
    pool: Slug | None = Field(description="null removes it from its pool")


class Terms(Input):
    """The terms of an allocation, such as lease and scheduler type."""

    name: Slug | None = None
    expires_in_s: Lease | None = Field(
        None, description="the allocation is released then, unless it is in use; omit for no end"
    )
    lost_after_s: Whole | None = Field(
        None,
        ge=60,
        le=LONGEST_WAIT_S,
        description="seconds of silence after which the node counts as lost; default 600",
    )
    scheduler_type: Name | None = Field(
        None, description="reserved for apps with this `runtime_backend` in their manifest; omit for any"
    )


class CreateAllocation(Terms):
    node_id: Id


class Want(Input):
    """The kind and number of nodes to allocate. An omitted field matches everything that policy allows."""

    sku: Name | None = None
    region: Name | None = None
    pool: Slug | None = None
    count: Whole = Field(1, ge=1, le=64)


class RequestAllocations(Terms):
    want: Want


class ExtendAllocation(Input):
    expires_in_s: Lease | None = Field(description="from now; null for a lease without end")


class CreateRegion(Input):
    name: Name
    title: Title


class RegionView(View):
    name: str
    title: str
    created_at: Moment


class CreateSku(Input):
    name: Name
    gpu_model: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    gpu_count: Whole = Field(ge=0, le=64)
    cpus: Whole = Field(ge=1, le=4096)
    memory_mb: Whole = Field(ge=1, le=2**40)
    price_micros_per_hour: Whole = Field(ge=0, le=10**15, description="millionths of the currency; 0 where it is free")
    currency: Currency


class SkuView(View):
    name: str
    gpu_model: str
    gpu_count: int
    cpus: int
    memory_mb: int
    price_micros_per_hour: int
    currency: str
    created_at: Moment


class CreatePool(Input):
    name: Slug
    title: Title


class PoolView(View):
    tenant_id: str
    name: str
    title: str
    created_at: Moment


class NameOffer(Input):
    name: Annotated[str, StringConstraints(min_length=1, max_length=63)]


class SetQuota(Input):
    max_allocations: Whole | None = Field(ge=0, le=10**6, description="null: no limit")
    max_gpus: Whole | None = Field(ge=0, le=10**6, description="null: no limit")


class QuotaView(View):
    project_id: str
    max_allocations: int | None = None
    max_gpus: int | None = None
    used_allocations: int = 0
    used_gpus: int = 0


class UsedBy(View):
    instance_id: str
    instance_name: str


class AllocationView(View):
    id: str
    name: str
    project_id: str
    node_id: str
    node_name: str
    node_state: str
    address: str
    state: str
    scheduler_type: str | None
    integration_metadata: dict[str, Any] = Field(
        description="metadata of the app's controller; not used by the platform"
    )
    region: str
    sku: str
    gpus: int = Field(description="as counted by the project's quota")
    expires_at: Moment | None = Field(description="when the lease ends; null: no end")
    overdue_since: Moment | None = Field(description="when the lease ended while the allocation was in use")
    wipe: str | None = Field(None, description="after a release: pending, done or failed; failed keeps the node held")
    facts: dict[str, Any]
    in_use_by: UsedBy | None = None
    created_at: Moment


class AllocationsView(View):
    items: list[AllocationView]
