"""Runtime secrets: names and versions for people, sealed values for the controller with the claim."""

from __future__ import annotations

from ..call import call
from ..models import SealedSecretView, SecretGoneView, SecretView
from ..request import Page, Request, get, post

_OF_INSTANCE = "/v1/projects/{}/instances/{}/secrets"
_OF_OPERATION = "/v1/projects/{}/operations/{}/secrets"


class SecretCalls:
    @call
    def list_secrets(
        self, project_id: str, instance_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[SecretView]]:
        """List names and versions of secrets, never values."""
        return get(Page[SecretView], _OF_INSTANCE, project_id, instance_id, limit=limit, cursor=cursor)

    @call
    def issue_secret(
        self,
        project_id: str,
        instance_id: str,
        *,
        name: str,
        value: str | None = None,
        length: int | None = None,
        alphabet: str | None = None,
    ) -> Request[SecretView]:
        """Create a secret or its next version. The platform generates the value unless one is given."""
        body = {"name": name, "value": value, "length": length, "alphabet": alphabet}
        return post(SecretView, _OF_INSTANCE, project_id, instance_id, **body)

    @call
    def delete_secret(self, project_id: str, instance_id: str, *, name: str) -> Request[SecretGoneView]:
        return post(SecretGoneView, f"{_OF_INSTANCE}/delete", project_id, instance_id, name=name)

    @call
    def issue_claimed_secret(
        self,
        project_id: str,
        operation_id: str,
        *,
        claim_epoch: int,
        name: str,
        length: int | None = None,
        alphabet: str | None = None,
    ) -> Request[SecretView]:
        """Generate a secret for the instance of the claimed operation."""
        body = {"claim_epoch": claim_epoch, "name": name, "length": length, "alphabet": alphabet}
        return post(SecretView, _OF_OPERATION, project_id, operation_id, **body)

    @call
    def deliver_secret(
        self, project_id: str, operation_id: str, *, claim_epoch: int, name: str, version: int | None = None
    ) -> Request[SealedSecretView]:
        """Request a secret, sealed to the caller's key, once per claim and version. `sealed.open_secret` opens it."""
        body = {"claim_epoch": claim_epoch, "name": name, "version": version}
        return post(SealedSecretView, f"{_OF_OPERATION}/deliver", project_id, operation_id, **body)
