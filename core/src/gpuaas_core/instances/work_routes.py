"""HTTP in, HTTP out: what app controllers call. Same API, same keys, same network as any outside team's controller."""

from typing import Any

from fastapi import APIRouter, Response

from ..edge.call import Caller, needs
from . import claims, schemas

router = APIRouter(prefix="/v1/projects/{project_id}/operations", tags=["controllers"])
_WORK = needs("apps.operation.work", "project")


@router.post(
    "/claim",
    response_model=schemas.ClaimView,
    responses={204: {"description": "no work within `wait_s`"}},
    **_WORK,
)
async def claim_operation(call: Caller, project_id: str, body: schemas.Claim) -> Response:
    """Long poll for work: the oldest operation that waits, whose lease is over, or that this holder left behind.

    Nothing is claimed for a caller who has hung up meanwhile: it would wait for a lease that nobody keeps.
    """
    deadline = call.now + body.wait_s * 1000
    while True:
        if await call.read(lambda ctx: claims.work_waits(ctx, project_id, body)):
            answer = await call.write(lambda ctx: claims.claim(ctx, project_id, body))
            if answer.status_code != 204:
                return answer
        left = (deadline - call.platform.clock()) / 1000
        if left > 0:
            await call.wait(f"work:{project_id}", left)
        if left <= 0 or await call.request.is_disconnected():
            return Response(status_code=204)


@router.post("/{operation_id}/heartbeat", response_model=schemas.LeaseView, **_WORK)
async def heartbeat(call: Caller, project_id: str, operation_id: str, body: schemas.ClaimReport) -> Response:
    return await call.write(
        lambda ctx: claims.heartbeat(ctx, project_id, operation_id, body), repeats=False, audited=False
    )


@router.post("/{operation_id}/progress", response_model=schemas.LeaseView, **_WORK)
async def report_progress(call: Caller, project_id: str, operation_id: str, body: schemas.Progress) -> Response:
    return await call.write(lambda ctx: claims.progress(ctx, project_id, operation_id, body))


@router.post("/{operation_id}/complete", response_model=schemas.OperationView, **_WORK)
async def complete_operation(call: Caller, project_id: str, operation_id: str, body: schemas.Complete) -> Response:
    return await call.write(lambda ctx: claims.complete(ctx, project_id, operation_id, body))


@router.post("/{operation_id}/fail", response_model=schemas.OperationView, **_WORK)
async def fail_operation(call: Caller, project_id: str, operation_id: str, body: schemas.Fail) -> Response:
    return await call.write(lambda ctx: claims.fail(ctx, project_id, operation_id, body))


@router.post("/{operation_id}/release-claim", response_model=schemas.OperationView, **_WORK)
async def release_claim(call: Caller, project_id: str, operation_id: str, body: schemas.ReleaseClaim) -> Response:
    return await call.write(lambda ctx: claims.release(ctx, project_id, operation_id, body))


@router.post(
    "/{operation_id}/access-grants",
    status_code=201,
    response_model=schemas.GrantView,
    **needs("apps.access.grant", "project"),
)
async def grant_access(call: Caller, project_id: str, operation_id: str, body: schemas.AskAccess) -> Response:
    """A five-minute SSH certificate for one allocation of the claimed operation."""

    def grant(ctx: Any) -> schemas.GrantView:
        return claims.grant_access(ctx, call.vault, project_id, operation_id, body)

    return await call.write(grant, status=201)
