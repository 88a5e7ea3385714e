"""Wire models of access credentials. A private key can be imported, but is never returned in plaintext."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..kit.wire import Id, Input, Moment, Slug, View, Whole
from ..operations.schemas import ClaimReport, Justified

PrivateKey = Annotated[str, StringConstraints(min_length=1, max_length=8192)]


class CreateCredential(Input):
    name: Slug
    kind: Literal["ssh_key"] = "ssh_key"


class ImportCredential(CreateCredential):
    private_key: PrivateKey = Field(
        repr=False, description="OpenSSH form, no passphrase; it is sealed and never shown again"
    )


class RotateCredential(Input):
    private_key: PrivateKey | None = Field(None, repr=False, description="made by the platform by default")
    overlap_s: Whole = Field(86_400, ge=60, le=30 * 86_400, description="how long the old version stays good")


class RevokeCredential(Justified):
    pass


class NameInstance(Input):
    instance_id: Id


class RedeemCredential(ClaimReport):
    name: Slug
    version: Whole | None = Field(None, ge=1, le=1_000_000, description="the newest one by default")


class CredentialVersionView(View):
    version: int
    origin: str
    algorithm: str
    public_key: str
    fingerprint: str
    created_by: str
    created_at: Moment
    retired_at: Moment | None


class UsedVersion(View):
    version: int
    last_used_at: Moment


class CredentialUse(View):
    """An instance that may request the credential (`bound`) or has received it,
    and the versions delivered to the instance."""

    instance_id: str
    instance_name: str
    bound: bool
    last_used_at: Moment | None
    behind: Annotated[bool, Field(description="what it was given last is not the newest version")]
    versions: list[UsedVersion]


class CredentialView(View):
    """A credential without its private keys."""

    id: str
    project_id: str
    name: str
    kind: str
    state: str
    version: int
    origin: str
    algorithm: str
    public_key: str
    fingerprint: str
    overlap_ends_at: Moment | None
    created_by: str
    created_at: Moment
    revoked_at: Moment | None
    revoke_reason: str | None
    available_actions: list[str]


class CredentialDetail(CredentialView):
    versions: list[CredentialVersionView]
    used_by: list[CredentialUse]


class SealedCredentialView(View):
    credential_id: str
    name: str
    version: int
    public_key: str
    sealed: Annotated[str, Field(description="a JWE for the caller's registered key; inside, a JWS of the platform")]
    expires_in_s: int
