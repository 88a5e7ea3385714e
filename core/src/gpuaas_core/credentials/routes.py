"""HTTP routes for access credentials. No response contains a private key in plaintext."""

import contextlib
from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.problems import Problem
from ..kit.wire import Page
from . import schemas, service
from .deliveries import AlreadyDelivered
from .key_pairs import credentials_of
from .tables import credentials

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["credentials"])
Revoked = Annotated[bool, Query(description="also those that were revoked")]


@router.get("/credentials", **needs("custody.credential.read", "project"))
async def list_credentials(
    call: Caller, project_id: str, revoked: Revoked = False, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.CredentialView]:
    """List the credentials of the project, each with the public key of its newest version."""

    def read(ctx: Context) -> Page[schemas.CredentialView]:
        query = credentials_of(project_id, revoked=revoked)
        return page(ctx, query, credentials.c.id, limit, cursor, service.view)

    return await call.read(read)


@router.post(
    "/credentials",
    status_code=201,
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.create", "project"),
)
async def create_credential(call: Caller, project_id: str, body: schemas.CreateCredential) -> Response:
    """Create a credential with a key pair that the platform generates. Only the public key is ever returned."""

    def create(ctx: Context) -> schemas.CredentialDetail:
        return service.create(ctx, call.vault, project_id, body)

    return await call.write(
        create, status=201, location=lambda made: f"/v1/projects/{project_id}/credentials/{made.id}"
    )


@router.post(
    "/credentials/import",
    status_code=201,
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.create", "project"),
)
async def import_credential(call: Caller, project_id: str, body: schemas.ImportCredential) -> Response:
    """Create a credential from an existing private key, which is stored encrypted. The response has the public key."""

    def bring(ctx: Context) -> schemas.CredentialDetail:
        return service.bring(ctx, call.vault, project_id, body)

    return await call.write(bring, status=201, location=lambda made: f"/v1/projects/{project_id}/credentials/{made.id}")


# after "import", which this address would otherwise match as an id
@router.get("/credentials/{credential_id}", **needs("custody.credential.read", "project"))
async def get_credential(call: Caller, project_id: str, credential_id: str) -> schemas.CredentialDetail:
    """Get a credential with its versions, and the version that each instance uses."""
    return await call.read(lambda ctx: service.detail(ctx.tx, project_id, credential_id))


@router.post(
    "/credentials/{credential_id}/rotate",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.rotate", "project"),
)
async def rotate_credential(
    call: Caller, project_id: str, credential_id: str, body: schemas.RotateCredential
) -> Response:
    """Create a new version of the credential. The old version stays valid for the overlap period; `used_by` shows the
    instances that still use it."""

    def rotate(ctx: Context) -> schemas.CredentialDetail:
        return service.rotate(ctx, call.vault, project_id, credential_id, body)

    return await call.write(rotate)


@router.post(
    "/credentials/{credential_id}/complete-rotation",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.rotate", "project"),
)
async def complete_credential_rotation(call: Caller, project_id: str, credential_id: str) -> Response:
    """Complete the rotation before the overlap period ends: only the newest version stays valid."""
    return await call.write(lambda ctx: service.complete_rotation(ctx, project_id, credential_id))


@router.post(
    "/credentials/{credential_id}/revoke",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.revoke", "project"),
)
async def revoke_credential(
    call: Caller, project_id: str, credential_id: str, body: schemas.RevokeCredential
) -> Response:
    """Revoke a credential permanently: it is no longer delivered, and its private keys are deleted. Also remove its
    public key from your machines."""
    return await call.write(lambda ctx: service.revoke(ctx, project_id, credential_id, body))


@router.post(
    "/credentials/{credential_id}/bind",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.bind", "project"),
)
async def bind_credential(call: Caller, project_id: str, credential_id: str, body: schemas.NameInstance) -> Response:
    """Bind the credential to an instance, so that the instance's controller may request it."""
    return await call.write(lambda ctx: service.bind(ctx, project_id, credential_id, body))


@router.post(
    "/credentials/{credential_id}/unbind",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.bind", "project"),
)
async def unbind_credential(call: Caller, project_id: str, credential_id: str, body: schemas.NameInstance) -> Response:
    """Stop the controller of an instance from requesting the credential. The controller keeps the keys that were
    delivered already; rotate the credential to replace them."""
    return await call.write(lambda ctx: service.unbind(ctx, project_id, credential_id, body))


@router.post(
    "/operations/{operation_id}/credentials/redeem",
    response_model=schemas.SealedCredentialView,
    **needs("custody.credential.use", "project"),
)
async def redeem_credential(
    call: Caller, project_id: str, operation_id: str, body: schemas.RedeemCredential
) -> Response:
    """Deliver the private key of a credential, encrypted to the caller's registered key, once per claim, credential and
    version. If the response was lost, repeat the request with the same Idempotency-Key."""

    def redeem(ctx: Context) -> schemas.SealedCredentialView:
        return service.redeem(ctx, call.vault, project_id, operation_id, body)

    def note(ctx: Context) -> None:
        service.note_redelivery(ctx, project_id, operation_id, body)

    try:
        return await call.write(redeem)
    except AlreadyDelivered:
        with contextlib.suppress(Problem):  # if the claim was lost meanwhile, the first error is raised
            await call.write(note, repeats=False, audited=False)
        raise
