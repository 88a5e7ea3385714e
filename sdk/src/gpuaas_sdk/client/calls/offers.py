"""Regions, SKUs, pools and quotas. Called by administrators and consoles."""

from __future__ import annotations

from ..call import call
from ..models import NodeView, PoolView, QuotaView, RegionView, SkuView
from ..request import Page, Request, at, get, post


class OfferCalls:
    @call
    def create_region(self, *, name: str, title: str) -> Request[RegionView]:
        return post(RegionView, "/v1/regions", name=name, title=title)

    @call
    def delete_region(self, *, name: str) -> Request[RegionView]:
        """Delete a region. It must not have nodes."""
        return post(RegionView, "/v1/regions/delete", name=name)

    @call
    def list_regions(self, *, limit: int | None = None, cursor: str | None = None) -> Request[Page[RegionView]]:
        return get(Page[RegionView], "/v1/regions", limit=limit, cursor=cursor)

    @call
    def create_sku(
        self,
        *,
        name: str,
        gpu_model: str,
        gpu_count: int,
        cpus: int,
        memory_mb: int,
        price_micros_per_hour: int,
        currency: str,
    ) -> Request[SkuView]:
        """Create a SKU. The price is in millionths of the currency."""
        size = {"gpu_model": gpu_model, "gpu_count": gpu_count, "cpus": cpus, "memory_mb": memory_mb}
        price = {"price_micros_per_hour": price_micros_per_hour, "currency": currency}
        return post(SkuView, "/v1/skus", name=name, **size, **price)

    @call
    def delete_sku(self, *, name: str) -> Request[SkuView]:
        """Delete a SKU. No node may have it."""
        return post(SkuView, "/v1/skus/delete", name=name)

    @call
    def list_skus(self, *, limit: int | None = None, cursor: str | None = None) -> Request[Page[SkuView]]:
        return get(Page[SkuView], "/v1/skus", limit=limit, cursor=cursor)

    @call
    def create_pool(self, tenant_id: str, *, name: str, title: str) -> Request[PoolView]:
        return post(PoolView, "/v1/tenants/{}/pools", tenant_id, name=name, title=title)

    @call
    def delete_pool(self, tenant_id: str, *, name: str) -> Request[PoolView]:
        """Delete an empty pool."""
        return post(PoolView, "/v1/tenants/{}/pools/delete", tenant_id, name=name)

    @call
    def list_pools(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[PoolView]]:
        return get(Page[PoolView], "/v1/tenants/{}/pools", tenant_id, limit=limit, cursor=cursor)

    @call
    def put_node_into_pool(self, node_id: str, *, pool: str | None) -> Request[NodeView]:
        """Move a node into a pool; None removes the node from its pool."""
        return Request("POST", at("/v1/nodes/{}/pool", node_id), NodeView, body={"pool": pool})

    @call
    def get_quota(self, project_id: str) -> Request[QuotaView]:
        return get(QuotaView, "/v1/projects/{}/quota", project_id)

    @call
    def set_quota(self, project_id: str, *, max_allocations: int | None, max_gpus: int | None) -> Request[QuotaView]:
        """Set the limits of a project; None means no limit."""
        body = {"max_allocations": max_allocations, "max_gpus": max_gpus}
        return Request("POST", at("/v1/projects/{}/quota", project_id), QuotaView, body=body)
