"""The calls of a controller: claim an operation, send heartbeats, report, request machine access. Called by
gpuaas_sdk.controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..call import call
from ..models import (
    AllocationView,
    ClaimView,
    GrantView,
    LeaseView,
    MemberObservation,
    MemberReport,
    ObservedView,
    OperationView,
)
from ..request import JsonList, JsonObject, Request, at, given, post

HEARTBEAT_PATIENCE_S = 5.0


class ControllerCalls:
    @call
    def claim(
        self, project_id: str, *, app_slug: str, holder: str, wait_s: int = 20, holding: list[str] | None = None
    ) -> Request[ClaimView | None]:
        """Claim the next operation; None if there is none within the wait. `holding` lists the operations that this
        controller already runs."""
        body = {"app_slug": app_slug, "holder": holder, "wait_s": wait_s, "holding": holding or []}
        return Request(
            "POST",
            at("/v1/projects/{}/operations/claim", project_id),
            ClaimView,  # pyright: ignore[reportArgumentType] - 204 is read as None by the transport
            body=body,
            patience_s=wait_s + 10.0,
            retries=False,  # the loop asks again by itself; a claim whose answer was lost comes back at once
        )

    @call
    def heartbeat(self, project_id: str, operation_id: str, *, claim_epoch: int) -> Request[LeaseView]:
        path = at("/v1/projects/{}/operations/{}/heartbeat", project_id, operation_id)
        body = {"claim_epoch": claim_epoch}
        return Request("POST", path, LeaseView, body=body, patience_s=HEARTBEAT_PATIENCE_S, retries=False)

    @call
    def progress(
        self,
        project_id: str,
        operation_id: str,
        *,
        claim_epoch: int,
        phase: str,
        step: int,
        of: int,
        message: str,
        adapter_detail: JsonObject | None = None,
        members: Sequence[MemberReport] | None = None,
        health: Mapping[str, str] | None = None,
    ) -> Request[LeaseView]:
        """Report the current step of the operation. This also renews the lease of the claim."""
        body = {"claim_epoch": claim_epoch, "phase": phase, "step": step, "of": of, "message": message}
        more = {"adapter_detail": adapter_detail, "members": members, "health": health}
        return post(LeaseView, "/v1/projects/{}/operations/{}/progress", project_id, operation_id, **body, **more)

    @call
    def complete(
        self,
        project_id: str,
        operation_id: str,
        *,
        claim_epoch: int,
        members: Sequence[MemberReport],
        message: str | None = None,
        health: Mapping[str, str] | None = None,
        conditions: JsonList | None = None,
        access: JsonObject | None = None,
        runtime_version: str | None = None,
        adapter_detail: JsonObject | None = None,
        evidence: JsonObject | None = None,
    ) -> Request[OperationView]:
        body = {"claim_epoch": claim_epoch, "health": health, "members": members, "conditions": conditions}
        body |= {"message": message}
        more = {"access": access, "runtime_version": runtime_version, "adapter_detail": adapter_detail}
        path = "/v1/projects/{}/operations/{}/complete"
        return post(OperationView, path, project_id, operation_id, **body, **more, evidence=evidence)

    @call
    def fail(
        self,
        project_id: str,
        operation_id: str,
        *,
        claim_epoch: int,
        error: JsonObject,
        adapter_detail: JsonObject | None = None,
        members: Sequence[MemberReport] | None = None,
        undone: bool | None = None,
    ) -> Request[OperationView]:
        """Report that the operation failed. `undone` means that nothing was changed: the instance is as it was
        before."""
        body = given(
            claim_epoch=claim_epoch, error=error, adapter_detail=adapter_detail, members=members, undone=undone
        )
        return post(OperationView, "/v1/projects/{}/operations/{}/fail", project_id, operation_id, **body)

    @call
    def return_claim(
        self, project_id: str, operation_id: str, *, claim_epoch: int, retry_in_s: int, reason: str
    ) -> Request[OperationView]:
        """Return the operation to the queue. It cannot be claimed again before `retry_in_s` seconds have passed."""
        path = "/v1/projects/{}/operations/{}/return-claim"
        body = {"claim_epoch": claim_epoch, "retry_in_s": retry_in_s, "reason": reason}
        return post(OperationView, path, project_id, operation_id, **body)

    @call
    def note_integration(
        self, project_id: str, operation_id: str, *, claim_epoch: int, allocation_id: str, integration: JsonObject
    ) -> Request[AllocationView]:
        """Store the controller's own notes about an allocation, at most 4 KiB. Each write replaces the previous
        notes."""
        path = "/v1/projects/{}/operations/{}/integration"
        body = {"claim_epoch": claim_epoch, "allocation_id": allocation_id, "integration": integration}
        return post(AllocationView, path, project_id, operation_id, **body)

    @call
    def grant_access(
        self,
        project_id: str,
        operation_id: str,
        *,
        claim_epoch: int,
        allocation_id: str,
        ssh_public_key: str,
        source_addresses: list[str] | None = None,
    ) -> Request[GrantView]:
        """Request a certificate for one host of the operation. With `source_addresses` it works only from these
        addresses or networks, as the hosts see them."""
        path = "/v1/projects/{}/operations/{}/access-grants"
        body = {"claim_epoch": claim_epoch, "allocation_id": allocation_id, "ssh_public_key": ssh_public_key}
        return post(GrantView, path, project_id, operation_id, **body, source_addresses=source_addresses)

    @call
    def observe_instance(
        self,
        project_id: str,
        instance_id: str,
        *,
        last_operation_id: str,
        observed_generation: int,
        health: Mapping[str, str],
        conditions: JsonList | None = None,
        members: Sequence[MemberObservation] | None = None,
        access: JsonObject | None = None,
        runtime_version: str | None = None,
        adapter_detail: JsonObject | None = None,
    ) -> Request[ObservedView | None]:
        """Report an observation of a running instance between operations. Returns None if the observation contains
        nothing new."""
        body = {"last_operation_id": last_operation_id, "observed_generation": observed_generation, "health": health}
        more = {"conditions": conditions, "members": members, "access": access, "runtime_version": runtime_version}
        path = at("/v1/projects/{}/instances/{}/observation", project_id, instance_id)
        return Request(
            "POST",
            path,
            ObservedView,  # pyright: ignore[reportArgumentType] - 204 is read as None by the transport
            body=given(**body, **more, adapter_detail=adapter_detail),
        )

    @call
    def grant_observation_access(
        self,
        project_id: str,
        instance_id: str,
        *,
        allocation_id: str,
        ssh_public_key: str,
        source_addresses: list[str] | None = None,
    ) -> Request[GrantView]:
        """Request access to one host of a running instance without a claim. The access ends when an operation
        begins."""
        path = "/v1/projects/{}/instances/{}/observation/access-grants"
        body: dict[str, object] = {"allocation_id": allocation_id, "ssh_public_key": ssh_public_key}
        return post(GrantView, path, project_id, instance_id, **body, source_addresses=source_addresses)
