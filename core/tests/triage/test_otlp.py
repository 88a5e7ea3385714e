"""OTLP/HTTP: the real OpenTelemetry SDK sends, triage shows; what is too much, broken or foreign does no harm."""

import functools
import gzip
import json
import logging
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from gpuaas_core.kit.problems import Problem
from gpuaas_core.triage import otlp_rows, otlp_wire
from gpuaas_core.triage.otlp_rows import MOST_ROWS
from gpuaas_core.triage.otlp_wire import MOST_UNPACKED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import Store, World
from core.tests.support.served import Served
from core.tests.support.store_rows import dump, one, rows

ID = "cor-of-this-otlp-test"
PROTOBUF = "application/x-protobuf"
NOW = 1_763_208_000 * 1_000_000_000


def where(served: Served, store: Store, signal: str) -> dict[str, Any]:
    world = store.world
    headers = {"Authorization": f"Bearer {world.controller.token}"}
    return {"endpoint": f"{served.url}/v1/projects/{world.red}/otlp/v1/{signal}", "headers": headers}


def triage(served: Served, token: str | None, correlation_id: str) -> httpx2.Response:
    return httpx2.get(f"{served.url}/v1/triage/{correlation_id}", headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_spans_of_the_real_sdk_are_seen_in_triage(served: Served, store: Store, compression: Compression) -> None:
    mine = f"cor-sdk-{compression.value}-spans"
    provider = TracerProvider(resource=Resource({"service.name": "my-app"}))
    exporter = OTLPSpanExporter(**where(served, store, "traces"), compression=compression)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("controller")
    with (
        tracer.start_as_current_span(
            "deploy", attributes={"gpuaas.correlation_id": mine, "gpuaas.operation_id": "op_1"}
        ),
        tracer.start_as_current_span("install munge") as inner,
    ):  # names no id: found by its trace
        inner.set_status(Status(StatusCode.ERROR, "exit 100"))
    assert provider.force_flush(10_000)
    provider.shutdown()
    found = triage(served, store.world.boss.token, mine).json()
    spans = {entry["sentence"].split(" took")[0]: entry for entry in found["timeline"] if entry["kind"] == "span"}
    assert set(spans) == {"deploy", "install munge"}
    assert spans["install munge"]["level"] == "error"
    assert spans["install munge"]["detail"]["error"] == "exit 100"
    assert spans["install munge"]["detail"]["service.name"] == "my-app"
    assert spans["deploy"]["operation_id"] == "op_1"
    assert triage(served, store.world.blue_controller.token, mine).status_code == 404, "another project's"


def test_log_records_of_the_real_sdk_are_seen_in_triage(served: Served, store: Store) -> None:
    provider = LoggerProvider(resource=Resource({"service.name": "my-app"}))
    provider.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(**where(served, store, "logs"))))
    mine = "cor-sdk-log-records"
    provider.get_logger("controller").emit(
        LogRecord(
            timestamp=time.time_ns(),
            severity_number=SeverityNumber.ERROR,
            body="the disk is full",
            attributes={"gpuaas.correlation_id": mine, "kind": "step"},
        )
    )
    provider.shutdown()
    (entry,) = triage(served, store.world.boss.token, mine).json()["timeline"]
    assert (entry["sentence"], entry["level"], entry["kind"]) == ("the disk is full", "error", "step")


def span(**more: Any) -> dict[str, Any]:
    named = [{"key": "gpuaas.correlation_id", "value": {"stringValue": ID}}]
    times = {"startTimeUnixNano": str(NOW), "endTimeUnixNano": str(NOW + 1_500_000_000)}
    return {"traceId": "a" * 32, "spanId": "b" * 16, "name": "deploy", "attributes": named} | times | more


