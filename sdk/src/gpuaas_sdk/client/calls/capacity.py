"""Nodes and allocations. Called by the lab and operators to enrol nodes, and by everyone who places instances."""

from __future__ import annotations

from ..call import call
from ..models import AgentView, AllocationsView, AllocationView, EnrolmentView, NodeView
from ..request import Page, Request, at, get, given, post


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
        pool: str | None = None,
    ) -> Request[EnrolmentView]:
        """Create a one-time token with which a machine enrols as a node. The token is shown only in this answer."""
        fields = {"node_name": node_name, "labels": labels or {}, "region": region, "sku": sku, "pool": pool}
        return post(EnrolmentView, "/v1/tenants/{}/enrolments", tenant_id, **fields)

    @call
    def get_agent(self) -> Request[AgentView]:
        """Get the agent release that this platform serves to hosts: version, digests and the address of its
        installer."""
        return get(AgentView, "/v1/agent")

    @call
    def list_nodes(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[NodeView]]:
        return get(Page[NodeView], "/v1/tenants/{}/nodes", tenant_id, limit=limit, cursor=cursor)

    @call
    def get_node(self, node_id: str) -> Request[NodeView]:
        return get(NodeView, "/v1/nodes/{}", node_id)

    @call
    def cordon_node(self, node_id: str, *, reason: str | None = None) -> Request[NodeView]:
        """Accept no new allocations on the node. Running work stays."""
        return post(NodeView, "/v1/nodes/{}/cordon", node_id, reason=reason)

    @call
    def uncordon_node(self, node_id: str, *, reason: str | None = None) -> Request[NodeView]:
        return post(NodeView, "/v1/nodes/{}/uncordon", node_id, reason=reason)

    @call
    def drain_node(self, node_id: str, *, reason: str | None = None) -> Request[NodeView]:
        """Accept no new allocations on the node, and ask the projects to release the current ones."""
        return post(NodeView, "/v1/nodes/{}/drain", node_id, reason=reason)

    @call
    def retire_node(self, node_id: str, *, reason: str | None = None) -> Request[NodeView]:
        """Retire the node permanently: its tokens and keys stop working at once."""
        return post(NodeView, "/v1/nodes/{}/retire", node_id, reason=reason)

    @call
    def readmit_node(self, node_id: str, *, reason: str) -> Request[EnrolmentView]:
        """Create a one-time token with which the machine rejoins as the same node, with a new identity."""
        return post(EnrolmentView, "/v1/nodes/{}/readmit", node_id, reason=reason)

    @call
    def create_allocation(
        self,
        project_id: str,
        *,
        node_id: str,
        name: str | None = None,
        expires_in_s: int | None = None,
        lost_after_s: int | None = None,
        scheduler_type: str | None = None,
    ) -> Request[AllocationView]:
        terms = {"expires_in_s": expires_in_s, "lost_after_s": lost_after_s, "scheduler_type": scheduler_type}
        return post(AllocationView, "/v1/projects/{}/allocations", project_id, node_id=node_id, name=name, **terms)

    @call
    def request_allocations(
        self,
        project_id: str,
        *,
        count: int = 1,
        sku: str | None = None,
        region: str | None = None,
        pool: str | None = None,
        name: str | None = None,
        expires_in_s: int | None = None,
        lost_after_s: int | None = None,
        scheduler_type: str | None = None,
    ) -> Request[AllocationsView]:
        """Request nodes by SKU, region or pool; the platform chooses the nodes. Either all requested nodes are
        allocated, or none."""
        want = given(sku=sku, region=region, pool=pool, count=count)
        terms = {"expires_in_s": expires_in_s, "lost_after_s": lost_after_s, "scheduler_type": scheduler_type}
        return post(AllocationsView, "/v1/projects/{}/allocation-requests", project_id, want=want, name=name, **terms)

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

    @call
    def extend_allocation(
        self, project_id: str, allocation_id: str, *, expires_in_s: int | None
    ) -> Request[AllocationView]:
        """Change when the allocation's lease ends; None removes the end."""
        path = at("/v1/projects/{}/allocations/{}/extend", project_id, allocation_id)
        return Request("POST", path, AllocationView, body={"expires_in_s": expires_in_s})

    @call
    def list_tenant_allocations(
        self,
        tenant_id: str,
        *,
        project_id: str | None = None,
        region: str | None = None,
        sku: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[AllocationView]]:
        """List the allocations of all projects of a tenant."""
        return get(
            Page[AllocationView],
            "/v1/tenants/{}/allocations",
            tenant_id,
            project_id=project_id,
            region=region,
            sku=sku,
            state=state,
            limit=limit,
            cursor=cursor,
        )
