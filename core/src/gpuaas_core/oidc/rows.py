"""Rows of identity providers and sign-in attempts, with the columns of their tables, in their order."""

from dataclasses import dataclass
from typing import NewType

from ..authz.ids import PrincipalId, TenantId

ProviderId = NewType("ProviderId", str)


@dataclass(frozen=True)
class ProviderRow:
    id: ProviderId
    tenant_id: TenantId
    name: str
    issuer: str
    client_id: str
    sealed_secret: bytes | None
    email_domains: list[str]
    scopes: list[str]
    default_role: str | None
    created_by: PrincipalId
    created_at: int


@dataclass(frozen=True)
class AttemptRow:
    state_hash: str
    provider_id: ProviderId
    binder_hash: str
    cli_challenge: str | None
    cli_port: int | None
    used_at: int | None
    code_hash: str | None
    principal_id: PrincipalId | None
    expires_at: int
