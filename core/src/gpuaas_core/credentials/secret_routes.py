"""HTTP routes for runtime secrets. No response contains a secret in plaintext."""

import contextlib

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.problems import Problem
from ..kit.wire import Page
from . import secret_schemas as schemas
from . import secrets
from .deliveries import AlreadyDelivered
from .owners import read_owner
from .secret_store import secrets_of
from .tables import runtime_secrets

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["secrets"])


@router.get("/instances/{instance_id}/secrets", **needs("apps.secret.read", "project"))
async def list_secrets(
    call: Caller, project_id: str, instance_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.SecretView]:
    """List the names and versions of the instance's secrets, never the values."""

    def read(ctx: Context) -> Page[schemas.SecretView]:
        read_owner(ctx.tx, project_id, instance_id)
        query = secrets_of(instance_id)
        return page(ctx, query, runtime_secrets.c.id, limit, cursor, schemas.SecretView.model_validate)

    return await call.read(read)


@router.post(
    "/instances/{instance_id}/secrets",
    status_code=201,
    response_model=schemas.SecretView,
    **needs("apps.secret.issue", "project"),
)
async def issue_secret(call: Caller, project_id: str, instance_id: str, body: schemas.IssueSecret) -> Response:
    """Create a secret of the instance, or its next version.
    The platform generates the value unless the request has one."""

    def issue(ctx: Context) -> schemas.SecretView:
        return secrets.issue(ctx, call.vault, project_id, instance_id, body)

    return await call.write(issue, status=201)


@router.post(
    "/instances/{instance_id}/secrets/delete",
    response_model=schemas.SecretGoneView,
    **needs("apps.secret.issue", "project"),
)
async def delete_secret(call: Caller, project_id: str, instance_id: str, body: schemas.NameSecret) -> Response:
    """Delete all versions of a secret."""
    return await call.write(lambda ctx: secrets.remove(ctx, project_id, instance_id, body.name))


@router.post(
    "/operations/{operation_id}/secrets",
    status_code=201,
    response_model=schemas.SecretView,
    **needs("apps.secret.use", "project"),
)
async def issue_claimed_secret(call: Caller, project_id: str, operation_id: str, body: schemas.ClaimSecret) -> Response:
    """Generate a secret for the instance of the claimed operation."""

    def issue(ctx: Context) -> schemas.SecretView:
        return secrets.issue_for_claim(ctx, call.vault, project_id, operation_id, body)

    return await call.write(issue, status=201)


@router.post(
    "/operations/{operation_id}/secrets/deliver",
    response_model=schemas.SealedSecretView,
    **needs("apps.secret.use", "project"),
)
async def deliver_secret(call: Caller, project_id: str, operation_id: str, body: schemas.AskSecret) -> Response:
    """Deliver a secret, encrypted to the caller's registered key, once per claim and version. If the response was lost,
    repeat the request with the same Idempotency-Key. After a crash, claim the operation again or issue a new
    version."""

    def deliver(ctx: Context) -> schemas.SealedSecretView:
        return secrets.deliver(ctx, call.vault, project_id, operation_id, body)

    def note(ctx: Context) -> None:
        secrets.note_redelivery(ctx, project_id, operation_id, body)

    try:
        return await call.write(deliver)
    except AlreadyDelivered:
        with contextlib.suppress(Problem):  # if the claim was lost meanwhile, the first error is raised
            await call.write(note, repeats=False, audited=False)
        raise
