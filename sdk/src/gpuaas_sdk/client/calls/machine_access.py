"""Who can enter which machine now, and the SSH authorities behind it. For people; controllers ask in controller.py."""

from __future__ import annotations

from ..call import call
from ..models import AccessGrantView, AuthoritiesView, SshSessionView
from ..request import Page, Request, get, post

_GRANTS = "/v1/projects/{}/access-grants"
_AUTHORITIES = "/v1/tenants/{}/ssh-authorities"


class MachineAccessCalls:
    @call
    def open_ssh_session(
        self,
        project_id: str,
        instance_id: str,
        member_id: str,
        *,
        ssh_public_key: str,
        source_addresses: list[str] | None = None,
    ) -> Request[SshSessionView]:
        """A certificate for the machine of a member: opens for five minutes, as a user without rights there."""
        path = "/v1/projects/{}/instances/{}/members/{}/ssh-sessions"
        body: dict[str, object] = {"ssh_public_key": ssh_public_key, "source_addresses": source_addresses}
        return post(SshSessionView, path, project_id, instance_id, member_id, **body)

    @call
    def list_access_grants(
        self, project_id: str, *, revoked: bool | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[AccessGrantView]]:
        """Certificates that work now; with `revoked` also those that were taken back and have not expired."""
        return get(Page[AccessGrantView], _GRANTS, project_id, revoked=revoked, limit=limit, cursor=cursor)

    @call
    def revoke_access_grant(self, project_id: str, grant_id: str, *, reason: str) -> Request[AccessGrantView]:
        """Its host refuses it and ends its sessions; `enforced` says when that is done."""
        return post(AccessGrantView, f"{_GRANTS}/{{}}/revoke", project_id, grant_id, reason=reason)

    @call
    def list_ssh_authorities(self, tenant_id: str) -> Request[AuthoritiesView]:
        """Public halves, and who still waits for what."""
        return get(AuthoritiesView, _AUTHORITIES, tenant_id)

    @call
    def rotate_ssh_authority(self, tenant_id: str, *, purpose: str) -> Request[AuthoritiesView]:
        """Begins; the rest happens by itself."""
        return post(AuthoritiesView, f"{_AUTHORITIES}/rotate", tenant_id, purpose=purpose)

    @call
    def finish_ssh_authority_rotation(
        self, tenant_id: str, *, purpose: str, force: bool | None = None
    ) -> Request[AuthoritiesView]:
        """Do the next step now; with `force` also while hosts or accounts have not followed yet."""
        return post(AuthoritiesView, f"{_AUTHORITIES}/finish", tenant_id, purpose=purpose, force=force)
