"""HTTP routes to invite a machine, enrol it as a node, renew the node's identity and readmit the node."""

from collections.abc import Callable

from fastapi import APIRouter, Response

from ..authz.context import Context
from ..http.call import Answer, Caller, needs, public
from ..identity.assertions import ISSUER
from ..identity.clone_detection import detect_clones
from ..kit.json_types import Json
from ..machine_access.host_trust import trust_of
from . import readmission, schemas, service
from .errors import EnrolmentTokenInvalid

router = APIRouter(prefix="/v1", tags=["capacity"])


@router.post(
    "/tenants/{tenant_id}/enrolments",
    status_code=201,
    response_model=schemas.EnrolmentView,
    **needs("capacity.enrolment.create", "tenant"),
)
async def create_enrolment(call: Caller, tenant_id: str, body: schemas.CreateEnrolment) -> Response:
    """Invite a machine to become a node. The one-time token is part of this response only; it is not stored."""

    return await _invite(call, lambda ctx: service.create_enrolment(ctx, call.vault, tenant_id, body))


async def _invite(call: Caller, invite: Callable[[Context], schemas.Invited]) -> Response:
    def with_token(answer: Answer) -> Json:
        return {**answer, "token": service.enrolment_token(call.vault, str(answer["id"]))}

    return await call.write(invite, status=201, finish=with_token)


@router.post("/enrol", response_model=schemas.EnrolledView, **public())
async def enrol(call: Caller, body: schemas.Enrol) -> Response:
    """Enrol a machine as a node, with a one-time token and the public key that the machine generated."""
    address = call.request.client.host if call.request.client else "0.0.0.0"  # noqa: S104 - only a fallback text

    def join(ctx: Context) -> schemas.EnrolledView:
        node = service.enrol(ctx, call.vault, body, address)
        return schemas.EnrolledView(node_id=node.id, issuer=ISSUER, trust=trust_of(ctx.tx, call.vault, node, ctx.now))

    try:
        return await call.write(join, repeats=False)
    except EnrolmentTokenInvalid as refused:
        if refused.reused:
            reused = refused
            await call.write(lambda ctx: readmission.emit_reuse(ctx, reused, address), repeats=False, audited=False)
        raise


@router.post("/renew-identity", response_model=schemas.IdentityView, **public())
async def renew_identity(call: Caller, body: schemas.RenewIdentity) -> Response:
    """Register the node's next key, in a request signed with the current key.

    The first use of the next key retires the current key.
    """
    return await detect_clones(call, call.write(lambda ctx: readmission.renew(ctx, call.vault, body), repeats=False))


@router.post(
    "/nodes/{node_id}/readmit",
    status_code=201,
    response_model=schemas.EnrolmentView,
    **needs("capacity.node.readmit", "node"),
)
async def readmit_node(call: Caller, node_id: str, body: schemas.Readmit) -> Response:
    """Create a one-time token with which the machine can rejoin as the same node, with a new identity."""
    return await _invite(call, lambda ctx: service.readmit(ctx, node_id, body.reason))