def request(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


async def send(
    world: World, content: Any, kind: str = "application/json", signal: str = "traces", **headers: str
) -> Any:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    where = f"/v1/projects/{world.red}/otlp/v1/{signal}"
    words = {"Content-Type": kind, "Authorization": f"Bearer {world.controller.token}"} | headers
    return await world.api.http.post(where, content=body, headers=words)


async def test_json_is_read_as_the_standard_writes_it_and_needs_no_idempotency_key(world: World) -> None:
    answer = await send(world, request(span(someFieldOfTomorrow=1, status={"code": 2})))
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["content-type"] == "application/json"
    (row,) = rows(world.platform, "select * from spans")
    assert (row["trace_id"], row["span_id"], row["status"]) == ("a" * 32, "b" * 16, "error")
    assert row["ended_at"] - row["started_at"] == 1500
    assert row["project_id"] == world.red
    assert row["correlation_id"] == ID


async def test_what_cannot_be_kept_is_counted_and_explained_and_the_rest_is_kept(world: World) -> None:
    wrong = [span(traceId="0" * 32), span(spanId="ab"), span(startTimeUnixNano="7"), span(endTimeUnixNano=0)]
    answer = await send(world, request(span(), *wrong))
    said = answer.json()["partialSuccess"]
    assert said["rejectedSpans"] == "4"
    assert "2 rejected: no valid trace and span id; 2 rejected: no plausible start and end" in said["errorMessage"]
    assert one(world.platform, "select count(*) from spans") == 1


async def test_protobuf_is_answered_in_protobuf_and_too_many_are_rejected(world: World) -> None:
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for number in range(1, MOST_ROWS + 11):
        one_span = scope.spans.add(trace_id=b"a" * 16, span_id=number.to_bytes(8, "big"), name="x")
        one_span.start_time_unix_nano = one_span.end_time_unix_nano = NOW
    answer = await send(world, message.SerializeToString(), PROTOBUF)
    assert answer.headers["content-type"] == PROTOBUF
    said = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert said.rejected_spans == 10
    assert f"more than {MOST_ROWS} in one request" in said.error_message
    assert one(world.platform, "select count(*) from spans") == MOST_ROWS


async def test_a_log_line_that_could_never_be_found_is_rejected(world: World) -> None:
    message = ExportLogsServiceRequest()
    scope = message.resource_logs.add().scope_logs.add()
    scope.log_records.add().body.string_value = "lost"
    scope.log_records.add(trace_id=b"t" * 16).body.string_value = "found by its trace"
    answer = await send(world, message.SerializeToString(), PROTOBUF, "logs")
    assert b"neither gpuaas.correlation_id nor a trace id" in answer.content
    assert one(world.platform, "select message from log_lines") == "found by its trace"


async def test_odd_values_are_kept_as_far_as_they_can_be(world: World) -> None:
    message = ExportLogsServiceRequest()
    record = message.resource_logs.add().scope_logs.add().log_records.add(trace_id=b"t" * 16, severity_number=13)
    record.body.string_value = "a\0b" + "ü" * 9000
    for name, kind, value in [
        ("nan", "double_value", float("nan")),
        ("bytes", "bytes_value", b"\0\1"),
        ("big", "int_value", 2**63 - 1),
        ("nul\0", "string_value", "\0"),
        ("fat", "string_value", "x" * 5000),
        ("after", "bool_value", True),
    ]:
        setattr(record.attributes.add(key=name).value, kind, value)
    record.attributes.add(key="nothing")
    assert (await send(world, message.SerializeToString(), PROTOBUF, "logs")).content == b""
    (row,) = rows(world.platform, "select * from log_lines")
    fields = row["fields"] if isinstance(row["fields"], dict) else json.loads(row["fields"])
    assert fields == {
        "nan": "nan",
        "bytes": "AAE=",
        "big": 2**63 - 1,
        "nul\N{REPLACEMENT CHARACTER}": "\N{REPLACEMENT CHARACTER}",
        "attributes_left_out": 3,
    }
    assert row["message"].startswith("a\N{REPLACEMENT CHARACTER}b")
    assert len(row["message"].encode()) <= 8 * 1024
    assert row["level"] == "warning"


@functools.cache
def bomb() -> bytes:
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(b"\0" * 2**20) for _ in range(200)) + packer.flush()


