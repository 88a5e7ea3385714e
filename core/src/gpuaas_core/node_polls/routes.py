"""Route for the long poll of a node's agent, the only request that an idle node sends.

The poll is answered when the node's trust configuration has changed, a task is due, the node should renew its key, or
the wait has ended. An idle poll costs one read, which also verifies the node. The time of contact is noted in memory
and written later, together with the times of other nodes.
"""

from fastapi import APIRouter, Response

from ..http.call import Call, Poller, needs
from . import schemas, service

router = APIRouter(prefix="/v1/nodes/{node_id}", tags=["capacity"])


@router.post(
    "/poll",
    response_model=schemas.PollView,
    responses={204: {"description": "nothing new within `wait_s`"}},
    **needs("capacity.node.report", "node"),
)
async def poll_node(call: Poller, node_id: str, body: schemas.Poll) -> Response:
    """Wait for new trust configuration or a task, as the agent of a node (long poll). A poll counts as the node's
    heartbeat.

    Facts that the agent reports are recorded at once. No task is leased to an agent that has disconnected.
    """
    deadline = call.now + body.wait_s * 1000
    found = await call.read(lambda ctx: service.find(ctx, node_id, body))  # verifies the caller
    call.platform.contacts.note(node_id, (call.now, deadline))
    while True:
        if found.news:
            await call.write(lambda ctx: service.record(ctx, node_id, body), repeats=False, audited=False)
            found = await call.read(lambda ctx: service.find(ctx, node_id, body))
        if answer := await _answer(call, node_id, found):
            return answer
        left = (deadline - call.platform.clock()) / 1000
        if left > 0:
            await call.wait(f"node:{node_id}", left, due_at=found.look_again_at)
        if call.platform.clock() >= deadline or await call.request.is_disconnected():
            return Response(status_code=204)
        found = await call.read(lambda ctx: service.find(ctx, node_id, body))


async def _answer(call: Call, node_id: str, found: service.Found) -> Response | None:
    if found.task_waits and not found.trust_due:
        answer = await call.write(lambda ctx: service.lease(ctx, call.vault, node_id, found), repeats=False)
        if answer.status_code != 204:
            return answer
    if found.trust_due:
        trust = await call.read(lambda ctx: service.trust(ctx, call.vault, node_id))
        return _json(schemas.PollView(trust=trust, task=None, renew_identity=found.renew_identity))
    if found.renew_identity:
        return _json(schemas.PollView(trust=None, task=None, renew_identity=True))
    return Response(status_code=204) if found.task_ended else None


def _json(view: schemas.PollView) -> Response:
    return Response(view.model_dump_json(), media_type="application/json")
