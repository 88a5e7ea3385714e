"""HTTP routes for telemetry of controllers, and for the timeline of a correlation id."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from ..http.call import Caller, needs
from . import reads, schemas, service

router = APIRouter(prefix="/v1", tags=["triage"])
CorrelationId = Annotated[str, Path(max_length=128)]


@router.post(
    "/projects/{project_id}/telemetry",
    status_code=202,
    response_model=schemas.KeptView,
    **needs("ledger.telemetry.write", "project"),
)
async def send_telemetry(call: Caller, project_id: str, body: schemas.Telemetry) -> Response:
    """Store log lines and spans of a controller for a week; triage shows them. A repeated request stores duplicates."""
    return await call.write(lambda ctx: service.keep(ctx, body), status=202, repeats=False, audited=False)


@router.get("/triage/{correlation_id}", **needs("ledger.triage.read"))
async def read_triage(call: Caller, correlation_id: CorrelationId) -> schemas.TriageView:
    """Get the timeline of a correlation id with a verdict: what failed, why, and what to do. Entries that the caller
    may not see are left out."""
    return await call.read(lambda ctx: reads.timeline(ctx, correlation_id))
