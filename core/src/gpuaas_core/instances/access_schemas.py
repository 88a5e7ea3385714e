"""What is shown of access grants, and what is asked to take one back."""

from typing import Annotated

from pydantic import Field, StringConstraints

from ..kit.wire import Input, Keepable, Moment, View


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
    purpose: str = Field(description="`operation`, or `observation`: for a look between operations, without a claim")
    expires_at: Moment
    created_at: Moment
    revoked_at: Moment | None
    revoke_reason: str | None
    enforced: bool = Field(description="revoked, and its machine has said that nothing of it is left there")


class RevokeAccess(Input):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=400), Keepable]
