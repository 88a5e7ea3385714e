"""Requests and responses of enrolment."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from ..capacity.schemas import Address, Facts
from ..kit.wire import Input, Slug, View, Whole
from ..machine_access.schemas import TrustView
from ..policy.schemas import Name


class CreateEnrolment(Input):
    node_name: Slug
    labels: dict[str, str] = Field(default_factory=dict, max_length=20)
    region: Name = Field("default", description="its region; policies allow and deny by this name")
    sku: Name = Field("unspecified", description="its kind; policies allow and deny by this name")
    pool: Slug | None = Field(None, description="the tenant's pool to join")


class EnrolmentView(View):
    id: str
    node_name: str
    token: str = Field(description="returned once to the caller; single use")
    expires_in: int
    enrol_url_path: str = "/v1/enrol"


class Invited(EnrolmentView):
    """An enrolment as it is stored, without the token."""

    token: str = ""


class Enrol(Input):
    token: Annotated[str, StringConstraints(min_length=20, max_length=200)] = Field(repr=False)
    public_jwk: dict[str, Any]
    ssh_host_public_key: Annotated[str, StringConstraints(max_length=1000)]
    address: Address | None = None
    ssh_port: Whole = Field(22, ge=1, le=65535)
    facts: Facts


class EnrolledView(View):
    node_id: str
    issuer: str
    trust: TrustView


class RenewIdentity(Input):
    client_assertion: Annotated[str, StringConstraints(max_length=4000)] = Field(
        repr=False, description="signed with the node's current key, even if it has expired"
    )
    public_jwk: dict[str, Any] = Field(description="the next key, already stored on the host's disk")
    machine_id: Annotated[str, StringConstraints(max_length=64)] = ""
    boot_id: Annotated[str, StringConstraints(max_length=64)] = ""


class IdentityView(View):
    node_id: str
    generation: int
    expires_in: int


class Readmit(Input):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=400)]
