"""Telemetry never waits and never raises; it is bounded, and what is dropped is counted."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
from gpuaas_sdk import AsyncClient, Bearer, TelemetrySender, correlation

from sdk.tests.support.controllers import until
from sdk.tests.support.fake_platform import Call, Cut, Platform, problem

PATH = r"/v1/projects/prj_1/telemetry"


@pytest.fixture
async def client(platform: Platform) -> AsyncIterator[AsyncClient]:
    platform.on("POST", PATH, lambda call: (202, {"lines": len(call.body["lines"]), "spans": len(call.body["spans"])}))
    async with AsyncClient(platform.url, Bearer("tok"), project_id="prj_1") as client:
        yield client


def reported(platform: Platform) -> list[dict]:
    return [line for call in platform.calls if call.path.endswith("/telemetry") for line in call.body["lines"]]


async def test_lines_arrive_in_order_with_their_ids(platform: Platform, client: AsyncClient) -> None:
    async with TelemetrySender(client, every_s=0.05) as telemetry:
        with correlation("cor-of-the-work"):
            telemetry.line("first", kind="step", ms=12)
        telemetry.line("second", level="warning", correlation_id="cor-another", operation_id="op_1")
        await until(lambda: len(reported(platform)) == 2)
    first, second = reported(platform)
    assert (first["message"], first["correlation_id"]) == ("first", "cor-of-the-work")
    assert first["fields"] == {"kind": "step", "ms": 12}
    assert (second["level"], second["operation_id"]) == ("warning", "op_1")


async def test_what_waits_is_sent_when_the_block_ends(platform: Platform, client: AsyncClient) -> None:
    async with TelemetrySender(client, every_s=60, batch=2) as telemetry:
        for number in range(5):
            telemetry.line(str(number))
        moments = {"started_at": "2026-11-15T12:00:00.000Z", "ended_at": "2026-11-15T12:00:01.000Z"}
        telemetry.span("deploy", **moments, trace_id="a" * 32)
    assert [line["message"] for line in reported(platform)] == list("01234")
    assert [len(call.body["spans"]) for call in platform.calls] == [1, 0, 0]


async def test_what_is_being_sent_when_the_block_ends_is_sent_once(platform: Platform, client: AsyncClient) -> None:
    def slowly(call: Call) -> tuple:
        time.sleep(0.3)
        return 202, {"lines": len(call.body["lines"]), "spans": 0}

    platform.on("POST", PATH, slowly)
    async with TelemetrySender(client, every_s=0.01) as telemetry:
        telemetry.line("once")
        await until(lambda: len(reported(platform)) == 1)
    assert len(reported(platform)) == 1


async def test_while_the_platform_is_away_nothing_waits_and_the_rest_is_counted(
    platform: Platform, client: AsyncClient
) -> None:
    away = [True]

    def answer(call: Call) -> tuple:
        if away[0]:
            raise Cut
        return 202, {"lines": len(call.body["lines"]), "spans": 0}

    platform.on("POST", PATH, answer)
    async with TelemetrySender(client, every_s=0.02, most=10) as telemetry:
        started = time.monotonic()
        for number in range(25):
            telemetry.line(str(number))
        assert time.monotonic() - started < 5
        assert telemetry.dropped == 15
        away[0] = False
        await until(
            lambda: any(call.body["lines"] for call in platform.calls[-1:]) and len(set(_texts(platform))) == 10
        )
    assert sorted(set(_texts(platform)), key=int) == [str(number) for number in range(10)]


def _texts(platform: Platform) -> list[str]:
    return [line["message"] for line in reported(platform)]


async def test_what_is_refused_is_dropped_and_not_sent_again(platform: Platform, client: AsyncClient) -> None:
    platform.on("POST", PATH, lambda _call: problem(403, "permission_denied"))
    async with TelemetrySender(client, every_s=60) as telemetry:
        telemetry.line("refused")
        assert await telemetry.flush()
        assert telemetry.dropped == 1
    assert len(platform.calls) == 1


async def test_whatever_is_given_fits_the_contract(platform: Platform, client: AsyncClient) -> None:
    async with TelemetrySender(client, every_s=60) as telemetry:
        telemetry.line("é" * 9000, level="loud", what=object(), half="\ud800")
        telemetry.line("", kind="step", much="x" * 5000)
    long, empty = reported(platform)
    assert len(long["message"].encode()) <= 8192
    assert long["level"] == "error"
    assert long["fields"]["what"].startswith("<object")
    assert empty["message"] == "-"
    assert empty["fields"] == {"left_out": "the fields were too large", "kind": "step"}
