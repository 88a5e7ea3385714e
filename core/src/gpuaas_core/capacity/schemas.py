"""What capacity takes in and shows."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from ..kit.wire import Id, Input, Moment, Slug, View, Whole, said
from ..policy.schemas import Name

_ADDRESS = said(r"^[0-9a-fA-F:.]{3,45}$", "an IPv4 or IPv6 address")
Address = Annotated[str, StringConstraints(pattern=_ADDRESS)]


class CreateEnrolment(Input):
    node_name: Slug
    labels: dict[str, str] = Field(default_factory=dict, max_length=20)
    region: Name = Field("default", description="where it stands; policies allow and deny by this name")
    sku: Name = Field("unspecified", description="what kind of machine it is; policies allow and deny by this name")


class EnrolmentView(View):
    id: str
    node_name: str
    token: str = Field(description="shown to the caller who asked; single use")
    expires_in: int
    enrol_url_path: str = "/v1/enrol"


class Gpu(Input):
    path: Annotated[str, StringConstraints(max_length=120)]
    model: Annotated[str, StringConstraints(max_length=80)] = "gpu"


class Facts(Input):
    hostname: Annotated[str, StringConstraints(max_length=255)]
    cpus: Whole = Field(ge=1, le=4096)
    memory_mb: Whole = Field(ge=1)
    gpus: list[Gpu] = Field(default_factory=list, max_length=64)
    os: Annotated[str, StringConstraints(max_length=120)] = ""
    kernel: Annotated[str, StringConstraints(max_length=120)] = ""
    agent_version: Annotated[str, StringConstraints(max_length=40)] = ""
    machine_id: Annotated[str, StringConstraints(max_length=64)] = ""
    boot_id: Annotated[str, StringConstraints(max_length=64)] = ""


class Enrol(Input):
    token: Annotated[str, StringConstraints(min_length=20, max_length=200)] = Field(repr=False)
    public_jwk: dict[str, Any]
    ssh_host_public_key: Annotated[str, StringConstraints(max_length=1000)]
    address: Address | None = None
    ssh_port: Whole = Field(22, ge=1, le=65535)
    facts: Facts


class TrustView(View):
    """What the host must trust now: who may log in (principals per login user) and how it proves itself."""

    generation: int
    user_ca_public_keys: list[str]
    principals: dict[str, list[str]]
    host_certificate: str
    host_ca_public_key: str
    login_user: str


class EnrolledView(View):
    node_id: str
    issuer: str
    trust: TrustView


class TrustApplied(Input):
    generation: Whole = Field(ge=0)


class Heartbeat(Input):
    facts: Facts
    boot_id: Annotated[str, StringConstraints(max_length=64)] = ""


class HeartbeatView(View):
    heartbeat_every_s: int


class NodeView(View):
    id: str
    tenant_id: str
    name: str
    state: str
    address: str
    ssh_port: int
    labels: dict[str, Any]
    region: str
    sku: str
    facts: dict[str, Any]
    trust_generation: int
    trust_applied: int
    last_seen_at: Moment
    created_at: Moment


class CreateAllocation(Input):
    node_id: Id
    name: Slug | None = None


class UsedBy(View):
    instance_id: str
    instance_name: str


class AllocationView(View):
    id: str
    name: str
    project_id: str
    node_id: str
    node_name: str
    node_state: str
    address: str
    state: str
    scheduler_type: str | None
    region: str
    sku: str
    facts: dict[str, Any]
    in_use_by: UsedBy | None = None
    created_at: Moment
