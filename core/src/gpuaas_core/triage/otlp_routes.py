"""HTTP routes that receive telemetry from any OTLP exporter. The exporter's endpoint is
`…/v1/projects/{project_id}/otlp`, with a bearer token."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Response
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from ..authz.context import Context
from ..http.call import Call, Caller, Marks, needs
from . import otlp_rows, otlp_wire, service
from .otlp_rows import Received
from .rows import NewLine, NewSpan

router = APIRouter(prefix="/v1/projects/{project_id}/otlp/v1", tags=["triage"])
M = TypeVar("M", bound=Message)
R = TypeVar("R", NewLine, NewSpan)


class _Accepts(Marks):
    responses: dict[int | str, dict[str, Any]]
    response_class: type[Response]


def _accepts(signal: otlp_wire.Signal[M]) -> _Accepts:
    """Return the route options that describe an OTLP body in OpenAPI. The framework does not parse this body."""
    name = signal.request.DESCRIPTOR.name
    answer = {"description": f"{signal.response.DESCRIPTOR.name}: the number of rejected items and why, or empty"}
    kinds = {otlp_wire.PROTOBUF: {}, otlp_wire.JSON: {"schema": {"type": "object", "title": name}}}
    needed = needs("ledger.telemetry.write", "project", keyed=False)["openapi_extra"]
    body = {"required": True, "description": f"OTLP {name}", "content": kinds}
    content = {otlp_wire.PROTOBUF: {}, otlp_wire.JSON: {"schema": {"type": "object"}}}
    return {
        "openapi_extra": needed | {"requestBody": body},
        "responses": {200: answer | {"content": content}},
        "response_class": Response,
    }


@router.post("/traces", **_accepts(otlp_wire.TRACES))
async def receive_traces(call: Caller, project_id: str) -> Response:
    """Receive spans from any OpenTelemetry SDK or collector.

    Triage shows spans with a `gpuaas.correlation_id` attribute, and the other spans of the same trace.
    """
    return await _receive(call, otlp_wire.TRACES, otlp_rows.spans_of, service.keep_spans)


@router.post("/logs", **_accepts(otlp_wire.LOGS))
async def receive_logs(call: Caller, project_id: str) -> Response:
    """Receive log records from any OpenTelemetry SDK or collector."""

    def lines(request: ExportLogsServiceRequest) -> Received[NewLine]:
        return otlp_rows.lines_of(request, call.now)

    return await _receive(call, otlp_wire.LOGS, lines, service.keep_lines)


async def _receive(
    call: Call,
    signal: otlp_wire.Signal[M],
    rows_of: Callable[[M], Received[R]],
    keep: Callable[[Context, list[R]], None],
) -> Response:
    """Parse the body in a thread, because a full batch takes long; store the rows in one transaction, and answer in the
    encoding of the request."""
    headers = call.request.headers
    kind, encoding = headers.get("content-type", ""), headers.get("content-encoding", "")
    body = await call.request.body()

    def read() -> Received[R]:
        return rows_of(otlp_wire.decode(signal, body, kind, encoding))

    received = await asyncio.to_thread(read)
    await call.write(lambda ctx: keep(ctx, received.rows), repeats=False, audited=False)
    content, media_type = otlp_wire.encode(signal, received, kind)
    return Response(content, media_type=media_type)
