"""HTTP routes for app controllers. Controllers of outside teams use the same routes, permissions and network."""

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..capacity.reads import allocation_view
from ..capacity.schemas import AllocationView
from ..http.call import Caller, needs
from ..machine_access.schemas import GrantView
from . import access, claims, reports, schemas
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
        """Long poll for an operation to claim: first one that this holder claimed before it crashed, then one whose
        lease expired, then the next in the queue, which is fair between tenants. Below a project, only operations of
        that project are claimed; otherwise any operation that the caller may work on.

        Nothing is claimed for a caller that has disconnected, because the operation would then wait until its lease
        expires.
        """
        deadline = call.now + body.wait_s * 1000
        topic = waits_at(scope_id) if scope_id is not None else waits_for_app(body.app_slug)
        while True:
            work_waits, due_at = await call.read(lambda ctx: claims.outlook(ctx, scope_id, body))
            if work_waits:
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
        """Return the claim of an operation: the operation is queued again."""
        return await call.write(lambda ctx: claims.return_claim(ctx, scope_id, operation_id, body))

    return router


access_router = APIRouter(prefix="/v1/projects/{project_id}/operations/{operation_id}")


@access_router.post(
    "/access-grants",
    status_code=201,
    response_model=GrantView,
    tags=["controllers"],
    **needs("apps.access.grant", "project"),
)
async def grant_access(call: Caller, project_id: str, operation_id: str, body: schemas.AskAccess) -> Response:
    """Issue an SSH certificate, valid for five minutes, for the machine of one allocation of the claimed operation's
    target."""

    def grant(ctx: Context) -> GrantView:
        return access.grant_access(ctx, call.vault, project_id, operation_id, body)

    return await call.write(grant, status=201)


@access_router.post("/integration", response_model=AllocationView, tags=["capacity"], **needs(WORKS, "project"))
async def note_integration(call: Caller, project_id: str, operation_id: str, body: schemas.NoteIntegration) -> Response:
    """Store the controller's notes about an allocation that the target of the claimed operation uses."""

    def note(ctx: Context) -> AllocationView:
        return allocation_view(ctx.tx, access.note_integration(ctx, project_id, operation_id, body))

    return await call.write(note)
