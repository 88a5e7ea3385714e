"""Rows and types of teardown."""

from dataclasses import dataclass
from typing import NewType

from ..kit.json_types import Json

OrphanId = NewType("OrphanId", str)
CertificateId = NewType("CertificateId", str)


@dataclass(frozen=True)
class Leaver:
    """A member of an instance (or another part of it), and the machine that it leaves."""

    id: str
    component_key: str
    ordinal: int
    allocation_id: str
    node_id: str
    node_name: str
    address: str


@dataclass(frozen=True)
class OrphanRow:
    """An orphan record, with the name and address of the machine."""

    id: OrphanId
    tenant_id: str
    project_id: str
    instance_id: str
    member_id: str
    operation_id: str | None
    allocation_id: str
    node_id: str
    reason: str
    created_by: str
    created_at: int
    resolved_by: str | None
    resolved_at: int | None
    resolution: str | None
    node_name: str
    address: str


@dataclass(frozen=True)
class CertificateRow:
    id: CertificateId
    tenant_id: str
    project_id: str
    instance_id: str
    operation_id: str
    allocation_id: str
    node_id: str
    statement: Json
    digest: str
    issued_at: int
