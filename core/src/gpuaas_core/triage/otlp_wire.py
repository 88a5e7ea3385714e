"""Decodes OTLP/HTTP requests (protobuf or JSON, with or without gzip, at most 4 MiB), and encodes the responses that
the standard requires.

Requests are parsed with the published message types (opentelemetry-proto). Together with protobuf they take 2 MB and
follow the standard; a parser of our own would have to follow it by hand.
"""

import base64
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from ..kit.json_types import Json, JsonValue, is_array, is_object
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


M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Signal(Generic[M]):
    """Traces or logs: the message types of the request and of the response, and a function that builds the response
    when items were rejected."""

    request: type[M]
    response: type[Message]
    partial: Callable[[int, str], Message]


def _partial_traces(rejected: int, why: str) -> Message:
    partial = ExportTracePartialSuccess(rejected_spans=rejected, error_message=why)
    return ExportTraceServiceResponse(partial_success=partial)


def _partial_logs(rejected: int, why: str) -> Message:
    partial = ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=why)
    return ExportLogsServiceResponse(partial_success=partial)


TRACES = Signal(ExportTraceServiceRequest, ExportTraceServiceResponse, _partial_traces)
LOGS = Signal(ExportLogsServiceRequest, ExportLogsServiceResponse, _partial_logs)


def decode(signal: Signal[M], body: bytes, content_type: str, encoding: str) -> M:
    kind = _kind(content_type)
    body = _unpacked(body, encoding)
    message = signal.request()
    try:
        if kind == PROTOBUF:
            message.ParseFromString(body)
        else:
            json_format.ParseDict(_with_binary_ids(_object(body)), message, ignore_unknown_fields=True)
    except (DecodeError, json_format.ParseError, RecursionError) as error:
        raise MalformedBody(f"The body is not an OTLP {signal.request.DESCRIPTOR.name}.", way_out=_HOW) from error
    return message


_HOW = "Send what an OTLP/HTTP exporter sends: the message named in `detail`, as protobuf or JSON."


def encode(signal: Signal[M], outcome: Outcome, content_type: str) -> tuple[bytes, str]:
    """Encode the response as protobuf or JSON, like the request; return it with its media type. The response is empty
    if nothing was rejected, otherwise it has the number of rejected items and the reason."""
    message = signal.partial(outcome.rejected, outcome.why) if outcome.rejected else signal.response()
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
    """Decompress the body, or return it unchanged if it is not compressed. Raises BodyTooLarge beyond the size limit,
    because a small body may decompress to any size."""
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


def _object(body: bytes) -> Json:
    value: object = read_json(body)
    if not is_object(value):
        raise MalformedBody("The body is not a JSON object.", way_out=_HOW)
    return value


def _with_binary_ids(message: Json) -> dict[str, JsonValue]:
    """Convert ids from hex, as in OTLP's JSON, to base64, as in protobuf's JSON."""
    return {name: _base64(item) if name in HEX else _inside(item) for name, item in message.items()}


def _inside(value: JsonValue) -> JsonValue:
    if is_array(value):
        return [_inside(item) for item in value]
    return _with_binary_ids(value) if is_object(value) else value


def _base64(value: JsonValue) -> str:
    try:
        if not isinstance(value, str):
            raise TypeError(value)
        return base64.b64encode(bytes.fromhex(value)).decode()
    except (TypeError, ValueError):
        raise MalformedBody("A trace or span id is not hexadecimal.", way_out=_HOW) from None
