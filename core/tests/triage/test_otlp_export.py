"""The core's own spans and log lines reach a real OTLP receiver (a second core); a receiver that is away costs nothing."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from gpuaas_core.http.request_log import Seen
from gpuaas_core.kit.correlation import correlate
from gpuaas_core.triage import otlp_export
from gpuaas_core.triage.otlp_export import MOST_WAITING, OtlpExport
from prometheus_client import CollectorRegistry, generate_latest

from core.tests.support.fixtures import Store, copy_store, remove_store
from core.tests.support.promises import promised
from core.tests.support.served import Served, free_port

pytestmark = pytest.mark.any_store

ID, TRACE, PARENT = "cor-of-the-first-core", "5" * 32, "6" * 16


@pytest.fixture
def first(store: Store, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A core that sends to the other one, as a service account of a project there."""
    world = store.world
    monkeypatch.setenv("GPUAAS_CORE_OTLP_ENDPOINT", f"{served.url}/v1/projects/{world.red}/otlp")
    monkeypatch.setenv("GPUAAS_CORE_OTLP_HEADERS", f"authorization={quote(f'Bearer {world.controller.token}')}")
    copy_store(store, tmp_path)
    mine = Served(tmp_path, free_port())
    mine.start()
    yield mine
    mine.stop()
    remove_store(tmp_path)


def test_a_request_to_one_core_is_seen_in_the_triage_of_another(first: Served, served: Served, store: Store) -> None:
    headers = {"X-Correlation-Id": ID, "traceparent": f"00-{TRACE}-{PARENT}-01"}
    assert httpx2.get(f"{first.url}/v1/whoami", headers=headers).status_code == 401
    boss = {"Authorization": f"Bearer {store.world.boss.token}"}
    found: list[dict[str, object]] = []
    for _ in range(600):
        answer = httpx2.get(f"{served.url}/v1/triage/{ID}", headers=boss)
        found = answer.json().get("timeline", [])
        if {entry["kind"] for entry in found} >= {"span", "log"}:
            break
        time.sleep(0.1)
    span = next(entry for entry in found if entry["kind"] == "span")
    assert str(span["sentence"]).startswith("GET /v1/whoami took")
    detail = span["detail"]
    assert isinstance(detail, dict)
    assert (detail["trace_id"], detail["parent_id"]) == (TRACE, PARENT)
    assert (detail["error.type"], detail["service.name"]) == ("unauthenticated", "gpuaas-core")
    assert next(entry for entry in found if entry["kind"] == "log")["sentence"] == "request"


def test_the_log_of_the_core_is_json_with_both_ids(first: Served) -> None:
    headers = {"X-Correlation-Id": ID, "traceparent": f"00-{TRACE}-{PARENT}-01"}
    httpx2.get(f"{first.url}/healthz", headers=headers)
    (mine,) = logged(first.folder / "core.log")
    assert (mine["trace_id"], mine["path"], mine["level"], mine["status"]) == (TRACE, "/healthz", "info", 200)


def logged(log: Path) -> list[dict[str, Any]]:
    """Our request's lines. A line is written after the answer has gone out, so it is waited for."""
    deadline = time.monotonic() + 60
    found: list[dict[str, Any]] = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.02)
        whole = log.read_text().rpartition("\n")[0]
        found = [said for said in map(json.loads, whole.splitlines()) if said.get("correlation_id") == ID]
    return found


def seen(path: str = "/v1/whoami") -> Seen:
    return Seen("GET", path, 1_763_208_000_000, correlate(None, None), route="/v1/whoami", status=200, ms=1.0)


def counted(export: OtlpExport, name: str, signal: str = "traces") -> float:
    registry = CollectorRegistry()
    registry.register(export)
    assert generate_latest(registry)
    return registry.get_sample_value(f"gpuaas_otlp_{name}_total", {"signal": signal}) or 0.0


async def test_a_receiver_that_is_away_blocks_no_request_and_what_is_lost_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp_export, "PATIENCE_S", (0.01, 0.01))
    monkeypatch.setattr(otlp_export, "EVERY_S", 0.01)
    export = OtlpExport(f"http://127.0.0.1:{free_port()}")
    started = time.perf_counter()
    for _ in range(MOST_WAITING + 7):
        export(seen())
    assert time.perf_counter() - started < promised(5)
    assert counted(export, "dropped") == 7, "the queue is bounded"
    async with export.running():
        for _ in range(600):
            if counted(export, "dropped") == MOST_WAITING + 7:
                break
            await asyncio.sleep(0.05)
    assert (counted(export, "dropped"), counted(export, "sent")) == (MOST_WAITING + 7, 0)


async def test_a_receiver_that_comes_back_gets_the_batch(
    served: Served, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_export, "EVERY_S", 0.01)
    export = OtlpExport(f"{served.url}/v1/projects/{store.world.red}/otlp", _headers(store))
    really, tries = export._post, []

    def flaky(*words: object) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionRefusedError("not yet")
        really(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(export, "_post", flaky)
    monkeypatch.setattr(otlp_export, "PATIENCE_S", (0.01, 0.01, 0.01))
    export(seen())
    async with export.running():
        for _ in range(600):
            if export.sent["traces"]:
                break
            await asyncio.sleep(0.05)
    assert (export.sent["traces"], export.dropped["traces"], len(tries)) == (1, 0, 3)


async def test_a_refusal_is_not_repeated(served: Served, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_export, "EVERY_S", 0.01)
    export = OtlpExport(f"{served.url}/v1/projects/{store.world.red}/otlp", "authorization=Bearer%20wrong")
    export(seen())
    async with export.running():
        for _ in range(600):
            if export.dropped["traces"]:
                break
            await asyncio.sleep(0.05)
    assert export.dropped["traces"] == 1


def test_telemetry_that_comes_in_does_not_go_out_again() -> None:
    export = OtlpExport("http://127.0.0.1:1")
    export(seen("/v1/projects/prj_1/otlp/v1/traces"))
    export.line(None, "info", {"event": "request", "path": "/v1/projects/prj_1/otlp/v1/logs"})
    assert not any(export._waiting.values())


def _headers(store: Store) -> str:
    return f"authorization={quote(f'Bearer {store.world.controller.token}')}"