BAD: dict[str, tuple[bytes | Callable[[], bytes], str, str, int, str]] = {
    "a bomb of 200 MiB": (bomb, PROTOBUF, "gzip", 413, "body_too_large"),
    "one byte too much": (lambda: gzip.compress(b"\0" * (MOST_UNPACKED + 1)), PROTOBUF, "gzip", 413, "body_too_large"),
    "no gzip at all": (b"hello", PROTOBUF, "gzip", 400, "malformed_body"),
    "half a gzip": (gzip.compress(b"\0" * 5000)[:-9], PROTOBUF, "gzip", 400, "malformed_body"),
    "another packer": (b"hello", PROTOBUF, "br", 415, "content_not_supported"),
    "another kind": (b"a: 1", "application/yaml", "", 415, "content_not_supported"),
    "no protobuf": (b"\xff\xff\xff", PROTOBUF, "", 400, "malformed_body"),
    "no JSON": (b"{", "application/json", "", 400, "malformed_body"),
    "no object": (b"[]", "application/json", "", 400, "malformed_body"),
    "nothing": (b"", "application/json", "", 400, "malformed_body"),
    "no OTLP": (b'{"resourceSpans": 7}', "application/json", "", 400, "malformed_body"),
    "an id that is not hex": (
        json.dumps(request(span(traceId="zz"))).encode(),
        "application/json",
        "",
        400,
        "malformed_body",
    ),
    "nested without end": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "application/json", "", 400, "malformed_body"),
}


@pytest.mark.parametrize("name", BAD)
async def test_what_is_broken_or_too_much_is_refused_and_nothing_is_kept(world: World, name: str) -> None:
    body, kind, encoding, status, code = BAD[name]
    before = dump(world.platform)
    body = body if isinstance(body, bytes) else body()
    check_problem(await send(world, body, kind, **({"Content-Encoding": encoding} if encoding else {})), status, code)
    assert dump(world.platform) == before


async def test_a_bomb_costs_neither_memory_nor_time(world: World) -> None:
    content, started = bomb(), time.process_time()
    tracemalloc.start()
    await send(world, content, PROTOBUF, **{"Content-Encoding": "gzip"})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * MOST_UNPACKED
    assert time.process_time() - started < 2


async def test_only_those_who_may_send_telemetry_of_the_project_may(world: World) -> None:
    before = dump(world.platform, without={"audit", "event_heads", "sessions"})
    for token, status in ((None, 401), (world.viewer.token, 403), (world.blue_controller.token, 404)):
        answer = await send(world, request(span()), Authorization=f"Bearer {token}" if token else "")
        assert answer.status_code == status
    assert dump(world.platform, without={"audit", "event_heads", "sessions"}) == before


async def test_a_trace_shows_only_to_those_who_see_its_project(world: World) -> None:
    """A stranger who sends the same trace id sees neither more nor is seen."""
    trace = "c" * 32
    headers = {"X-Correlation-Id": ID, "traceparent": f"00-{trace}-{'d' * 16}-01"}
    answer = await world.boss.post(
        f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0]), headers=headers
    )
    assert answer.status_code == 202
    await send(world, request(span(traceId=trace, name="ours", attributes=[])))
    body = json.dumps(request(span(traceId=trace, name="theirs", attributes=[])))
    words = {"Content-Type": "application/json"}
    path = f"/v1/projects/{world.blue}/otlp/v1/traces"
    assert (await world.blue_controller.call("POST", path, content=body, headers=words)).status_code == 200
    seen = (await world.viewer.get(f"/v1/triage/{ID}")).json()
    assert [e["sentence"] for e in seen["timeline"] if e["kind"] == "span"] == ["ours took 1500 ms"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.binary(max_size=200), kind=st.sampled_from([PROTOBUF, "application/json"]), packed=st.booleans())
def test_no_bytes_upset_the_reader(body: bytes, kind: str, packed: bool) -> None:
    for signal in (otlp_wire.TRACES, otlp_wire.LOGS):
        try:
            message = otlp_wire.decode(signal, gzip.compress(body) if packed else body, kind, "gzip" if packed else "")
        except Problem:
            continue
        found = otlp_rows.spans_of(message) if signal is otlp_wire.TRACES else otlp_rows.lines_of(message, 0)
        assert otlp_wire.encode(signal, found, kind)


logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
