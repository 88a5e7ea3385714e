"""HTTP in, HTTP out: access credentials. No answer here holds a private key in the clear."""

import contextlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..custody.credentials import credentials_of
from ..custody.redemptions import AlreadyDelivered
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.problems import Problem
from ..kit.wire import Page
from . import credential_schemas as schemas
from . import credentials

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["credentials"])
Revoked = Annotated[bool, Query(description="also those that were revoked")]


@router.get("/credentials", **needs("custody.credential.read", "project"))
async def list_credentials(
    call: Caller, project_id: str, revoked: Revoked = False, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.CredentialView]:
    """The public halves, each in its newest version."""

    def read(ctx: Context) -> Page[schemas.CredentialView]:
        query = credentials_of(project_id, revoked=revoked)
        return page(ctx, query, query.selected_columns.id, limit, cursor, credentials.view)

    return await call.read(read)


@router.post(
    "/credentials",
    status_code=201,
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.create", "project"),
)
async def create_credential(call: Caller, project_id: str, body: schemas.CreateCredential) -> Response:
    """A key pair made by the platform: only its public half is ever shown."""

    def create(ctx: Any) -> schemas.CredentialDetail:
        return credentials.create(ctx, call.vault, project_id, body)

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
    """A private key that exists: it is sealed, and the answer holds its public half."""

    def bring(ctx: Any) -> schemas.CredentialDetail:
        return credentials.bring(ctx, call.vault, project_id, body)

    return await call.write(bring, status=201, location=lambda made: f"/v1/projects/{project_id}/credentials/{made.id}")


# after "import", which would otherwise be the id of one to whoever asks for the methods
@router.get("/credentials/{credential_id}", **needs("custody.credential.read", "project"))
async def get_credential(call: Caller, project_id: str, credential_id: str) -> schemas.CredentialDetail:
    """Its versions, and who uses which."""
    return await call.read(lambda ctx: credentials.detail(ctx.tx, project_id, credential_id))


@router.post(
    "/credentials/{credential_id}/rotate",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.rotate", "project"),
)
async def rotate_credential(
    call: Caller, project_id: str, credential_id: str, body: schemas.RotateCredential
) -> Response:
    """A new version beside the old one; `used_by` says who still has the old one."""

    def rotate(ctx: Any) -> schemas.CredentialDetail:
        return credentials.rotate(ctx, call.vault, project_id, credential_id, body)

    return await call.write(rotate)


@router.post(
    "/credentials/{credential_id}/complete-rotation",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.rotate", "project"),
)
async def complete_credential_rotation(call: Caller, project_id: str, credential_id: str) -> Response:
    """Only the newest version is good from now on, before the overlap is over."""
    return await call.write(lambda ctx: credentials.complete_rotation(ctx, project_id, credential_id))


@router.post(
    "/credentials/{credential_id}/revoke",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.revoke", "project"),
)
async def revoke_credential(
    call: Caller, project_id: str, credential_id: str, body: schemas.RevokeCredential
) -> Response:
    """For good: nobody is given it any more, its private keys are gone. Take its public key off your machines too."""
    return await call.write(lambda ctx: credentials.revoke(ctx, project_id, credential_id, body))


@router.post(
    "/credentials/{credential_id}/bind",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.bind", "project"),
)
async def bind_credential(call: Caller, project_id: str, credential_id: str, body: schemas.NameInstance) -> Response:
    """The controller of this instance may use it."""
    return await call.write(lambda ctx: credentials.bind(ctx, project_id, credential_id, body))


@router.post(
    "/credentials/{credential_id}/unbind",
    response_model=schemas.CredentialDetail,
    **needs("custody.credential.bind", "project"),
)
async def unbind_credential(call: Caller, project_id: str, credential_id: str, body: schemas.NameInstance) -> Response:
    """The controller of this instance gets it no more. What it was given it has: rotate if that matters."""
    return await call.write(lambda ctx: credentials.unbind(ctx, project_id, credential_id, body))


@router.post(
    "/operations/{operation_id}/credentials/redeem",
    response_model=schemas.SealedCredentialView,
    **needs("custody.credential.use", "project"),
)
async def redeem_credential(
    call: Caller, project_id: str, operation_id: str, body: schemas.RedeemCredential
) -> Response:
    """Sealed to the caller's registered key, once per claim, credential and version. Keep the Idempotency-Key:
    only with it a lost answer is told again."""

    def redeem(ctx: Any) -> schemas.SealedCredentialView:
        return credentials.redeem(ctx, call.vault, project_id, operation_id, body)

    def note(ctx: Any) -> None:
        credentials.note_redelivery(ctx, project_id, operation_id, body)

    try:
        return await call.write(redeem)
    except AlreadyDelivered:
        with contextlib.suppress(Problem):  # the claim was lost meanwhile: the refusal stays what it is
            await call.write(note, repeats=False, audited=False)
        raise
