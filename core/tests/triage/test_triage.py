"""Triage: one id, one timeline of what the caller may see, a verdict with a way out; telemetry is bounded and forgotten."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from gpuaas_core.api.app import guarded
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.http.call import Platform
from gpuaas_core.triage import writer
from gpuaas_core.triage.writer import RequestLines

from core.tests.support.fixtures import Store, World, _app, add_user
from core.tests.support.store_rows import dump, one, rows

ID = "cor-of-this-test"
NOW = "2026-11-15T12:00:00.000Z"


@pytest.fixture
async def lines(platform: Platform) -> RequestLines:
    return RequestLines(platform.db, platform.clock)


@pytest.fixture
async def watched(platform: Platform, store: Store, lines: RequestLines) -> AsyncIterator[World]:
    """The world, with the core's own request lines collected as when it is served."""
    app = _app()
    app.state.platform = platform
    transport = httpx2.ASGITransport(app=guarded(app, [lines]), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://core") as http:
        mine = store.world.through(http)
        mine.platform = platform
        yield mine


def line(message: str = "munge runs", **more: Any) -> dict[str, Any]:
    return {"at": NOW, "level": "info", "message": message, "correlation_id": ID} | more


def span(**more: Any) -> dict[str, Any]:
    ids = {"trace_id": "a" * 32, "span_id": "b" * 16, "correlation_id": ID}
    return {"name": "deploy", "started_at": NOW, "ended_at": "2026-11-15T12:00:01.500Z"} | ids | more


async def tell(world: World, *lines: dict[str, Any], spans: Any = ()) -> Any:
    body = {"lines": list(lines), "spans": list(spans)}
    return await world.controller.post(f"/v1/projects/{world.red}/telemetry", body)


async def failed_deploy(world: World) -> str:
    """Asked under ID by a person, failed by a controller that reports under the operation's id, as the SDK does."""
    body = world.deploy_body(world.allocations[0])
    path = f"/v1/projects/{world.red}/instances"
    answer = await world.boss.post(path, body, headers={"X-Correlation-Id": ID})
    assert answer.status_code == 202, answer.text
    claim = await world.claim()
    operation = claim["operation"]["id"]
    error = {"code": "disk_full", "message": "The file system / of node-0 is full.", "retryable": True}
    error["way_out"] = f"Free space on that file system, then run `gpuaas operation retry {operation}`."
    told = {"operation_id": operation, "fields": {"kind": "step"}}
    await tell(world, line("preflight on node-0: done in 20 ms", **told), line("just a line", operation_id=operation))
    command = {"kind": "command", "exit": 1, "ms": 12}
    await tell(world, line("install on node-0 ended with 1 after 12 ms", operation_id=operation, fields=command))
    report = {"claim_epoch": 1, "phase": "work", "step": 3, "of": 7, "message": "Installing"}
    headers = {"X-Correlation-Id": ID}
    await world.controller.ok(world.operation(operation, "progress"), report, headers=dict(headers))
    await world.controller.ok(world.operation(operation, "fail"), {"claim_epoch": 1, "error": error}, headers=headers)
    return operation


async def triage(caller: Any, correlation_id: str = ID) -> Any:
    answer = await caller.get(f"/v1/triage/{correlation_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_failed_deploy_is_told_from_the_request_to_the_way_out(watched: World, lines: RequestLines) -> None:
    operation = await failed_deploy(watched)
    await lines.flush()
    found = await triage(watched.boss)
    verdict = found["verdict"]
    assert verdict["what"] == "The deploy of first (echo 1.0.0) failed at step 3 of 7."
    assert verdict["why"] == "The file system / of node-0 is full."
    assert f"gpuaas operation retry {operation}" in verdict["way_out"]
    assert (verdict["code"], verdict["operation_id"]) == ("disk_full", operation)
    kinds = [entry["kind"] for entry in found["timeline"]]
    assert set(kinds) == {"request", "decision", "operation", "event", "step", "command", "log"}
    sources = {entry["kind"]: entry["source"] for entry in found["timeline"]}
    assert (sources["request"], sources["step"], sources["command"]) == ("core", "controller", "host")
    asked = [kind for kind in kinds if kind in ("request", "decision", "operation")]
    assert asked == ["request", "decision", "operation", "operation"]
    ended = [entry for entry in found["timeline"] if entry["kind"] == "operation"][-1]
    assert ended["level"] == "error"
    assert "What to do: Free space" in ended["sentence"]
    types = [entry["detail"]["type"] for entry in found["timeline"] if entry["kind"] == "event"]
    for type in (
        "apps.operation.queued",
        "apps.operation.claimed",
        "apps.operation.progressed",
        "apps.operation.failed",
    ):
        assert type in types
    assert found["trace_ids"]


async def test_the_timeline_is_in_the_order_of_time(watched: World, lines: RequestLines) -> None:
    await failed_deploy(watched)
    await lines.flush()
    moments = [entry["at"] for entry in (await triage(watched.boss))["timeline"]]
    assert moments == sorted(moments)


async def test_a_caller_sees_no_more_than_they_may(world: World) -> None:
    await failed_deploy(world)
    viewer = await triage(world.viewer)
    assert "decision" not in {entry["kind"] for entry in viewer["timeline"]}, "the audit trail is not the viewer's"
    assert viewer["verdict"]["code"] == "disk_full"
    stranger, _ = await add_user(world, "blue@acme.example", "project_admin", project=world.blue)
    for caller in (stranger, world.blue_controller, world.machine):
        answer = await caller.get(f"/v1/triage/{ID}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text
    assert (await world.api.as_(None).get(f"/v1/triage/{ID}")).status_code == 401
    platform_admin = await world.admin.get(f"/v1/triage/{ID}")  # reads audit, but does not look into projects
    assert {entry["kind"] for entry in platform_admin.json()["timeline"]} == {"decision"}


async def test_a_line_about_anothers_id_shows_only_in_its_own_project(world: World) -> None:
    await failed_deploy(world)
    path = f"/v1/projects/{world.blue}/telemetry"
    await world.blue_controller.ok(path, {"lines": [line("forged")], "spans": [span(name="forged")]})
    seen = await triage(world.viewer)
    assert "forged" not in str(seen)
    assert "forged" in str(await triage(world.blue_controller))


async def test_a_denial_is_told_with_what_to_do(watched: World, lines: RequestLines) -> None:
    path = f"/v1/projects/{watched.red}/instances"
    await watched.viewer.post(path, watched.deploy_body(watched.allocations[0]), headers={"X-Correlation-Id": ID})
    for kept in (False, True):  # the audit row tells as much as the line, which a crash may lose
        if kept:
            await lines.flush()
        verdict = (await triage(watched.viewer))["verdict"]
        assert verdict["code"] == "permission_denied"
        assert "apps.instance.create" in verdict["why"]
        assert "Ask an administrator" in verdict["way_out"]
    kinds = [entry["kind"] for entry in (await triage(watched.boss))["timeline"]]
    assert kinds == ["request", "decision"]


async def test_a_refused_request_is_explained_to_its_sender(watched: World, lines: RequestLines) -> None:
    body = watched.deploy_body("alloc_" + "0" * 26)
    path = f"/v1/projects/{watched.red}/instances"
    await watched.boss.post(path, body, headers={"X-Correlation-Id": ID})
    await lines.flush()
    verdict = (await triage(watched.boss))["verdict"]
    assert verdict["code"] == "allocation_unknown"
    assert verdict["what"].endswith("was answered with 422.")
    assert verdict["way_out"]


async def test_what_goes_well_is_said_too(world: World) -> None:
    await world.boss.ok(
        f"/v1/projects/{world.red}/instances",
        world.deploy_body(world.allocations[0]),
        headers={"X-Correlation-Id": ID},
    )
    assert "is queued" in (await triage(world.boss))["verdict"]["what"]
    await world.complete(await world.claim())
    verdict = (await triage(world.boss))["verdict"]
    assert (verdict["what"], verdict["way_out"]) == ("The deploy of first (echo 1.0.0) succeeded.", "")


async def test_a_span_is_shown_with_its_duration(world: World) -> None:
    assert (await tell(world, spans=[span(status="error")])).json() == {"lines": 0, "spans": 1}
    (entry,) = (await triage(world.viewer))["timeline"]
    assert (entry["kind"], entry["level"]) == ("span", "error")
    assert entry["sentence"] == "deploy took 1500 ms, with an error"


@pytest.mark.parametrize(
    "bad",
    [
        line("x" * 8193),
        line("é" * 5000),
        line(""),
        line(at="yesterday"),
        line(at="2026-02-31T00:00:00Z"),
        line(at=1_700_000_000),
        line(level="loud"),
        line(correlation_id="short"),
        line(correlation_id="x" * 129),
        line(trace_id="A" * 32),
        line(operation_id="o" * 41),
        line(fields={"much": "x" * 5000}),
        line(surprise=1),
    ],
)
async def test_a_line_that_does_not_fit_is_refused(world: World, bad: dict[str, Any]) -> None:
    before = dump(world.platform)
    answer = await tell(world, bad)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), answer.text
    assert dump(world.platform) == before


async def test_no_more_than_200_lines_come_at_once(world: World) -> None:
    assert (await tell(world, *[line()] * 200)).status_code == 202
    assert (await tell(world, *[line()] * 201)).status_code == 422


async def test_only_a_controller_sends_telemetry(world: World) -> None:
    path = f"/v1/projects/{world.red}/telemetry"
    assert (await world.viewer.post(path, {"lines": [line()]})).status_code == 403
    assert (await world.blue_controller.post(path, {"lines": [line()]})).status_code == 404


async def test_telemetry_is_forgotten_after_a_week(world: World) -> None:
    await tell(world, line(at="2099-01-01T00:00:00Z"), spans=[span()])
    now = world.platform.clock()
    tidy(world.platform, now + 6 * 24 * 3600 * 1000)
    assert (
        one(world.platform, "select count(*) from log_lines"),
        one(world.platform, "select count(*) from spans"),
    ) == (1, 1)
    tidy(world.platform, now + 8 * 24 * 3600 * 1000)
    assert (
        one(world.platform, "select count(*) from log_lines"),
        one(world.platform, "select count(*) from spans"),
    ) == (0, 0)


async def test_only_changes_and_failures_leave_a_line(watched: World, lines: RequestLines) -> None:
    await watched.boss.get("/v1/whoami")
    await watched.claim()  # nothing waits
    await watched.deploy()
    claim = await watched.claim()
    await watched.progress(claim, 1)
    await watched.boss.get("/v1/projects/prj_none")
    await lines.flush()
    kept = rows(watched.platform, "select message, level, project_id from log_lines order by id")
    assert [row["level"] for row in kept] == ["info", "warning"]
    assert kept[0]["project_id"] == watched.red
    assert kept[1]["project_id"] is None, "a place one may not see is not named as the line's owner"


async def test_a_store_that_fails_loses_lines_and_no_request(
    watched: World, lines: RequestLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(writer, "add_lines", fail)
    await watched.deploy()
    await lines.flush()
    monkeypatch.undo()
    await watched.deploy(watched.allocations[1], "second")
    await lines.flush()
    assert one(watched.platform, "select count(*) from log_lines") == 1


async def test_a_watcher_that_fails_fails_no_request(platform: Platform, store: Store) -> None:
    def broken(_seen: Any) -> None:
        raise RuntimeError("broken")

    app = _app()
    app.state.platform = platform
    transport = httpx2.ASGITransport(app=guarded(app, [broken]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://core") as http:
        assert (await store.world.through(http).boss.get("/v1/whoami")).status_code == 200
