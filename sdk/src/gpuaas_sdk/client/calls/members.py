"""The members of an instance: add several at once, and operate on each. Called by people and automation."""

from __future__ import annotations

from ..call import call
from ..models import AcceptedView, BatchView, MemberRemovedView, MemberView, PlannedView
from ..request import Page, Request, get, post

_MEMBERS = "/v1/projects/{}/instances/{}/members"
_MEMBER = "/v1/projects/{}/instances/{}/members/{}"


class MemberCalls:
    @call
    def list_members(
        self,
        project_id: str,
        instance_id: str,
        *,
        history: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[MemberView]]:
        """List the current members of an instance; with `history` the removed members."""
        query = {"history": history, "limit": limit, "cursor": cursor}
        return get(Page[MemberView], _MEMBERS, project_id, instance_id, **query)

    @call
    def get_member(self, project_id: str, instance_id: str, member_id: str) -> Request[MemberView]:
        return get(MemberView, _MEMBER, project_id, instance_id, member_id)

    @call
    def add_members(
        self, project_id: str, instance_id: str, *, component_key: str, allocation_ids: list[str]
    ) -> Request[BatchView]:
        """Add members to an instance: one operation per allocation, all under a common batch id."""
        body = {"component_key": component_key, "allocation_ids": allocation_ids}
        return post(BatchView, _MEMBERS, project_id, instance_id, **body)

    @call
    def plan_members(
        self, project_id: str, instance_id: str, *, component_key: str, allocation_ids: list[str]
    ) -> Request[PlannedView]:
        """Check whether the members could be added, without changing anything."""
        body = {"component_key": component_key, "allocation_ids": allocation_ids, "validate_only": True}
        return post(PlannedView, _MEMBERS, project_id, instance_id, **body)

    @call
    def drain_members(
        self,
        project_id: str,
        instance_id: str,
        *,
        member_ids: list[str],
        reason: str | None = None,
        deadline_s: int | None = None,
        at_deadline: str | None = None,
    ) -> Request[BatchView]:
        """Drain several members, with one operation each under a common batch id (see `cancel_batch`). Either all
        members are drained, or none."""
        body = {"member_ids": member_ids, "reason": reason, "deadline_s": deadline_s, "at_deadline": at_deadline}
        return post(BatchView, f"{_MEMBERS}/drain", project_id, instance_id, **body)

    @call
    def undrain_members(
        self, project_id: str, instance_id: str, *, member_ids: list[str], reason: str | None = None
    ) -> Request[BatchView]:
        path = f"{_MEMBERS}/undrain"
        return post(BatchView, path, project_id, instance_id, member_ids=member_ids, reason=reason)

    @call
    def restart_members(
        self, project_id: str, instance_id: str, *, member_ids: list[str], reason: str | None = None
    ) -> Request[BatchView]:
        path = f"{_MEMBERS}/restart"
        return post(BatchView, path, project_id, instance_id, member_ids=member_ids, reason=reason)

    @call
    def remove_members(
        self,
        project_id: str,
        instance_id: str,
        *,
        member_ids: list[str],
        reason: str | None = None,
        deadline_s: int | None = None,
        at_deadline: str | None = None,
    ) -> Request[BatchView]:
        """Remove several members. A member is removed only with evidence that its host is clean."""
        body = {"member_ids": member_ids, "reason": reason, "deadline_s": deadline_s, "at_deadline": at_deadline}
        return post(BatchView, f"{_MEMBERS}/remove", project_id, instance_id, **body)

    @call
    def drain_member(
        self,
        project_id: str,
        instance_id: str,
        member_id: str,
        *,
        reason: str | None = None,
        deadline_s: int | None = None,
        at_deadline: str | None = None,
    ) -> Request[AcceptedView]:
        """Start no new work on the member. `deadline_s` is how long the app waits for running work; `at_deadline` is
        what happens then: `give_back` (default) returns the member to service, `requeue` requeues the work."""
        body = {"reason": reason, "deadline_s": deadline_s, "at_deadline": at_deadline}
        return post(AcceptedView, f"{_MEMBER}/drain", project_id, instance_id, member_id, **body)

    @call
    def undrain_member(
        self, project_id: str, instance_id: str, member_id: str, *, reason: str | None = None
    ) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_MEMBER}/undrain", project_id, instance_id, member_id, reason=reason)

    @call
    def restart_member(
        self, project_id: str, instance_id: str, member_id: str, *, reason: str | None = None
    ) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_MEMBER}/restart", project_id, instance_id, member_id, reason=reason)

    @call
    def remove_member(
        self,
        project_id: str,
        instance_id: str,
        member_id: str,
        *,
        reason: str | None = None,
        deadline_s: int | None = None,
        at_deadline: str | None = None,
        host_is_gone: bool | None = None,
    ) -> Request[AcceptedView]:
        """Drain the member, then remove it. `host_is_gone` declares the member's host lost for good: the host is fenced
        instead of cleaned, and a reason is required."""
        body = {"reason": reason, "deadline_s": deadline_s, "at_deadline": at_deadline, "host_is_gone": host_is_gone}
        return post(AcceptedView, f"{_MEMBER}/remove", project_id, instance_id, member_id, **body)

    @call
    def plan_remove_member(self, project_id: str, instance_id: str, member_id: str) -> Request[PlannedView]:
        return post(PlannedView, f"{_MEMBER}/remove", project_id, instance_id, member_id, validate_only=True)

    @call
    def replace_member(
        self,
        project_id: str,
        instance_id: str,
        member_id: str,
        *,
        allocation_id: str,
        reason: str | None = None,
        deadline_s: int | None = None,
        at_deadline: str | None = None,
        host_is_gone: bool | None = None,
    ) -> Request[AcceptedView]:
        """Add a member on the new allocation, then drain and remove the old one, in one operation. With `host_is_gone`
        the old member is removed first, and its host is fenced instead of cleaned."""
        body = {"allocation_id": allocation_id, "reason": reason, "host_is_gone": host_is_gone}
        body |= {"deadline_s": deadline_s, "at_deadline": at_deadline}
        return post(AcceptedView, f"{_MEMBER}/replace", project_id, instance_id, member_id, **body)

    @call
    def retry_member(
        self, project_id: str, instance_id: str, member_id: str, *, try_anyway: bool | None = None
    ) -> Request[AcceptedView]:
        return post(AcceptedView, f"{_MEMBER}/retry", project_id, instance_id, member_id, try_anyway=try_anyway)

    @call
    def tombstone_member(
        self, project_id: str, instance_id: str, member_id: str, *, reason: str
    ) -> Request[MemberRemovedView]:
        """Count a failed member as removed, although nothing proves that its node is clean. The node gets an orphan
        record."""
        return post(MemberRemovedView, f"{_MEMBER}/tombstone", project_id, instance_id, member_id, reason=reason)
