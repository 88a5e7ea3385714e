"""Wire models of departure certificates and orphan records."""

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
    """The statement of a departure certificate. It never changes; the certificate's `digest` is the SHA-256 of its
    canonical JSON."""

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
    evidence: dict[str, Any] = Field(description="the evidence that the app reported for this machine")


class DepartureAccess(View):
    """The access grants on the machine that have not ended yet, of the ended operation and of people."""

    open_grants: int = Field(description="certificates with which the machine can still be entered")
    grants_not_yet_refused: int = Field(description="revoked grants that the machine has not yet confirmed to reject")


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


class OrphanView(View):
    id: str
    instance_id: str
    member_id: str
    operation_id: str | None
    allocation_id: str
    node_id: str
    node_name: str
    address: str
    reason: str
    created_by: str
    created_at: Moment
    resolved_by: str | None
    resolved_at: Moment | None
    resolution: str | None
