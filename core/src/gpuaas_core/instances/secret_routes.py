"""HTTP in, HTTP out: runtime secrets. No answer here holds one in the clear."""

import contextlib
from typing import Any

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..custody.redemptions import AlreadyDelivered
from ..custody.secrets import secrets_of
from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page
from ..kit.problems import Problem
from ..kit.wire import Page
from . import reads, schemas, secrets

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["secrets"])


@router.get("/instances/{instance_id}/secrets", **needs("apps.secret.read", "project"))
async def list_secrets(
    call: Caller, project_id: str, instance_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[schemas.SecretView]:
    """Names and versions, never values."""

    def read(ctx: Context) -> Page[schemas.SecretView]:
        reads.instance_row(ctx.tx, project_id, instance_id)
        query = secrets_of(instance_id)
        return page(ctx, query, query.selected_columns.id, limit, cursor, schemas.SecretView.model_validate)

    return await call.read(read)


@router.post(
    "/instances/{instance_id}/secrets",
    status_code=201,
    response_model=schemas.SecretView,
    **needs("apps.secret.issue", "project"),
)
async def issue_secret(call: Caller, project_id: str, instance_id: str, body: schemas.IssueSecret) -> Response:
    """A new secret, or the next version of one: generated here, or provided."""

    def issue(ctx: Any) -> schemas.SecretView:
        return secrets.issue(ctx, call.vault, project_id, instance_id, body)

    return await call.write(issue, status=201)


@router.post(
    "/instances/{instance_id}/secrets/delete",
    response_model=schemas.SecretGoneView,
    **needs("apps.secret.issue", "project"),
)
async def delete_secret(call: Caller, project_id: str, instance_id: str, body: schemas.NameSecret) -> Response:
    """All versions of a name."""
    return await call.write(lambda ctx: secrets.remove(ctx, project_id, instance_id, body.name))


@router.post(
    "/operations/{operation_id}/secrets",
    status_code=201,
    response_model=schemas.SecretView,
    **needs("apps.secret.use", "project"),
)
async def issue_claimed_secret(call: Caller, project_id: str, operation_id: str, body: schemas.ClaimSecret) -> Response:
    """A generated secret for the instance of the claimed operation."""

    def issue(ctx: Any) -> schemas.SecretView:
        return secrets.issue_for_claim(ctx, call.vault, project_id, operation_id, body)

    return await call.write(issue, status=201)


@router.post(
    "/operations/{operation_id}/secrets/deliver",
    response_model=schemas.SealedSecretView,
    **needs("apps.secret.use", "project"),
)
async def deliver_secret(call: Caller, project_id: str, operation_id: str, body: schemas.AskSecret) -> Response:
    """Sealed to the caller's registered key, once per claim and version. Keep the Idempotency-Key: only with it a lost
    answer is told again. After a crash claim the operation again, or issue a new version."""

    def deliver(ctx: Any) -> schemas.SealedSecretView:
        return secrets.deliver(ctx, call.vault, project_id, operation_id, body)

    def note(ctx: Any) -> None:
        secrets.note_redelivery(ctx, project_id, operation_id, body)

    try:
        return await call.write(deliver)
    except AlreadyDelivered:
        with contextlib.suppress(Problem):  # the claim was lost meanwhile: the refusal stays what it is
            await call.write(note, repeats=False, audited=False)
        raise
