"""What is shown of access grants, what a person asks for to get onto a machine, and to take a certificate back."""

from typing import Annotated

from pydantic import Field, StringConstraints

from ..kit.wire import Input, Keepable, Moment, View
from .schemas import AskCertificate, GrantView


class AccessGrantView(View):
    """A certificate that was given, without the certificate."""

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
    purpose: str = Field(
        description="`operation`; `observation`: for a look between operations, without a claim; or `person`"
    )
    member_id: str | None = Field(description="of a person's: whose machine was asked for")
    expires_at: Moment = Field(description="it opens nothing after this")
    ends_at: Moment | None = Field(description="of a person's: when the last session it opened is over, at the latest")
    created_at: Moment
    revoked_at: Moment | None
    revoke_reason: str | None
    enforced: bool = Field(description="revoked, and its machine has said that nothing of it is left there")


class OpenSshSession(AskCertificate):
    """The public half of a key made for this one connection."""


class SshSessionView(GrantView):
    member_id: str
    ends_at: Moment = Field(description="the machine ends the session by then")


class RevokeAccess(Input):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=400), Keepable]
