"""OTLP/HTTP encoding: protobuf or JSON, gzip or not, at most 4 MiB, and the response the standard requires.

Parsed with the protocol's published messages (opentelemetry-proto): with protobuf they are 2 MB and follow the
standard, which a parser of our own would have to do by hand.
"""

import base64
import zlib
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from ..kit.problems import BodyTooLarge, MalformedBody, Problem
from ..kit.wire import read_json

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MOST_UNPACKED = 4 * 1024 * 1024
HEX = {"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"}  # JSON writes these in hex


class ContentNotSupported(Problem):
    status, code, title = 415, "content_not_supported", "Content type not supported"
    way_out = "Send application/x-protobuf or application/json, uncompressed or with Content-Encoding: gzip."


class Outcome(Protocol):
    @property
    def rejected(self) -> int: ...
    @property
    def why(self) -> str: ...


@dataclass(frozen=True)
class Signal:
    """Traces or logs: the request, the response, and the response's name for rejected items."""

    request: type[Message]
    response: type[Message]
    rejected: str


TRACES = Signal(ExportTraceServiceRequest, ExportTraceServiceResponse, "rejected_spans")
LOGS = Signal(ExportLogsServiceRequest, ExportLogsServiceResponse, "rejected_log_records")


def decode(signal: Signal, body: bytes, content_type: str, encoding: str) -> Any:
    kind = _kind(content_type)
    body = _unpacked(body, encoding)
    message = signal.request()
    try:
        if kind == PROTOBUF:
            message.ParseFromString(body)
        else:
            json_format.ParseDict(_binary_ids(_object(body)), message, ignore_unknown_fields=True)
    except (DecodeError, json_format.ParseError, RecursionError) as error:
        raise MalformedBody(f"The body is not an OTLP {signal.request.DESCRIPTOR.name}.", way_out=_HOW) from error
    return message


_HOW = "Send what an OTLP/HTTP exporter sends: the message named in `detail`, as protobuf or JSON."


def encode(signal: Signal, outcome: Outcome, content_type: str) -> tuple[bytes, str]:
    """In the encoding of the request. Nothing rejected: an empty message; otherwise how many, and why."""
    message: Any = signal.response()
    if outcome.rejected:
        setattr(message.partial_success, signal.rejected, outcome.rejected)
        message.partial_success.error_message = outcome.why
    kind = _kind(content_type)
    if kind == PROTOBUF:
        return message.SerializeToString(), kind
    return json_format.MessageToJson(message, indent=None).encode(), kind


def _kind(content_type: str) -> str:
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (PROTOBUF, JSON):
        raise ContentNotSupported(f"The content type {kind[:80]!r} is not supported by OTLP over HTTP.")
    return kind


def _unpacked(body: bytes, encoding: str) -> bytes:
    """A small body may decompress to any size, so decompression stops at the limit."""
    if encoding.strip().lower() in ("", "identity"):
        return body
    if encoding.strip().lower() != "gzip":
        raise ContentNotSupported(f"The content encoding {encoding[:80]!r} is not supported.")
    reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        unpacked = reader.decompress(body, MOST_UNPACKED + 1)
    except zlib.error as error:
        raise MalformedBody("The body is not gzip, although Content-Encoding says so.", way_out=_HOW) from error
    if len(unpacked) > MOST_UNPACKED:
        raise BodyTooLarge(
            f"A decompressed body may have at most {MOST_UNPACKED} bytes.", way_out="Send smaller batches."
        )
    if not reader.eof:
        raise MalformedBody("The gzip body is truncated.", way_out=_HOW)
    return unpacked


def _object(body: bytes) -> dict[str, Any]:
    value = read_json(body)
    if not isinstance(value, dict):
        raise MalformedBody("The body is not a JSON object.", way_out=_HOW)
    return value


def _binary_ids(value: Any) -> Any:
    """OTLP's JSON encodes ids in hex where protobuf's JSON uses base64."""
    if isinstance(value, list):
        return [_binary_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _base64(item) if name in HEX else _binary_ids(item) for name, item in value.items()}


def _base64(value: Any) -> Any:
    try:
        return base64.b64encode(bytes.fromhex(value)).decode()
    except (TypeError, ValueError):
        raise MalformedBody("A trace or span id is not hexadecimal.", way_out=_HOW) from None
