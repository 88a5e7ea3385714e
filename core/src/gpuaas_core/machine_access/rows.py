"""Rows of machine access for other rooms: immutable, with typed ids."""

from dataclasses import dataclass
from typing import NamedTuple, NewType

from ..authz.ids import PrincipalId, ProjectId, TenantId
from ..capacity.rows import AllocationId, NodeId

GrantId = NewType("GrantId", str)


@dataclass(frozen=True)
class AuthorityRow:
    """The columns of `tables.ssh_authorities`, in their order."""

    tenant_id: TenantId
    purpose: str
    number: int
    state: str
    public_key: str
    sealed_private_key: bytes | None
    created_at: int
    activated_at: int | None
    retired_at: int | None


class Rotation(NamedTuple):
    """A rotation of a tenant's SSH authority."""

    tenant_id: TenantId
    purpose: str


@dataclass(frozen=True)
class GrantRow:
    """The columns of `tables.access_grants`, in their order."""

    id: GrantId
    serial: int
    tenant_id: TenantId
    project_id: ProjectId
    operation_id: str
    claim_epoch: int
    allocation_id: AllocationId
    principal_id: PrincipalId
    key_id: str | None
    user_authority: int
    host_authority: int
    source_addresses: str | None
    purpose: str
    subject_kind: str
    subject_id: str
    expires_at: int
    ends_at: int | None
    created_at: int
    revoked_at: int | None
    revoke_reason: str | None
    revoked_generation: int | None


@dataclass(frozen=True)
class ShownGrantRow(GrantRow):
    """An access grant with the names of its node and of its holder."""

    node_id: NodeId
    node_name: str
    trust_applied: int
    principal_name: str


@dataclass(frozen=True)
class Certificate:
    text: str
    serial: int
    lives_s: int
    authority: int  # the number of the authority that signed it


@dataclass(frozen=True, kw_only=True)
class Reason:
    """The reason for an access grant: its purpose, operation, claim and target."""

    purpose: str
    operation_id: str
    claim_epoch: int
    subject_kind: str
    subject_id: str


@dataclass(frozen=True)
class Ended:
    """A grant that must be revoked, and the reason."""

    grant_id: GrantId
    reason: str
