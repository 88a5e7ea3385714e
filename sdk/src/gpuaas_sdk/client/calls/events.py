"""Reads events and the audit trail. Called by events.follow (to fill gaps) and `gpuaas events`."""

from __future__ import annotations

from ..call import call
from ..models import AuditList, AuditVerdict, EventList
from ..request import Request, get


class EventCalls:
    @call
    def list_tenant_events(
        self,
        tenant_id: str,
        *,
        after: str | None = None,
        limit: int | None = None,
        wait_s: int | None = None,
        subject: str | None = None,
    ) -> Request[EventList]:
        """List events after a sequence number or cursor, oldest first; with `wait_s` the call waits for the next
        event."""
        query = {"after": after, "limit": limit, "wait_s": wait_s, "subject": subject}
        return get(EventList, "/v1/tenants/{}/events", tenant_id, **query).within(30.0 + (wait_s or 0))

    @call
    def list_project_events(
        self,
        project_id: str,
        *,
        after: str | None = None,
        limit: int | None = None,
        wait_s: int | None = None,
        subject: str | None = None,
    ) -> Request[EventList]:
        """List events of a project, oldest first; with `subject` only those of one resource, e.g. an operation."""
        query = {"after": after, "limit": limit, "wait_s": wait_s, "subject": subject}
        return get(EventList, "/v1/projects/{}/events", project_id, **query).within(30.0 + (wait_s or 0))

    @call
    def list_audit(
        self,
        tenant_id: str,
        *,
        after: int | None = None,
        limit: int | None = None,
        actor: str | None = None,
        permission: str | None = None,
        outcome: str | None = None,
        correlation_id: str | None = None,
        project: str | None = None,
        before: int | None = None,
    ) -> Request[AuditList]:
        """List audit rows, oldest first: who did or tried what. Continue with `next_after`; `permission` matches the
        beginning of a key.

        With `before` the newest rows come first, starting before that sequence number; 0 starts at the end of the
        trail.
        """
        return get(
            AuditList,
            "/v1/tenants/{}/audit",
            tenant_id,
            after=after,
            limit=limit,
            actor=actor,
            permission=permission,
            outcome=outcome,
            correlation_id=correlation_id,
            project=project,
            before=before,
        )

    @call
    def verify_audit(self, tenant_id: str) -> Request[AuditVerdict]:
        """Verify the audit trail of a tenant. The call reads every row, so it may take a while."""
        return get(AuditVerdict, "/v1/tenants/{}/audit/verify", tenant_id).within(300.0)
