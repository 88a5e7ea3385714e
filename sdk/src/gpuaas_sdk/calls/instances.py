"""Deploying, looking, taking down, and the operations that do it. Called by people and automation."""

from __future__ import annotations

from typing import Any

from ..call import call
from ..models import AcceptedView, InstanceView, MemberView, OperationView, PlannedView
from ..request import Page, Request, get, post


class InstanceCalls:
    @call
    def deploy(
        self,
        project_id: str,
        *,
        name: str,
        app_slug: str,
        placement_intent: dict[str, list[str]],
        topology: str = "single_node",
        version: str | None = None,
        operating_mode: str | None = None,
        inputs: dict[str, Any] | None = None,
    ) -> Request[AcceptedView]:
        """Ask for an instance; the answer holds it and the operation to watch. Newest published version by default."""
        body = {"name": name, "app_slug": app_slug, "placement_intent": placement_intent, "topology": topology}
        more = {"version": version, "operating_mode": operating_mode, "inputs": inputs or {}, "validate_only": False}
        return post(AcceptedView, "/v1/projects/{}/instances", project_id, **body, **more)

    @call
    def plan(
        self,
        project_id: str,
        *,
        name: str,
        app_slug: str,
        placement_intent: dict[str, list[str]],
        topology: str = "single_node",
        version: str | None = None,
        operating_mode: str | None = None,
        inputs: dict[str, Any] | None = None,
    ) -> Request[PlannedView]:
        """The same checks as deploy, nothing written: what would happen, and where."""
        body = {"name": name, "app_slug": app_slug, "placement_intent": placement_intent, "topology": topology}
        more = {"version": version, "operating_mode": operating_mode, "inputs": inputs or {}, "validate_only": True}
        return post(PlannedView, "/v1/projects/{}/instances", project_id, **body, **more)

    @call
    def list_instances(
        self, project_id: str, *, deleted: bool | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[InstanceView]]:
        """Current instances; with `deleted` those of the past too."""
        query = {"deleted": deleted, "limit": limit, "cursor": cursor}
        return get(Page[InstanceView], "/v1/projects/{}/instances", project_id, **query)

    @call
    def get_instance(self, project_id: str, instance_id: str) -> Request[InstanceView]:
        return get(InstanceView, "/v1/projects/{}/instances/{}", project_id, instance_id)

    @call
    def list_members(self, project_id: str, instance_id: str) -> Request[Page[MemberView]]:
        return get(Page[MemberView], "/v1/projects/{}/instances/{}/members", project_id, instance_id)

    @call
    def decommission(self, project_id: str, instance_id: str, *, reason: str | None = None) -> Request[AcceptedView]:
        path = "/v1/projects/{}/instances/{}/decommission"
        return post(AcceptedView, path, project_id, instance_id, reason=reason)

    @call
    def list_operations(
        self,
        project_id: str,
        *,
        instance_id: str | None = None,
        status: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[OperationView]]:
        query = {"instance_id": instance_id, "status": status, "limit": limit, "cursor": cursor}
        return get(Page[OperationView], "/v1/projects/{}/operations", project_id, **query)

    @call
    def get_operation(self, project_id: str, operation_id: str) -> Request[OperationView]:
        return get(OperationView, "/v1/projects/{}/operations/{}", project_id, operation_id)

    @call
    def retry_operation(self, project_id: str, operation_id: str) -> Request[AcceptedView]:
        """A new operation that tries again (`retry_of` names the old one)."""
        return post(AcceptedView, "/v1/projects/{}/operations/{}/retry", project_id, operation_id)

    @call
    def cancel_operation(self, project_id: str, operation_id: str) -> Request[OperationView]:
        return post(OperationView, "/v1/projects/{}/operations/{}/cancel", project_id, operation_id)
