"""Dataclasses for the rows of artifact sources, artifacts and deliveries: immutable, with typed ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

SourceId = NewType("SourceId", str)
ArtifactId = NewType("ArtifactId", str)
DeliveryId = NewType("DeliveryId", str)


@dataclass(frozen=True)
class SourceRow:
    """The columns of `tables.artifact_sources`, in their order."""

    id: SourceId
    owner: str
    name: str
    policy_name: str
    kind: str
    base_url: str
    host: str
    port: int | None
    private_addresses: int
    open_to_tenants: int
    credential_kind: str | None
    sealed_credential: bytes | None
    state: str
    state_reason: str | None
    created_by: str
    created_at: int


@dataclass(frozen=True)
class ArtifactRow:
    """The columns of `tables.artifacts`, in their order, then name, state and owner of the artifact's source."""

    id: ArtifactId
    owner: str
    source_id: SourceId
    name: str
    version: str
    kind: str
    reference: Mapping[str, str]
    sha256: str
    size: int
    media_type: str
    state: str
    created_by: str
    created_at: int
    withdrawn_at: int | None
    withdraw_reason: str | None
    source: str  # the source's name in policies
    source_state: str
    source_owner: str


@dataclass(frozen=True)
class DeliveryRow:
    """The columns of `tables.artifact_deliveries`, in their order, then digest and size of the artifact."""

    id: DeliveryId
    artifact_id: ArtifactId
    tenant_id: str
    project_id: str | None
    node_id: str
    task_id: str | None
    app_slug: str | None
    state: str
    expires_at: int
    fetches: int
    created_by: str
    created_at: int
    received_at: int | None
    sha256: str
    size: int


@dataclass(frozen=True)
class OfferedDelivery:
    id: DeliveryId
    node_id: str
