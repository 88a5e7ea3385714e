"""Claims, leases and fencing of the controller loop: when work must stop, and that it then reports nothing."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from gpuaas_sdk import AsyncClient, Done, ServiceAccount, Work, errors
from gpuaas_sdk.client.backoff import now
from gpuaas_sdk.controller.claim_runner import Pace

from sdk.tests.support.controllers import Stubborn, controlling, nothing_was_reported, until
from sdk.tests.support.fake_platform import Cut, Platform, problem


async def test_heartbeats_keep_a_long_step_alive(platform: Platform) -> None:
    async def reconcile(work: Work) -> Done:
        await asyncio.sleep(platform.lease_s * 1.5)
        return Done("Slow but fine.")

    platform.lease_s = 2
    operation = platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: platform.operations[operation]["status"] == "succeeded")
    assert len(platform.reports("heartbeat")) >= 4


async def test_a_stale_claim_cancels_the_work_and_reports_nothing(platform: Platform) -> None:
    stubborn = Stubborn()
    operation = platform.queue()
    async with controlling(platform, stubborn):
        await until(lambda: stubborn.began)
        platform.take_over(operation)
        await until(lambda: stubborn.cancelled)
    assert nothing_was_reported(platform)


async def test_a_stale_claim_seen_by_the_work_itself_reports_nothing(platform: Platform) -> None:
    after: list[str] = []

    async def reconcile(work: Work) -> Done:
        platform.take_over(work.operation.id)
        await work.progress("starting", 1, 2, "Starting.")
        after.append("went on")
        return Done("Up.")

    platform.queue()
    async with controlling(platform, reconcile, pace=Pace(heartbeat_every_s=5)):
        await until(lambda: platform.reports("progress"))
        await asyncio.sleep(0.2)
    assert after == []
    assert not any(platform.reports(verb) for verb in ("complete", "fail", "return-claim"))


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_revoked_controller_stops_at_the_next_heartbeat(platform: Platform, status: int) -> None:
    stubborn = Stubborn()
    platform.lease_s = 30
    platform.on("POST", r".*/heartbeat", lambda _: problem(status, "no_more"))
    platform.queue()
    async with controlling(platform, stubborn):
        await until(lambda: stubborn.cancelled)
    assert nothing_was_reported(platform)


@pytest.mark.parametrize("how", ["cut", "unavailable", "silent"])
async def test_lost_heartbeats_stop_the_work_before_the_lease_ends(platform: Platform, how: str) -> None:
    stubborn = Stubborn()

    def no_heartbeat(_: Any) -> Any:
        if how == "unavailable":
            return problem(503, "unavailable")
        if how == "silent":
            time.sleep(3)
        raise Cut

    platform.lease_s = 3
    platform.on("POST", r".*/heartbeat", no_heartbeat)
    platform.queue()
    async with controlling(platform, stubborn):
        await until(lambda: stubborn.began)
        claimed = platform.seen("POST", r".*/claim")[0].at
        await until(lambda: stubborn.ended)
    assert stubborn.cancelled
    assert stubborn.ended - now() + time.monotonic() - claimed < platform.lease_s, (
        "the work went on after the platform could have given it away"
    )
    assert nothing_was_reported(platform)


async def test_after_the_lease_no_act_is_possible_even_before_the_cancel_arrives(platform: Platform) -> None:
    """A process that was frozen (SIGSTOP) wakes up in the middle of its step: the step itself must notice."""
    acted: list[str] = []

    async def reconcile(work: Work) -> Done:
        time.sleep(platform.lease_s + 0.1)  # noqa: ASYNC251 - the whole process stands still
        for act in (lambda: work.progress("p", 1, 1, "m"), lambda: work.grant("alloc_1", "ssh-ed25519 AAAA")):
            try:
                await act()
            except errors.StaleClaim:
                acted.append("refused")
        work.check()
        acted.append("went on")
        return Done("Up.")

    platform.lease_s = 1
    platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: acted)
        await asyncio.sleep(0.1)
    assert acted == ["refused", "refused"]
    assert platform.reports("progress") == []
    assert platform.reports("access-grants") == []


@pytest.mark.parametrize("addresses", [[], ["10.1.2.3", "10.9.0.0/16"]])
async def test_certificates_are_asked_for_the_addresses_of_the_identity_file(
    platform: Platform, addresses: list[str]
) -> None:
    async def reconcile(work: Work) -> Done:
        account = ServiceAccount.generate(project_id="prj_1", api=platform.url)
        there = msgspec.structs.replace(account, source_addresses=addresses)
        async with AsyncClient.for_service_account(there) as client:
            work.client.source_addresses = client.source_addresses
        with suppress(errors.ApiError):
            await work.grant("alloc_1", "ssh-ed25519 AAAA")
        return Done("Up.")

    operation = platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: platform.operations[operation]["status"] == "succeeded")
    (asked,) = platform.reports("access-grants")
    assert asked.body.get("source_addresses", []) == addresses


async def test_a_claim_that_waited_long_is_confirmed_before_work_begins(platform: Platform) -> None:
    """The lease is counted from the request, and a long poll may take most of it."""
    order: list[str] = []

    async def reconcile(work: Work) -> Done:
        order.append(f"work after {len(platform.reports('heartbeat'))} heartbeats")
        return Done("Up.")

    platform.lease_s = 3
    async with controlling(platform, reconcile, wait_s=5):
        await until(lambda: platform.seen("POST", r".*/claim"))
        await asyncio.sleep(1.6)
        platform.queue()
        await until(lambda: platform.reports("complete"))
    assert order == ["work after 1 heartbeats"]


async def test_work_without_a_sign_of_life_is_given_up_instead_of_kept_for_ever(platform: Platform) -> None:
    stubborn = Stubborn()
    pace = Pace(heartbeat_every_s=0.1, stall_after_s=0.4, look_every_s=0.02)
    platform.queue()
    async with controlling(platform, stubborn, pace=pace):
        error = (await until(lambda: platform.reports("fail")))[0].body["error"]
    assert stubborn.cancelled
    assert (error["code"], error["retryable"]) == ("work_stalled", True)


async def test_work_that_asked_for_patience_is_not_given_up(platform: Platform) -> None:
    async def reconcile(work: Work) -> Done:
        with work.expecting(5):
            await asyncio.sleep(0.8)
        return Done("Up.")

    platform.queue()
    async with controlling(platform, reconcile, pace=Pace(stall_after_s=0.3, look_every_s=0.02)):
        await until(lambda: platform.reports("complete"))
    assert platform.reports("fail") == []
