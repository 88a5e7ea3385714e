"""HTTP routes for audit rows, and for the verification of the trail."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from ..http.call import Caller, needs
from ..kit.problems import Unavailable
from ..kit.wire import Moment, View
from . import audit_log
from .verify import verify

router = APIRouter(prefix="/v1", tags=["events and audit"])
Most = Annotated[int, Query(ge=1, le=1000)]


NAME = r"^[A-Za-z0-9._:-]{1,128}$"


KEY_START = r"^[a-z][a-z_.]{0,79}$"


class AuditView(View):
    sequence: int
    at: Moment
    actor_id: str
    actor_kind: str
    permission: str
    outcome: str
    reason: str
    project_id: str | None
    resource_id: str | None
    correlation_id: str
    trace_id: str
    via: str | None = Field(default=None, description="the delegation or break-glass that granted the permission")
    on_behalf_of: str | None = Field(default=None, description="who granted it")
    hash: str = Field(description="covers this row and the hash of the previous row")


class AuditList(View):
    items: list[AuditView]
    next_after: int


class AuditBreak(View):
    """The first place where the audit trail is broken."""

    sequence: int = Field(description="0 if the checkpoints themselves are invalid")
    sentence: str
    way_out: str


class AuditVerdict(View):
    ok: bool
    sentence: str
    rows: int = Field(description="number of valid rows; also the sequence of the last valid row")
    hash: str = Field(description="of the last valid row")
    checkpoints: int = Field(description="signed checkpoints that agree with the rows")
    anchored: int = Field(description="sequence of the newest of them: up to here nothing was removed or rewritten")
    anchored_at: Moment | None
    broken: AuditBreak | None


@router.get("/tenants/{tenant_id}/audit", **needs("ledger.audit.read", "tenant"))
async def list_audit(
    call: Caller,
    tenant_id: str,
    after: Annotated[int, Query(ge=0)] = 0,
    limit: Most = 200,
    actor: Annotated[str | None, Query(pattern=NAME, description="id of the actor")] = None,
    permission: Annotated[str | None, Query(pattern=KEY_START, description="prefix of the permission key")] = None,
    outcome: Annotated[Literal["allowed", "denied"] | None, Query()] = None,
    correlation_id: Annotated[str | None, Query(pattern=NAME)] = None,
    project: Annotated[str | None, Query(pattern=NAME, description="id of a project")] = None,
    before: Annotated[
        int | None, Query(ge=0, description="newest first, from before this sequence; 0: from the end of the trail")
    ] = None,
) -> AuditList:
    only = audit_log.Filter(actor, permission, outcome, correlation_id, project)
    if before is None:
        rows = await call.read(lambda ctx: audit_log.after(ctx.tx, tenant_id, after, limit=limit, only=only))
    else:
        rows = await call.read(lambda ctx: audit_log.before(ctx.tx, tenant_id, before, limit=limit, only=only))
    views = [AuditView.model_validate(row) for row in rows]
    return AuditList(items=views, next_after=views[-1].sequence if views else after)


@router.get("/tenants/{tenant_id}/audit/verify", **needs("ledger.audit.verify", "tenant"))
async def verify_audit(call: Caller, tenant_id: str) -> AuditVerdict:
    """Verify every row against the hash chain, and the chain against the signed checkpoints outside the database.

    A broken trail is not an error: the response then has `ok` false and describes the first break in `broken`.
    """
    db, checkpoints = call.platform.db, call.platform.checkpoints
    if checkpoints is None:
        raise Unavailable("This core keeps no audit checkpoints.")
    verdict = await asyncio.to_thread(verify, db.read_now, checkpoints, tenant_id)  # may take long
    return AuditVerdict.model_validate(verdict)
