"""Machine access: valid certificates and the SSH authorities that sign them. For people; controllers use
controller.py."""

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
        """Request an SSH certificate for the host of a member. For five minutes it can open sessions, as an
        unprivileged user."""
        path = "/v1/projects/{}/instances/{}/members/{}/ssh-sessions"
        body: dict[str, object] = {"ssh_public_key": ssh_public_key, "source_addresses": source_addresses}
        return post(SshSessionView, path, project_id, instance_id, member_id, **body)

    @call
    def list_access_grants(
        self, project_id: str, *, revoked: bool | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[AccessGrantView]]:
        """List the valid SSH certificates; with `revoked` also revoked certificates that have not expired."""
        return get(Page[AccessGrantView], _GRANTS, project_id, revoked=revoked, limit=limit, cursor=cursor)

    @call
    def revoke_access_grant(self, project_id: str, grant_id: str, *, reason: str) -> Request[AccessGrantView]:
        """Revoke an SSH certificate. The host rejects the certificate and ends the sessions opened with it; `enforced`
        shows when that is done."""
        return post(AccessGrantView, f"{_GRANTS}/{{}}/revoke", project_id, grant_id, reason=reason)

    @call
    def list_ssh_authorities(self, tenant_id: str) -> Request[AuthoritiesView]:
        """Get the public keys of the SSH authorities, and the nodes that a rotation is waiting for."""
        return get(AuthoritiesView, _AUTHORITIES, tenant_id)

    @call
    def rotate_ssh_authority(self, tenant_id: str, *, purpose: str) -> Request[AuthoritiesView]:
        """Start the rotation of an SSH authority; the platform completes it."""
        return post(AuthoritiesView, f"{_AUTHORITIES}/rotate", tenant_id, purpose=purpose)

    @call
    def finish_ssh_authority_rotation(
        self, tenant_id: str, *, purpose: str, force: bool | None = None
    ) -> Request[AuthoritiesView]:
        """Advance a rotation to its next step now; with `force` even while nodes or accounts still use the old
        authority."""
        return post(AuthoritiesView, f"{_AUTHORITIES}/finish", tenant_id, purpose=purpose, force=force)
