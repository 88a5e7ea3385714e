"""Routes: nodes as people see them, and as they report themselves."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from ..authz.context import Context
from ..http.call import Caller, needs, public
from ..http.lists import Cursor, Limit, page
from ..identity.assertions import ISSUER
from ..identity.clone_detection import detect_clones
from ..kit.wire import Page
from . import node_admin, offers, readmission, reads, schemas, service
from .errors import EnrolmentTokenInvalid
from .tables import nodes
from .trust import knows_more, trust_of

router = APIRouter(prefix="/v1", tags=["capacity"])


@router.post(
    "/tenants/{tenant_id}/enrolments",
    status_code=201,
    response_model=schemas.EnrolmentView,
    **needs("capacity.enrolment.create", "tenant"),
)
async def create_enrolment(call: Caller, tenant_id: str, body: schemas.CreateEnrolment) -> Response:
    """Invite a node. The token is computed for this answer and stored nowhere."""

    return await _invite(call, lambda ctx: service.create_enrolment(ctx, call.vault, tenant_id, body))


async def _invite(call: Caller, invite: Callable[[Context], dict[str, Any]]) -> Response:
    def with_token(answer: dict[str, Any]) -> dict[str, Any]:
        return answer | {"token": service.enrolment_token(call.vault, answer["id"])}

    return await call.write(lambda ctx: _Invited.model_validate(invite(ctx)), status=201, finish=with_token)


class _Invited(schemas.EnrolmentView):
    token: str = ""


@router.post("/enrol", response_model=schemas.EnrolledView, **public())
async def enrol(call: Caller, body: schemas.Enrol) -> Response:
    """A machine enrols with its one-time token and its own new key."""
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
    """A node registers its next key, signed with the current one.

    The first use of the next key retires the current one.
    """
    return await detect_clones(call, call.write(lambda ctx: readmission.renew(ctx, call.vault, body), repeats=False))


@router.get(
    "/nodes/{node_id}/trust",
    response_model=schemas.TrustView,
    responses={204: {"description": "nothing newer than `after_generation`"}},
    **needs("capacity.node.report", "node"),
)
async def get_trust(
    call: Caller,
    node_id: str,
    after_generation: Annotated[int, Query(ge=0)] = 0,
    wait_s: Annotated[int, Query(ge=0, le=30)] = 0,
) -> Any:
    """Long poll: the node's trust, as soon as it is newer than what the node has."""
    deadline = call.now + wait_s * 1000
    while True:
        node = await call.read(lambda ctx: reads.node_row(ctx.tx, node_id))
        if knows_more(node, after_generation):
            catch_up = partial(service.catch_up, node_id=node_id, generation=after_generation)
            await call.write(catch_up, repeats=False, audited=False)
        if node.trust_generation > after_generation or knows_more(node, after_generation):
            return await call.read(lambda ctx: trust_of(ctx.tx, call.vault, reads.node_row(ctx.tx, node_id), ctx.now))
        left = (deadline - call.platform.clock()) / 1000
        if left <= 0 or await call.request.is_disconnected():
            return Response(status_code=204)
        await call.wait(f"node:{node_id}", left)


@router.post("/nodes/{node_id}/trust-applied", response_model=schemas.NodeView, **needs("capacity.node.report", "node"))
async def report_trust_applied(call: Caller, node_id: str, body: schemas.TrustApplied) -> Response:
    return await call.write(lambda ctx: _node(ctx, service.trust_applied(ctx, node_id, body.generation)))


@router.post(
    "/nodes/{node_id}/heartbeat", response_model=schemas.HeartbeatView, **needs("capacity.node.report", "node")
)
async def report_heartbeat(call: Caller, node_id: str, body: schemas.Heartbeat) -> Response:
    def beat(ctx: Context) -> schemas.HeartbeatView:
        due = service.heartbeat(ctx, node_id, body)
        return schemas.HeartbeatView(heartbeat_every_s=service.HEARTBEAT_S, renew_identity=due)

    return await call.write(beat, repeats=False, audited=False)


@router.get("/tenants/{tenant_id}/nodes", **needs("capacity.node.read", "tenant"))
async def list_nodes(call: Caller, tenant_id: str, limit: Limit = 50, cursor: Cursor = None) -> Page[schemas.NodeView]:
    query = reads.nodes_of(tenant_id)
    return await call.read(lambda ctx: page(ctx, query, nodes.c.id, limit, cursor, lambda row: _node(ctx, row)))


@router.get("/nodes/{node_id}", **needs("capacity.node.read", "node"))
async def get_node(call: Caller, node_id: str) -> schemas.NodeView:
    return await call.read(lambda ctx: _node(ctx, reads.node_row(ctx.tx, node_id)))


@router.post("/nodes/{node_id}/cordon", response_model=schemas.NodeView, **needs("capacity.node.cordon", "node"))
async def cordon_node(call: Caller, node_id: str, body: schemas.Decide) -> Response:
    """No new allocations; existing ones are not affected."""
    return await _decide(call, node_id, lambda ctx: node_admin.decide(ctx, node_id, "cordon", body.reason))


@router.post("/nodes/{node_id}/uncordon", response_model=schemas.NodeView, **needs("capacity.node.uncordon", "node"))
async def uncordon_node(call: Caller, node_id: str, body: schemas.Decide) -> Response:
    return await _decide(call, node_id, lambda ctx: node_admin.decide(ctx, node_id, "uncordon", body.reason))


@router.post("/nodes/{node_id}/drain", response_model=schemas.NodeView, **needs("capacity.node.drain", "node"))
async def drain_node(call: Caller, node_id: str, body: schemas.Decide) -> Response:
    """No new allocations; existing ones are to be released, so that the node can be retired."""
    return await _decide(call, node_id, lambda ctx: node_admin.decide(ctx, node_id, "drain", body.reason))


@router.post("/nodes/{node_id}/retire", response_model=schemas.NodeView, **needs("capacity.node.retire", "node"))
async def retire_node(call: Caller, node_id: str, body: schemas.Decide) -> Response:
    """Permanent: its tokens and keys stop working at once, and its name is free."""
    return await _decide(call, node_id, lambda ctx: node_admin.retire(ctx, node_id, body.reason))


@router.post(
    "/nodes/{node_id}/readmit",
    status_code=201,
    response_model=schemas.EnrolmentView,
    **needs("capacity.node.readmit", "node"),
)
async def readmit_node(call: Caller, node_id: str, body: schemas.Readmit) -> Response:
    """A one-time token with which the machine rejoins as the same node, with a new identity."""
    return await _invite(call, lambda ctx: service.readmit(ctx, node_id, body.reason))


@router.post("/nodes/{node_id}/pool", response_model=schemas.NodeView, **needs("capacity.pool.assign", "node"))
async def put_node_into_pool(call: Caller, node_id: str, body: schemas.PutIntoPool) -> Response:
    return await _decide(call, node_id, lambda ctx: offers.put_into_pool(ctx, node_id, body.pool))


async def _decide(call: Caller, node_id: str, act: Callable[[Context], None]) -> Response:
    def decide(ctx: Context) -> schemas.NodeView:
        act(ctx)
        return _node(ctx, reads.node_row(ctx.tx, node_id))

    return await call.write(decide)


def _node(ctx: Context, row: Any) -> schemas.NodeView:
    more = {"available_actions": node_admin.actions(ctx.tx, row)}
    return schemas.NodeView.model_validate(dict(row._mapping) | more)
