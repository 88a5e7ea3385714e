"""Credentials of a project: public keys for people; the private key, sealed, once for the controller with the claim."""

from __future__ import annotations

from ..call import call
from ..models import CredentialDetail, CredentialView, SealedCredentialView
from ..request import Page, Request, get, post

_ALL = "/v1/projects/{}/credentials"
_ONE = "/v1/projects/{}/credentials/{}"


class CredentialCalls:
    @call
    def list_credentials(
        self,
        project_id: str,
        *,
        revoked: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Page[CredentialView]]:
        return get(Page[CredentialView], _ALL, project_id, revoked=revoked, limit=limit, cursor=cursor)

    @call
    def get_credential(self, project_id: str, credential_id: str) -> Request[CredentialDetail]:
        """Get a credential with its versions, and which instance uses which version."""
        return get(CredentialDetail, _ONE, project_id, credential_id)

    @call
    def create_credential(self, project_id: str, *, name: str, kind: str | None = None) -> Request[CredentialDetail]:
        """Create a credential. The platform generates its key pair."""
        return post(CredentialDetail, _ALL, project_id, name=name, kind=kind)

    @call
    def import_credential(
        self, project_id: str, *, name: str, private_key: str, kind: str | None = None
    ) -> Request[CredentialDetail]:
        body = {"name": name, "private_key": private_key, "kind": kind}
        return post(CredentialDetail, f"{_ALL}/import", project_id, **body)

    @call
    def rotate_credential(
        self, project_id: str, credential_id: str, *, private_key: str | None = None, overlap_s: int | None = None
    ) -> Request[CredentialDetail]:
        """Create a new version of a credential beside the old one. The platform generates the key unless `private_key`
        is given."""
        body = {"private_key": private_key, "overlap_s": overlap_s}
        return post(CredentialDetail, f"{_ONE}/rotate", project_id, credential_id, **body)

    @call
    def complete_credential_rotation(self, project_id: str, credential_id: str) -> Request[CredentialDetail]:
        return post(CredentialDetail, f"{_ONE}/complete-rotation", project_id, credential_id)

    @call
    def revoke_credential(self, project_id: str, credential_id: str, *, reason: str) -> Request[CredentialDetail]:
        return post(CredentialDetail, f"{_ONE}/revoke", project_id, credential_id, reason=reason)

    @call
    def bind_credential(self, project_id: str, credential_id: str, *, instance_id: str) -> Request[CredentialDetail]:
        """Let the controller of this instance use the credential."""
        return post(CredentialDetail, f"{_ONE}/bind", project_id, credential_id, instance_id=instance_id)

    @call
    def unbind_credential(self, project_id: str, credential_id: str, *, instance_id: str) -> Request[CredentialDetail]:
        return post(CredentialDetail, f"{_ONE}/unbind", project_id, credential_id, instance_id=instance_id)

    @call
    def redeem_credential(
        self, project_id: str, operation_id: str, *, claim_epoch: int, name: str, version: int | None = None
    ) -> Request[SealedCredentialView]:
        """Request the private key of a credential, sealed to the caller's key, once per claim. `sealed.open_credential`
        opens it."""
        body = {"claim_epoch": claim_epoch, "name": name, "version": version}
        return post(
            SealedCredentialView, "/v1/projects/{}/operations/{}/credentials/redeem", project_id, operation_id, **body
        )
