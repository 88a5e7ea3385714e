"""Nodes and allocations. Called by the lab and operators (enrolment) and by everybody who places something."""

from __future__ import annotations

from ..call import call
from ..models import AllocationView, EnrolmentView, NodeView
from ..request import Page, Request, get, post


class CapacityCalls:
    @call
    def create_enrolment(
        self,
        tenant_id: str,
        *,
        node_name: str,
        labels: dict[str, str] | None = None,
        region: str | None = None,
        sku: str | None = None,
    ) -> Request[EnrolmentView]:
        """A one-time token with which a host joins; it is shown here and never again."""
        said = {"node_name": node_name, "labels": labels or {}, "region": region, "sku": sku}
        return post(EnrolmentView, "/v1/tenants/{}/enrolments", tenant_id, **said)

    @call
    def list_nodes(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[NodeView]]:
        return get(Page[NodeView], "/v1/tenants/{}/nodes", tenant_id, limit=limit, cursor=cursor)

    @call
    def get_node(self, node_id: str) -> Request[NodeView]:
        return get(NodeView, "/v1/nodes/{}", node_id)

    @call
    def create_allocation(self, project_id: str, *, node_id: str, name: str | None = None) -> Request[AllocationView]:
        return post(AllocationView, "/v1/projects/{}/allocations", project_id, node_id=node_id, name=name)

    @call
    def list_allocations(
        self, project_id: str, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[AllocationView]]:
        path = "/v1/projects/{}/allocations"
        return get(Page[AllocationView], path, project_id, state=state, limit=limit, cursor=cursor)

    @call
    def get_allocation(self, project_id: str, allocation_id: str) -> Request[AllocationView]:
        return get(AllocationView, "/v1/projects/{}/allocations/{}", project_id, allocation_id)

    @call
    def release_allocation(self, project_id: str, allocation_id: str) -> Request[AllocationView]:
        return post(AllocationView, "/v1/projects/{}/allocations/{}/release", project_id, allocation_id)
