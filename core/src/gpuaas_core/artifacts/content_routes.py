"""HTTP routes for the content of artifacts: upload to the core's own store, and download by the node of a delivery.

Content is streamed, never held in memory as a whole, and no transaction is open during a transfer.
"""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from io import BufferedReader
from typing import Annotated

from fastapi import APIRouter, Path, Response
from fastapi.responses import StreamingResponse

from ..authz.context import Context
from ..http.call import Call, Caller, Marks, Returns, needs
from ..kit.problems import BodyTooLarge, MalformedBody
from . import deliveries, schemas, uploads
from .errors import ContentWrong, UploadWrong
from .fetch import Reader
from .owners import owner_of
from .store import KEPT, Incoming

router = APIRouter(prefix="/v1", tags=["artifacts"])
OCTETS = "application/octet-stream"
PIECE = 1024 * 1024
WAIT_S = 10.0  # below the agent's timeout; after it the agent gets 503 and retries, and reading continues
PUSHES = re.compile(r"/v1/(tenants/[^/]+/)?artifact-store/[^/]+")  # the only bodies that may be large
_REST = re.compile(r"bytes=([0-9]{1,18})-")
Digest = Annotated[schemas.Sha256, Path(description="the SHA-256 of the content being pushed")]


class _Push(Marks, Returns):
    status_code: int


def _octets(key: str, scope: str = "platform") -> _Push:
    marks = needs(key, scope, keyed=False)  # pushing the same content twice is idempotent
    marks["openapi_extra"]["requestBody"] = {"required": True, "content": {OCTETS: {}}}
    return {**marks, "status_code": 201, "response_model": schemas.BlobView}


@router.put("/artifact-store/{sha256}", **_octets("artifacts.platform_artifact.create"))
async def push_platform_content(call: Caller, sha256: Digest) -> Response:
    return await _push(call, sha256)


@router.put("/tenants/{tenant_id}/artifact-store/{sha256}", **_octets("artifacts.tenant_artifact.create", "tenant"))
async def push_tenant_content(call: Caller, tenant_id: str, sha256: Digest) -> Response:
    """Upload content to the core's own store, up to the platform's size limit.
    Then register the content as an artifact."""
    return await _push(call, sha256)


@router.get(
    "/nodes/{node_id}/deliveries/{delivery_id}",
    response_class=Response,
    responses={
        200: {"description": "the content, with its digest verified", "content": {OCTETS: {}}},
        206: {"description": "the content from the offset in `Range`", "content": {OCTETS: {}}},
    },
    **needs("artifacts.delivery.fetch", "node"),
)
async def fetch_delivery(call: Caller, node_id: str, delivery_id: str) -> Response:
    """Download the content of a delivery. Called by the node's agent;
    `Range: bytes=N-` resumes an interrupted download."""
    delivery = await _ready(call, node_id, delivery_id)
    reader = call.platform.services.get(Reader)
    file = await reader.opened(delivery.wanted, delivery.place, wait_s=WAIT_S)
    try:
        call.now = call.platform.clock()
        await call.write(lambda ctx: deliveries.begin(ctx, call.vault, node_id, delivery_id), repeats=False)
    except BaseException:
        file.close()
        raise
    return _content(file, delivery.wanted.size, delivery.wanted.sha256, call.request.headers.get("range", ""))


async def _ready(call: Call, node_id: str, delivery_id: str) -> deliveries.Ready:
    """Check that the node may fetch the delivery, in a write transaction, because a refusal by policy is recorded."""
    result: list[deliveries.Ready] = []

    def check(ctx: Context) -> None:
        result[:] = [deliveries.ready(ctx, call.vault, node_id, delivery_id)]

    await call.write(check, repeats=False)
    return result[0]


async def _push(call: Call, sha256: str) -> Response:
    if call.request.headers.get("content-type", "").split(";")[0].strip().lower() != OCTETS:
        raise MalformedBody(
            f"Content must be sent as {OCTETS}.", way_out=f"Send the file itself with Content-Type: {OCTETS}."
        )
    reader = call.platform.services.get(Reader)
    bounds = reader.store.bounds
    announced = int(call.request.headers.get("content-length", "0")[:18] or 0)

    async def check_room(size: int) -> None:
        await call.read(lambda ctx: uploads.check_room(ctx.tx, owner_of(ctx.scope), sha256, size, bounds.quota))

    await check_room(announced)
    with reader.store.receiving(bounds.largest) as incoming:
        await _receive(call, incoming)
        if incoming.sha256 != sha256:
            raise UploadWrong(f"sha256:{incoming.sha256} was received ({incoming.size} bytes).")
        await check_room(incoming.size)
        await asyncio.to_thread(reader.store.keep, incoming, KEPT)
    return await call.write(
        lambda ctx: uploads.take(ctx, sha256, incoming.size, bounds.quota), status=201, repeats=False
    )


async def _receive(call: Call, incoming: Incoming) -> None:
    waiting: list[bytes] = []
    try:
        async for piece in call.request.stream():
            waiting.append(piece)
            if sum(map(len, waiting)) >= PIECE:
                await asyncio.to_thread(incoming.write, b"".join(waiting))
                waiting.clear()
        await asyncio.to_thread(incoming.write, b"".join(waiting))
    except ContentWrong as error:
        raise BodyTooLarge(error.detail, way_out="Ask the operator to raise GPUAAS_CORE_ARTIFACTS_LARGEST.") from error


def _content(file: BufferedReader, size: int, sha256: str, asked: str) -> Response:
    begin = int(match[1]) if (match := _REST.fullmatch(asked)) else 0
    begin = begin if begin < size else 0  # an unsatisfiable range is ignored, as the standard allows
    digest = base64.b64encode(bytes.fromhex(sha256)).decode()
    headers = {
        "Content-Length": str(size - begin),
        "ETag": f'"sha256:{sha256}"',
        "Accept-Ranges": "bytes",
        "Repr-Digest": f"sha-256=:{digest}:",
    }
    if begin:
        headers["Content-Range"] = f"bytes {begin}-{size - 1}/{size}"
    return StreamingResponse(_pieces(file, begin), 206 if begin else 200, headers, OCTETS)


async def _pieces(file: BufferedReader, begin: int) -> AsyncIterator[bytes]:
    try:
        file.seek(begin)
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
    finally:
        file.close()
