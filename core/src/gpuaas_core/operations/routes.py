"""HTTP routes for one operation: read, retry, cancel, release the claim, abandon."""

from collections.abc import Callable

from fastapi import APIRouter, Response

from ..http.call import Caller, Returns, needs
from ..http.etags import tagged
from ..kit.wire import View
from . import reads, recovery, schemas, views
from .places import Place, Within
from .wire import Models


def people_router(place: Place, models: Models, *, reads_with: str) -> APIRouter:
    """Build the routes with which people manage an operation, below a path prefix. `reads_with`: the permission key for
    reading an operation."""
    router = place.router("operations")
    one: Returns = {"response_model": models.operation}

    @router.get("/{operation_id}", **one, **place.needs(reads_with))
    async def get_operation(call: Caller, scope_id: Within, operation_id: str) -> Response:
        return tagged(
            await call.read(
                lambda ctx: views.operation_view(ctx.tx, reads.operation_row(ctx.tx, scope_id, operation_id))
            )
        )

    @router.post(
        "/{operation_id}/retry",
        status_code=202,
        response_model=models.accepted,
        **place.needs("apps.operation.retry"),
    )
    async def retry_operation(
        call: Caller, scope_id: Within, operation_id: str, body: schemas.Retry | None = None
    ) -> Response:
        """Retry an operation: queue a new operation with the same kind and parameters. The failed operation is not
        changed."""
        anyway = body is not None and body.try_anyway
        return await call.write(
            lambda ctx: recovery.retry(ctx, scope_id, operation_id, anyway=anyway),
            status=202,
            location=_where(scope_id),
        )

    @router.post("/{operation_id}/cancel", **one, **place.needs("apps.operation.cancel"))
    async def cancel_operation(call: Caller, scope_id: Within, operation_id: str) -> Response:
        return await call.write(lambda ctx: recovery.cancel(ctx, scope_id, operation_id))

    @router.post("/{operation_id}/release-claim", **one, **place.needs("apps.operation.release"))
    async def release_claim(
        call: Caller, scope_id: Within, operation_id: str, body: schemas.Because | None = None
    ) -> Response:
        """End the claim of a controller that does not return it: the claim epoch rises, and the operation is queued
        again."""
        reason = body.reason if body else None
        return await call.write(lambda ctx: recovery.release_claim(ctx, scope_id, operation_id, reason))

    @router.post("/{operation_id}/abandon", **one, **place.needs("apps.operation.abandon"))
    async def abandon_operation(call: Caller, scope_id: Within, operation_id: str, body: schemas.Justified) -> Response:
        """Force an operation to end, although nothing proves what it did on the machines. A teardown then counts as
        done, and each machine gets an orphan record."""
        return await call.write(lambda ctx: recovery.abandon(ctx, scope_id, operation_id, body.reason))

    return router


def batch_router(models: Models) -> APIRouter:
    router = APIRouter(prefix="/v1/projects/{project_id}/batches", tags=["operations"])

    @router.post(
        "/{batch_id}/cancel", response_model=models.canceled_batch, **needs("apps.operation.cancel", "project")
    )
    async def cancel_batch(call: Caller, project_id: str, batch_id: str) -> Response:
        """Cancel every operation of the batch that has not ended."""
        return await call.write(lambda ctx: recovery.cancel_batch(ctx, project_id, batch_id))

    return router


def _where(scope_id: str | None) -> Callable[[View], str]:
    """Return a function that builds the URL of the queued operation from the accepted view."""
    prefix = "/v1/operations" if scope_id is None else f"/v1/projects/{scope_id}/operations"
    return lambda view: f"{prefix}/{view.operation.id}"  # type: ignore[attr-defined] - each accepted view has one
