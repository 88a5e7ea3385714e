"""Requests and responses of machine access."""

from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from ..kit.wire import Id, Input, Keepable, Moment, View, YesNo


class TaskKey(View):
    id: str
    public_key: str = Field(description="Ed25519, 32 bytes as base64")


class TrustView(View):
    """The trust configuration of a host: the principals that may log in as each user, and the host certificate."""

    generation: int
    user_ca_public_keys: list[str]
    principals: dict[str, list[str]]
    people: list[str] = Field(description="principals of people, who log in as an unprivileged user")
    host_certificate: str
    host_ca_public_key: str
    login_user: str
    task_keys: list[TaskKey] = Field(description="a task must be signed with one of these keys")
    revoked_serials: list[str] = Field(
        default_factory=list, description="serials of revoked certificates; their sessions are ended"
    )


class RotateAuthority(Input):
    purpose: Literal["user", "host"] = Field(description="user: signs logins; host: signs host keys")


class FinishRotation(RotateAuthority):
    force: YesNo = Field(False, description="take the next step even if it locks out nodes or grants")


class AuthorityView(View):
    purpose: str
    number: int
    state: str
    public_key: str
    fingerprint: str
    waits_for: list[str] = Field(description="nodes or grants that the next step would lock out; 100 at most")
    created_at: Moment
    activated_at: Moment | None
    retired_at: Moment | None


class AuthoritiesView(View):
    items: list[AuthorityView]


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


class AccessGrantView(View):
    """An access grant, without the certificate itself."""

    id: str
    serial: str
    operation_id: str
    claim_epoch: int
    allocation_id: str
    node_id: str
    node_name: str
    principal_id: str
    principal_name: str
    source_addresses: list[str]
    purpose: str = Field(description="`operation`; `observation`: between operations, without a claim; or `person`")
    expires_at: Moment = Field(description="it opens nothing after this")
    ends_at: Moment | None = Field(description="of a person's: when the last session it opened is over, at the latest")
    created_at: Moment
    revoked_at: Moment | None
    revoke_reason: str | None
    enforced: bool = Field(description="revoked, and its machine has confirmed it")


class RevokeAccess(Input):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=400), Keepable]
