"""Rows of sessions, keys and invitations, for other rooms. Each class has the columns of its table, in their order."""

from dataclasses import dataclass
from typing import NewType

from ..authz.ids import PrincipalId, ProjectId, TenantId
from ..iam.rows import HolderRow
from ..kit.json_types import Json

SessionId = NewType("SessionId", str)
KeyId = NewType("KeyId", str)
InvitationId = NewType("InvitationId", str)


@dataclass(frozen=True)
class KeyRow:
    id: KeyId
    principal_id: PrincipalId
    public_jwk: Json
    created_at: int
    last_used_at: int | None
    retired_at: int | None
    generation: int | None
    thumbprint: str | None
    expires_at: int | None
    origin: str | None
    superseded_by: KeyId | None


@dataclass(frozen=True)
class InvitationRow:
    id: InvitationId
    tenant_id: TenantId
    email: str
    name: str
    role: str | None
    project_id: ProjectId | None
    invited_by: PrincipalId
    expires_at: int
    accepted_by: PrincipalId | None
    revoked_at: int | None
    created_at: int


@dataclass(frozen=True)
class SessionRow:
    token_hash: str
    id: SessionId
    key_id: KeyId | None
    address: str | None
    principal_id: PrincipalId
    expires_at: int
    idle_until: int | None
    revoked_at: int | None
    created_at: int


@dataclass(frozen=True)
class SessionHolderRow(HolderRow):
    """The principal of a session with one of its role bindings (or none), and the expiry and key of the session."""

    expires_at: int
    idle_until: int | None
    revoked_at: int | None
    key_id: KeyId | None
