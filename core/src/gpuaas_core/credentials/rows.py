"""Dataclasses for the rows of credentials and runtime secrets."""

from dataclasses import dataclass
from typing import NewType

CredentialId = NewType("CredentialId", str)
SecretId = NewType("SecretId", str)


@dataclass(frozen=True)
class CredentialRow:
    id: CredentialId
    tenant_id: str
    project_id: str
    name: str
    kind: str
    state: str
    version: int
    overlap_ends_at: int | None
    created_by: str
    created_at: int
    revoked_at: int | None
    revoke_reason: str | None


@dataclass(frozen=True)
class ShownCredential(CredentialRow):
    """A credential with the public key of its newest version."""

    origin: str
    algorithm: str
    public_key: str
    fingerprint: str


@dataclass(frozen=True)
class VersionRow:
    credential_id: CredentialId
    version: int
    tenant_id: str
    project_id: str
    origin: str
    algorithm: str
    public_key: str
    fingerprint: str
    sealed_private_key: bytes | None  # none once the version is retired
    created_by: str
    created_at: int
    retired_at: int | None


@dataclass(frozen=True)
class UseRow:
    """The time of the last delivery of a credential's version to an instance."""

    instance_id: str
    version: int
    last_used_at: int


@dataclass(frozen=True)
class SecretRow:
    id: SecretId
    tenant_id: str
    project_id: str
    instance_id: str
    name: str
    version: int
    origin: str
    sealed: bytes
    created_by: str
    created_at: int
