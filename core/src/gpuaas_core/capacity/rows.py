"""Dataclasses for the rows of nodes, allocations, regions, SKUs, pools and quotas: immutable, with typed ids."""

from dataclasses import dataclass
from typing import NewType

from ..authz.ids import ProjectId, TenantId
from ..kit.json_types import Json

NodeId = NewType("NodeId", str)
AllocationId = NewType("AllocationId", str)


@dataclass(frozen=True)
class NodeRow:
    """The columns of `tables.nodes`, in their order."""

    id: NodeId
    tenant_id: TenantId
    name: str
    state: str
    standing: str
    standing_reason: str | None
    address: str
    ssh_port: int
    ssh_host_public_key: str
    host_certificate: str
    host_authority: int
    host_certified_until: int
    labels: Json
    region: str
    sku: str
    pool: str | None
    facts: Json
    trust_generation: int
    trust_applied: int
    tasks_at: int | None
    authority_generation: int
    created_at: int


@dataclass(frozen=True)
class SeenNodeRow(NodeRow):
    """A node with the time of its last contact."""

    last_seen_at: int


@dataclass(frozen=True)
class AllocationRow:
    """The columns of `tables.allocations`, in their order."""

    id: AllocationId
    project_id: ProjectId
    owner_kind: str
    owner_id: str
    node_id: NodeId
    name: str
    state: str
    scheduler_type: str | None
    integration_metadata: Json
    trust_generation: int
    gpus: int
    lost_after_s: int | None
    expires_at: int | None
    overdue_since: int | None
    wipe: str | None
    created_at: int
    updated_at: int


@dataclass(frozen=True)
class PlacedAllocationRow(AllocationRow):
    """An allocation with the columns of its node that views show."""

    node_name: str
    node_state: str
    address: str
    ssh_port: int
    region: str
    sku: str
    facts: Json
    tenant_id: TenantId


@dataclass(frozen=True)
class RegionRow:
    name: str
    title: str
    created_at: int


@dataclass(frozen=True)
class SkuRow:
    name: str
    gpu_model: str
    gpu_count: int
    cpus: int
    memory_mb: int
    price_micros_per_hour: int
    currency: str
    created_at: int


@dataclass(frozen=True)
class PoolRow:
    tenant_id: TenantId
    name: str
    title: str
    created_at: int


@dataclass(frozen=True)
class QuotaRow:
    project_id: ProjectId
    max_allocations: int | None
    max_gpus: int | None
    used_allocations: int
    used_gpus: int
    updated_at: int


@dataclass(frozen=True)
class Holder:
    """What uses an allocation, for example an instance: the kind of the holder and its id."""

    kind: str
    id: str


@dataclass(frozen=True)
class HoldRow:
    allocation_id: AllocationId
    holder_kind: str
    holder_id: str
