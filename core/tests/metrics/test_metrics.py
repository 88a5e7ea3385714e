"""Numbers for Prometheus: right, bounded in their labels, and only where the operator asked for them."""

from pathlib import Path

import httpx2
import pytest
from gpuaas_core.api.app import guarded
from gpuaas_core.http.call import Platform
from gpuaas_core.metrics.serve import Metrics
from prometheus_client.parser import text_string_to_metric_families

from core.tests.support.fixtures import Store, World, _app, copy_store
from core.tests.support.served import Served, free_port


async def read(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=metrics), base_url="http://core") as http:
        answer = await http.get("/metrics")
    assert answer.status_code == 200
    return parsed(answer.text)


def parsed(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


async def test_the_store_is_counted_when_asked(world: World) -> None:
    metrics = Metrics(world.platform)
    await world.deploy()
    await world.deploy(world.allocations[1], "second")
    await world.claim()
    world.platform.clock.forward(7)  # type: ignore[attr-defined]
    found = await read(metrics)
    assert found[key("gpuaas_operations", status="queued")] == 1
    assert found[key("gpuaas_operations", status="running")] == 1
    assert found[key("gpuaas_operations", status="failed")] == 0, "a series must exist before it counts"
    assert found[key("gpuaas_live_claims")] == 1
    assert 7 <= found[key("gpuaas_queue_age_seconds")] < 60
    assert found[key("gpuaas_nodes", state="ready")] == 3
    assert found[key("gpuaas_event_sequence", tenant=world.tenant)] > 10
    assert found[key("gpuaas_store_write_seconds_count")] >= 3


async def test_a_lease_that_is_over_is_no_live_claim(world: World) -> None:
    metrics = Metrics(world.platform)
    await world.deploy()
    await world.claim()
    world.platform.clock.forward(31)  # type: ignore[attr-defined]
    assert (await read(metrics))[key("gpuaas_live_claims")] == 0


async def test_requests_are_counted_by_template_and_scanners_make_one_row(platform: Platform, store: Store) -> None:
    metrics = Metrics(platform)
    app = _app()
    app.state.platform = platform
    transport = httpx2.ASGITransport(app=guarded(app, [metrics.requests]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://core") as http:
        world = store.world.through(http)
        for number in range(5):
            await world.boss.get(f"/v1/projects/{world.red}")
            await world.boss.get(f"/wp-admin/{number}")
            await world.boss.call(f"X{number}", "/v1")
    found = await read(metrics)
    labels = {"method": "GET", "route": "/v1/projects/{project_id}", "status": "200"}
    assert found[key("gpuaas_request_seconds_count", **labels)] == 5
    rows = [k for k in found if k[0] == "gpuaas_request_seconds_count"]
    assert len(rows) == 3, rows


async def test_there_is_nothing_else_at_that_address(platform: Platform) -> None:
    transport = httpx2.ASGITransport(app=Metrics(platform))
    async with httpx2.AsyncClient(transport=transport, base_url="http://core") as http:
        assert (await http.get("/v1")).status_code == 404
        assert (await http.post("/metrics")).status_code == 404


def test_metrics_are_served_only_where_the_operator_asked(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_store(store, tmp_path)
    port = free_port()
    monkeypatch.setenv("GPUAAS_CORE_METRICS", f"127.0.0.1:{port}")
    served = Served(tmp_path, free_port())
    served.start()
    try:
        text = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=5).text
        assert parsed(text)[key("gpuaas_nodes", state="ready")] == 3
        assert httpx2.get(f"{served.url}/metrics", timeout=5).status_code == 404
    finally:
        served.stop()
