"""HTTP routes for departure certificates and orphan records."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..http.call import Caller, needs
from ..http.lists import Cursor, Limit, page, page_together
from ..kit.wire import Page
from ..operations.schemas import Justified
from . import certificates, orphans
from .schemas import DepartureCertificateView, OrphanView
from .tables import departure_certificates
from .tables import orphans as orphan_table

router = APIRouter(prefix="/v1/projects/{project_id}", tags=["instances"])


@router.get("/departure-certificates", **needs("apps.instance.read", "project"))
async def list_departure_certificates(
    call: Caller,
    project_id: str,
    instance_id: Annotated[str | None, Query(max_length=40)] = None,
    operation_id: Annotated[str | None, Query(max_length=40)] = None,
    allocation_id: Annotated[str | None, Query(max_length=40)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[DepartureCertificateView]:
    """List departure certificates: the evidence for each machine that an instance or member left."""
    query = certificates.certificates_of(
        project_id, instance_id=instance_id, operation_id=operation_id, allocation_id=allocation_id
    )
    return await call.read(
        lambda ctx: page_together(
            ctx,
            query,
            departure_certificates.c.id,
            limit,
            cursor,
            lambda rows: certificates.certificate_views(ctx.tx, rows, ctx.now),
        )
    )


@router.get("/orphans", **needs("apps.orphan.read", "project"))
async def list_orphans(
    call: Caller, project_id: str, resolved: bool = False, limit: Limit = 50, cursor: Cursor = None
) -> Page[OrphanView]:
    """List the open orphan records: machines on which an abandoned teardown may have left something. With `resolved`,
    list the resolved records instead."""
    query = orphans.orphans_of(project_id, resolved=resolved)
    return await call.read(lambda ctx: page(ctx, query, orphan_table.c.id, limit, cursor, OrphanView.model_validate))


@router.post("/orphans/{orphan_id}/resolve", response_model=OrphanView, **needs("apps.orphan.resolve", "project"))
async def resolve_orphan(call: Caller, project_id: str, orphan_id: str, body: Justified) -> Response:
    """Resolve an orphan record: a person has inspected the machine. While the record is open, nothing new is placed on
    the machine."""
    return await call.write(lambda ctx: orphans.resolve(ctx, project_id, orphan_id, body.reason))
