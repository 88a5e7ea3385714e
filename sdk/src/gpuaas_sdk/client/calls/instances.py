"""Instances and their operations: deploy, read, change, decommission. Called by people and automation."""

from __future__ import annotations

from ..call import call
from ..models import (
    AcceptedView,
    CanceledBatchView,
    DepartureCertificateView,
    InstanceView,
    OperationView,
    OrphanView,
    PlannedView,
)
from ..request import JsonObject, Page, Request, at, get, post

_INSTANCE = "/v1/projects/{}/instances/{}"


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
        inputs: JsonObject | None = None,
        operator_id: str | None = None,
    ) -> Request[AcceptedView]:
        """Request an instance; the answer has the instance and its operation. Without a version the newest published
        one is deployed."""
        body = {"name": name, "app_slug": app_slug, "placement_intent": placement_intent, "topology": topology}
        more = {"version": version, "operating_mode": operating_mode, "inputs": inputs or {}, "validate_only": False}
        more["operator_id"] = operator_id
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
        inputs: JsonObject | None = None,
        operator_id: str | None = None,
    ) -> Request[PlannedView]:
        """Check a deploy without changing anything. The answer shows what would happen, and on which nodes."""
        body = {"name": name, "app_slug": app_slug, "placement_intent": placement_intent, "topology": topology}
        more = {"version": version, "operating_mode": operating_mode, "inputs": inputs or {}, "validate_only": True}
        more["operator_id"] = operator_id
        return post(PlannedView, "/v1/projects/{}/instances", project_id, **body, **more)

    @call
    def list_instances(
        self,
        project_id: str,
        *,
        deleted: bool | None = None,
        members: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[InstanceView]]:
        """List current instances; with `deleted` also deleted ones. `members` limits the members returned for each
        instance."""
        query = {"deleted": deleted, "members": members, "limit": limit, "cursor": cursor}
        return get(Page[InstanceView], "/v1/projects/{}/instances", project_id, **query)

    @call
    def get_instance(self, project_id: str, instance_id: str, *, members: int | None = None) -> Request[InstanceView]:
        """Get an instance. `members` limits the members in the answer (200 by default); `member_counts` counts all of
        them."""
        return get(InstanceView, "/v1/projects/{}/instances/{}", project_id, instance_id, members=members)

    @call
    def decommission(self, project_id: str, instance_id: str, *, reason: str | None = None) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_INSTANCE}/decommission", project_id, instance_id, reason=reason)

    @call
    def plan_decommission(self, project_id: str, instance_id: str) -> Request[PlannedView]:
        """Show what a decommission would tear down, and on which nodes; nothing is written."""
        return post(PlannedView, f"{_INSTANCE}/decommission", project_id, instance_id, validate_only=True)

    @call
    def stop_instance(self, project_id: str, instance_id: str, *, reason: str | None = None) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_INSTANCE}/stop", project_id, instance_id, reason=reason)

    @call
    def start_instance(self, project_id: str, instance_id: str, *, reason: str | None = None) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_INSTANCE}/start", project_id, instance_id, reason=reason)

    @call
    def restart_instance(
        self, project_id: str, instance_id: str, *, reason: str | None = None
    ) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_INSTANCE}/restart", project_id, instance_id, reason=reason)

    @call
    def rotate_instance_keys(
        self, project_id: str, instance_id: str, *, reason: str | None = None
    ) -> Request[AcceptedView]:
        """Rotate the secrets that the instance's members share. Running work is not interrupted."""
        return post(AcceptedView, f"{_INSTANCE}/rotate-keys", project_id, instance_id, reason=reason)

    @call
    def update_instance(
        self, project_id: str, instance_id: str, *, inputs: JsonObject, etag: str
    ) -> Request[AcceptedView]:
        """Replace all inputs of the instance. `etag` is that of the instance as you read it; the platform answers 412
        if the instance has changed since."""
        path = at(f"{_INSTANCE}/update", project_id, instance_id)
        return Request("POST", path, AcceptedView, body={"inputs": inputs}, headers={"If-Match": etag})

    @call
    def plan_update(self, project_id: str, instance_id: str, *, inputs: JsonObject) -> Request[PlannedView]:
        """Show each changed input and the effect of the change. Nothing is changed."""
        return post(PlannedView, f"{_INSTANCE}/update", project_id, instance_id, inputs=inputs, validate_only=True)

    @call
    def upgrade_instance(self, project_id: str, instance_id: str, *, version: str) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_INSTANCE}/upgrade", project_id, instance_id, version=version)

    @call
    def roll_back_instance(
        self, project_id: str, instance_id: str, *, reason: str | None = None
    ) -> Request[AcceptedView]:
        """Return the instance to the version before its last upgrade, also after a failed upgrade."""
        return post(AcceptedView, f"{_INSTANCE}/rollback", project_id, instance_id, reason=reason)

    @call
    def list_operations(
        self,
        project_id: str,
        *,
        instance_id: str | None = None,
        member_id: str | None = None,
        batch_id: str | None = None,
        status: str | None = None,
        history: bool | None = None,
        newest_first: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[OperationView]]:
        """List operations of the last 30 days; `history` selects ended (True) or current (False) ones."""
        query: dict[str, object] = {"instance_id": instance_id, "member_id": member_id, "batch_id": batch_id}
        query |= {"status": status, "history": history, "newest_first": newest_first, "limit": limit, "cursor": cursor}
        return get(Page[OperationView], "/v1/projects/{}/operations", project_id, **query)

    @call
    def get_operation(self, project_id: str, operation_id: str) -> Request[OperationView]:
        return get(OperationView, "/v1/projects/{}/operations/{}", project_id, operation_id)

    @call
    def retry_operation(
        self, project_id: str, operation_id: str, *, try_anyway: bool | None = None
    ) -> Request[AcceptedView]:
        """Create an operation that retries a failed one (`retry_of`). With `try_anyway` the app retries even after
        repeated failures, after which it would otherwise refuse."""
        where = "/v1/projects/{}/operations/{}/retry"
        return post(AcceptedView, where, project_id, operation_id, try_anyway=try_anyway)

    @call
    def cancel_operation(self, project_id: str, operation_id: str) -> Request[OperationView]:
        return post(OperationView, "/v1/projects/{}/operations/{}/cancel", project_id, operation_id)

    @call
    def cancel_batch(self, project_id: str, batch_id: str) -> Request[CanceledBatchView]:
        """Cancel every operation of the batch that has not ended."""
        return post(CanceledBatchView, "/v1/projects/{}/batches/{}/cancel", project_id, batch_id)

    @call
    def release_claim(self, project_id: str, operation_id: str, *, reason: str | None = None) -> Request[OperationView]:
        """Release a controller's claim on the operation, so that a controller can claim the operation again."""
        path = "/v1/projects/{}/operations/{}/release-claim"
        return post(OperationView, path, project_id, operation_id, reason=reason)

    @call
    def abandon_operation(self, project_id: str, operation_id: str, *, reason: str) -> Request[OperationView]:
        """Force an operation to end, although nothing proves what it did on the nodes. A teardown then counts as done
        and creates orphan records."""
        return post(OperationView, "/v1/projects/{}/operations/{}/abandon", project_id, operation_id, reason=reason)

    @call
    def list_departure_certificates(
        self,
        project_id: str,
        *,
        instance_id: str | None = None,
        operation_id: str | None = None,
        allocation_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[DepartureCertificateView]]:
        """List departure certificates: what was proven about nodes when instances and members left them."""
        query: dict[str, object] = {
            "instance_id": instance_id,
            "operation_id": operation_id,
            "allocation_id": allocation_id,
        }
        path = "/v1/projects/{}/departure-certificates"
        return get(Page[DepartureCertificateView], path, project_id, **query, limit=limit, cursor=cursor)

    @call
    def list_orphans(
        self,
        project_id: str,
        *,
        resolved: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[OrphanView]]:
        """List orphan records: nodes that may still have files or processes of an abandoned teardown."""
        query = {"resolved": resolved, "limit": limit, "cursor": cursor}
        return get(Page[OrphanView], "/v1/projects/{}/orphans", project_id, **query)

    @call
    def resolve_orphan(self, project_id: str, orphan_id: str, *, reason: str) -> Request[OrphanView]:
        return post(OrphanView, "/v1/projects/{}/orphans/{}/resolve", project_id, orphan_id, reason=reason)
