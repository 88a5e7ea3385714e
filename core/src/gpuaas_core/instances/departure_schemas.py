"""What a departure certificate looks like on the wire."""

from typing import Any

from pydantic import Field

from ..kit.wire import Moment, View


class DepartedHost(View):
    node_id: str
    name: str
    address: str
    allocation_id: str


class DepartedMember(View):
    id: str
    component_key: str
    ordinal: int


class DepartedInstance(View):
    id: str
    name: str
    app_slug: str
    version: str


class DepartureOperation(View):
    id: str
    kind: str
    requested_by: str
    requested_at: Moment
    controller: str | None
    correlation_id: str


class DepartureCheck(View):
    check: str
    ok: bool
    detail: str


class DepartureStatement(View):
    """What was proven, by whom, for whom. It never changes; its canonical JSON has the digest beside it."""

    format: int
    certificate_id: str
    issued_at: Moment
    org_id: str
    project_id: str
    host: DepartedHost
    instance: DepartedInstance
    members: list[DepartedMember]
    operation: DepartureOperation
    checks: list[DepartureCheck] = Field(description="what was looked at on the machine, each as the app says it")
    evidence: dict[str, Any] = Field(description="all that the app said of this machine")


class DepartureAccess(View):
    """What the platform knows of ways in that were opened for this departure, now."""

    open_grants: int = Field(description="certificates with which the machine can still be entered")
    grants_not_yet_refused: int = Field(description="taken back, but the machine has not said yet that it refuses them")


class DepartureCertificateView(View):
    id: str
    instance_id: str
    operation_id: str
    allocation_id: str
    node_id: str
    statement: DepartureStatement
    digest: str
    access: DepartureAccess
    issued_at: Moment
