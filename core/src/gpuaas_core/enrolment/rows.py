"""The dataclass for a row of the enrolments."""

from dataclasses import dataclass
from typing import NewType

from ..authz.ids import TenantId
from ..capacity.rows import NodeId
from ..kit.json_types import Json

EnrolmentId = NewType("EnrolmentId", str)


@dataclass(frozen=True)
class EnrolmentRow:
    id: EnrolmentId
    tenant_id: TenantId
    node_name: str
    node_id: NodeId | None
    labels: Json
    region: str
    sku: str
    pool: str | None
    expires_at: int
    used_by_node: NodeId | None
    used_fingerprint: str | None
    created_at: int
