"""Deploying, looking, taking down, and the operations that do it. Called by people and automation."""

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
        """Ask for an instance; the answer holds it and the operation to watch. Newest published version by default."""
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
        """The same checks as deploy, nothing written: what would happen, and where."""
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
        """Current instances; with `deleted` those of the past too. `members`: at most so many inside each."""
        query = {"deleted": deleted, "members": members, "limit": limit, "cursor": cursor}
        return get(Page[InstanceView], "/v1/projects/{}/instances", project_id, **query)

    @call
    def get_instance(self, project_id: str, instance_id: str, *, members: int | None = None) -> Request[InstanceView]:
        """`members`: at most so many inside it (200 if left out); `member_counts` counts them all."""
        return get(InstanceView, "/v1/projects/{}/instances/{}", project_id, instance_id, members=members)

    @call
    def decommission(self, project_id: str, instance_id: str, *, reason: str | None = None) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_INSTANCE}/decommission", project_id, instance_id, reason=reason)

    @call
    def plan_decommission(self, project_id: str, instance_id: str) -> Request[PlannedView]:
        """What would be torn down, and where; nothing is written."""
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
        """Replace all inputs. `etag`: of the instance as it was read; 412 if it has changed since."""
        path = at(f"{_INSTANCE}/update", project_id, instance_id)
        return Request("POST", path, AcceptedView, body={"inputs": inputs}, headers={"If-Match": etag})

    @call
    def plan_update(self, project_id: str, instance_id: str, *, inputs: JsonObject) -> Request[PlannedView]:
        """Each changed input with what changing it does; nothing is written."""
        return post(PlannedView, f"{_INSTANCE}/update", project_id, instance_id, inputs=inputs, validate_only=True)

    @call
    def upgrade_instance(self, project_id: str, instance_id: str, *, version: str) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_INSTANCE}/upgrade", project_id, instance_id, version=version)

    @call
    def roll_back_instance(
        self, project_id: str, instance_id: str, *, reason: str | None = None
    ) -> Request[AcceptedView]:
        """To the version before the last upgrade, or out of an upgrade that failed."""
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
        """All of the last 30 days; `history` chooses those that have ended (True) or are under way (False)."""
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
        """A new operation that tries again (`retry_of` names the old one). `try_anyway`: even where the app would
        refuse after repeated failures, this one time."""
        where = "/v1/projects/{}/operations/{}/retry"
        return post(AcceptedView, where, project_id, operation_id, try_anyway=try_anyway)

    @call
    def cancel_operation(self, project_id: str, operation_id: str) -> Request[OperationView]:
        return post(OperationView, "/v1/projects/{}/operations/{}/cancel", project_id, operation_id)

    @call
    def cancel_batch(self, project_id: str, batch_id: str) -> Request[CanceledBatchView]:
        """Cancel every operation of the batch that is under way; those that have ended stay as they ended."""
        return post(CanceledBatchView, "/v1/projects/{}/batches/{}/cancel", project_id, batch_id)

    @call
    def release_claim(self, project_id: str, operation_id: str, *, reason: str | None = None) -> Request[OperationView]:
        """Release the claim of the controller that holds it; the work waits to be claimed again."""
        path = "/v1/projects/{}/operations/{}/release-claim"
        return post(OperationView, path, project_id, operation_id, reason=reason)

    @call
    def abandon_operation(self, project_id: str, operation_id: str, *, reason: str) -> Request[OperationView]:
        """Give up without evidence; a teardown counts as done and leaves orphan records."""
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
        """What was proven of machines when instances and members left them."""
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
        """What was given up and may be left on machines."""
        query = {"resolved": resolved, "limit": limit, "cursor": cursor}
        return get(Page[OrphanView], "/v1/projects/{}/orphans", project_id, **query)

    @call
    def resolve_orphan(self, project_id: str, orphan_id: str, *, reason: str) -> Request[OrphanView]:
        return post(OrphanView, "/v1/projects/{}/orphans/{}/resolve", project_id, orphan_id, reason=reason)
