"""HTTP in, HTTP out: what app controllers call. Same API, same keys, same network as any outside team's controller."""

from fastapi import APIRouter, Response

from ..http.call import Caller, needs
from . import claims, reports, schemas
from .places import Place, Within, takes
from .queue import waits_at, waits_for_app
from .wire import Models

WORKS = claims.WORKS
LOCKED_MS = 500  # work was there, and its target locked by another transaction: try again after this time


def controller_router(place: Place, models: Models) -> APIRouter:
    router = place.router("controllers")
    work = place.needs(WORKS)

    @router.post(
        "/claim",
        response_model=models.claim,
        responses={204: {"description": "no work within `wait_s`"}},
        **needs(WORKS, place.claims_at),
    )
    async def claim_operation(call: Caller, scope_id: Within, body: schemas.Claim) -> Response:
        """Long poll for an operation to work on: first one that this holder claimed before it crashed, then one whose
        lease expired, then the next in the queue, which is fair between tenants. Below a project only operations of
        that project; otherwise all that the caller may work on.

        Nothing is claimed for a caller that has disconnected: its lease would have to expire first.
        """
        deadline = call.now + body.wait_s * 1000
        topic = waits_at(scope_id) if scope_id is not None else waits_for_app(body.app_slug)
        while True:
            due_at = await call.read(lambda ctx: claims.next_due(ctx, scope_id, body))
            if await call.read(lambda ctx: claims.work_waits(ctx, scope_id, body)):
                answer = await call.write(lambda ctx: claims.claim(ctx, scope_id, body))
                if answer.status_code != 204:
                    return answer
                due_at = call.platform.clock() + LOCKED_MS
            left = (deadline - call.platform.clock()) / 1000
            if left > 0:
                await call.wait(topic, left, due_at=due_at)
            if left <= 0 or await call.request.is_disconnected():
                return Response(status_code=204)

    @router.post("/{operation_id}/heartbeat", response_model=schemas.LeaseView, **work)
    async def heartbeat(call: Caller, scope_id: Within, operation_id: str, body: schemas.ClaimReport) -> Response:
        return await call.write(
            lambda ctx: claims.heartbeat(ctx, scope_id, operation_id, body), repeats=False, audited=False
        )

    @router.post("/{operation_id}/progress", response_model=schemas.LeaseView, **work)
    @takes(models.progress)
    async def report_progress(call: Caller, scope_id: Within, operation_id: str, body: schemas.Progress) -> Response:
        return await call.write(lambda ctx: reports.progress(ctx, scope_id, operation_id, body))

    @router.post("/{operation_id}/complete", response_model=models.operation, **work)
    @takes(models.complete)
    async def complete_operation(call: Caller, scope_id: Within, operation_id: str, body: schemas.Complete) -> Response:
        return await call.write(lambda ctx: reports.complete(ctx, scope_id, operation_id, body))

    @router.post("/{operation_id}/fail", response_model=models.operation, **work)
    @takes(models.fail)
    async def fail_operation(call: Caller, scope_id: Within, operation_id: str, body: schemas.Fail) -> Response:
        return await call.write(lambda ctx: reports.fail(ctx, scope_id, operation_id, body))

    @router.post("/{operation_id}/return-claim", response_model=models.operation, **work)
    async def return_claim(call: Caller, scope_id: Within, operation_id: str, body: schemas.ReturnClaim) -> Response:
        """The controller gives its claim back: the operation waits again."""
        return await call.write(lambda ctx: claims.return_claim(ctx, scope_id, operation_id, body))

    return router
