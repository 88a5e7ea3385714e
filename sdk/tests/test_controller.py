"""The controller loop against a platform on a real socket: what is reported, and how it stops."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from gpuaas_sdk import Again, AsyncClient, Controller, Done, Failed, MemberReport, Work, errors
from gpuaas_sdk.client.backoff import now

from sdk.tests.support.controllers import Stubborn, controlling, until
from sdk.tests.support.fake_platform import Cut, Platform, problem

# --- outcomes


async def test_done_completes_the_operation_with_health_and_members(platform: Platform) -> None:
    async def reconcile(work: Work) -> Done:
        members = [MemberReport(member_id=m.id, state="ready") for m in work.members()]
        return Done("One node is idle.", access={"ssh": "node-a"}, runtime_version="23.02", members=members)

    operation = platform.queue()
    async with controlling(platform, reconcile):
        report = (await until(lambda: platform.reports("complete")))[0]
    assert platform.operations[operation]["status"] == "succeeded"
    assert report.body["health"] == {"status": "healthy", "sentence": "One node is idle."}
    assert report.body["members"] == [{"member_id": m, "state": "ready"} for m in ("mem_1", "mem_2")]
    assert report.body["access"] == {"ssh": "node-a"}
    assert "evidence" not in report.body


async def test_again_is_called_again_with_the_claim_kept_and_a_fresh_instance(platform: Platform) -> None:
    seen: list[str] = []

    async def reconcile(work: Work) -> Done | Again:
        seen.append(work.instance.state)
        return Again(0.05, "the daemon is starting") if len(seen) < 3 else Done("Up.")

    operation = platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: len(seen) == 1)
        platform.instance = lambda old=platform.instance: {**old(), "state": "changed"}  # type: ignore[method-assign]
        await until(lambda: platform.reports("complete"))
    assert seen == ["provisioning", "changed", "changed"]
    assert platform.epochs[operation] == 1


async def test_failed_reports_code_sentence_and_way_out(platform: Platform) -> None:
    async def reconcile(work: Work) -> Failed:
        return Failed("disk_full", "node-a is full.", "Free 2 GB, then retry.", retryable=True)

    platform.queue()
    async with controlling(platform, reconcile):
        report = (await until(lambda: platform.reports("fail")))[0]
    output = {"code": "disk_full", "message": "node-a is full.", "way_out": "Free 2 GB, then retry.", "retryable": True}
    assert report.body["error"] == output


async def test_an_unexpected_exception_is_a_retryable_failure_without_its_inner_text(platform: Platform) -> None:
    async def reconcile(work: Work) -> Done:
        raise KeyError("secret-munge-key")

    platform.queue()
    async with controlling(platform, reconcile):
        error = (await until(lambda: platform.reports("fail")))[0].body["error"]
    assert error["code"] == "internal_error"
    assert error["retryable"] is True
    assert "secret-munge-key" not in str(error)
    assert "cor-of-op_1" in error["way_out"]


async def test_an_api_error_is_tried_again_with_backoff(platform: Platform) -> None:
    calls: list[int] = []

    async def reconcile(work: Work) -> Done:
        calls.append(1)
        if len(calls) < 4:
            raise errors.ConnectionFailed("The platform does not answer.")
        return Done("Up.")

    platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: platform.reports("complete"))
    assert len(calls) == 4
    assert platform.reports("fail") == []


async def test_a_machine_that_stays_unreachable_fails_in_its_own_words(platform: Platform) -> None:
    async def reconcile(work: Work) -> Done:
        raise errors.MachineUnreachable("node-a cannot be reached.")

    platform.queue()
    async with controlling(platform, reconcile):
        error = (await until(lambda: platform.reports("fail")))[0].body["error"]
    assert error["code"] == "machine_unreachable"
    assert error["message"] == "node-a cannot be reached."
    assert error["way_out"]


async def test_a_wrong_host_identity_fails_at_once_and_is_not_retryable(platform: Platform) -> None:
    calls: list[int] = []

    async def reconcile(work: Work) -> Done:
        calls.append(1)
        raise errors.HostIdentityWrong("It is another machine.")

    platform.queue()
    async with controlling(platform, reconcile):
        error = (await until(lambda: platform.reports("fail")))[0].body["error"]
    assert (error["code"], error["retryable"], len(calls)) == ("host_identity_wrong", False, 1)


async def test_a_result_that_the_platform_refuses_becomes_a_failure_that_says_so(platform: Platform) -> None:
    async def reconcile(work: Work) -> Done:
        return Done("Gone.")

    platform.on("POST", r".*/complete", lambda _: problem(422, "teardown_evidence_missing"))
    platform.queue("decommission")
    async with controlling(platform, reconcile):
        error = (await until(lambda: platform.reports("fail")))[0].body["error"]
    assert error["code"] == "teardown_evidence_missing"


async def test_a_kind_without_a_reconciler_fails_and_reports_that_nothing_was_changed(platform: Platform) -> None:
    async def reconcile(work: Work) -> Done:
        raise AssertionError

    platform.queue("upgrade")
    async with controlling(platform, reconcile):
        report = (await until(lambda: platform.reports("fail")))[0].body
    assert (report["error"]["code"], report["undone"]) == ("kind_not_supported", True)


@pytest.mark.usefixtures("short_waits")
async def test_a_report_is_delivered_with_one_key_however_often_the_line_breaks(platform: Platform) -> None:
    left = [7]

    def flaky(call: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise Cut
        return platform._report(call)

    async def reconcile(work: Work) -> Done:
        return Done("Up.")

    platform.on("POST", r".*/complete", flaky)
    operation = platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: platform.operations[operation]["status"] == "succeeded")
    assert len({c.key for c in platform.reports("complete")}) == 1


async def test_a_platform_that_restarts_does_not_upset_the_work(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuaas_sdk.client.transport.MAX_TRIES", 1)
    left, calls = [2], []

    def restarting(call: Any) -> Any:
        left[0] -= 1
        return problem(503, "unavailable") if left[0] >= 0 else platform._report(call)

    async def reconcile(work: Work) -> Done:
        calls.append(1)
        await work.progress("starting", 1, 1, "Starting.")
        return Done("Up.")

    platform.lease_s = 10
    platform.on("POST", r".*/progress", restarting)
    platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: platform.reports("complete"))
    assert len(calls) == 1
    assert len({c.key for c in platform.reports("progress")}) == 1


async def test_a_wish_to_cancel_reaches_the_work_with_a_heartbeat(platform: Platform) -> None:
    async def reconcile(work: Work) -> Failed:
        await until(lambda: work.cancel_requested)
        return Failed("canceled", "Canceled on request.", "Deploy again.")

    operation = platform.queue()
    platform.cancel.add(operation)
    async with controlling(platform, reconcile):
        assert (await until(lambda: platform.reports("fail")))[0].body["error"]["code"] == "canceled"


# --- correlation, concurrency, stopping


async def test_every_call_of_a_work_carries_the_operations_correlation_id(platform: Platform) -> None:
    async def reconcile(work: Work) -> Done:
        await work.progress("starting", 1, 1, "Starting.")
        await asyncio.sleep(0.3)
        await work.client.get_instance("prj_1", "inst_1")
        return Done("Up.")

    operation = platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: platform.reports("complete"))
    about_it = [c for c in platform.calls if not c.path.endswith("/claim")]
    assert {c.headers["x-correlation-id"] for c in about_it} == {f"cor-of-{operation}"}
    assert {c.path.rsplit("/", 1)[1] for c in about_it} >= {"progress", "heartbeat", "complete", "inst_1"}


async def test_never_more_work_at_once_than_allowed_and_held_work_is_named(platform: Platform) -> None:
    now_running, most, done = [0], [0], []

    async def reconcile(work: Work) -> Done:
        now_running[0] += 1
        most[0] = max(most[0], now_running[0])
        await asyncio.sleep(0.15)
        now_running[0] -= 1
        done.append(work.operation.id)
        return Done("Up.")

    operations = [platform.queue() for _ in range(6)]
    async with controlling(platform, reconcile, concurrency=2):
        await until(lambda: len(platform.reports("complete")) == 6)
    assert sorted(done) == operations
    assert most[0] == 2
    second_claim = platform.seen("POST", r".*/claim")[1]
    assert second_claim.body["holding"] == ["op_1"]
    assert second_claim.body["holder"] == "ctl-1"


async def test_a_slow_reconcile_does_not_keep_another_operation_waiting(platform: Platform) -> None:
    release = asyncio.Event()

    async def reconcile(work: Work) -> Done:
        if work.operation.id == "op_1":
            await release.wait()
        return Done("Up.")

    slow, quick = platform.queue(), platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: platform.operations[quick]["status"] == "succeeded")
        assert platform.operations[slow]["status"] == "running"
        release.set()
        await until(lambda: platform.operations[slow]["status"] == "succeeded")


async def test_a_stop_lets_the_current_step_finish_and_report(platform: Platform) -> None:
    began: list[int] = []

    async def reconcile(work: Work) -> Done:
        began.append(1)
        await until(lambda: work.stopping)
        await asyncio.sleep(0.1)
        return Done("Finished the step.")

    operation = platform.queue()
    async with controlling(platform, reconcile) as stop:
        await until(lambda: began)
        stop.set()
    assert platform.operations[operation]["status"] == "succeeded"


async def test_a_claim_that_is_answered_while_we_stop_is_handed_back(platform: Platform) -> None:
    stopping = threading.Event()

    def slow_answer(call: Any) -> Any:
        answer = platform._claim(call)
        stopping.wait(60)
        return answer

    async def reconcile(work: Work) -> Done:
        raise AssertionError("nothing new is begun")

    platform.on("POST", r".*/claim", slow_answer)
    operation = platform.queue()
    async with controlling(platform, reconcile) as stop:
        await until(lambda: platform.operations[operation]["status"] == "running")
        stop.set()
        stopping.set()
    assert platform.operations[operation]["status"] == "queued"
    assert len(platform.reports("return-claim")) == 1


async def test_a_stop_hands_waiting_work_back_at_once(platform: Platform) -> None:
    calls: list[int] = []

    async def reconcile(work: Work) -> Again:
        calls.append(1)
        return Again(60, "waiting for the daemon")

    operation = platform.queue()
    async with controlling(platform, reconcile) as stop:
        await until(lambda: calls)
        stopped = now()
        stop.set()
    assert now() - stopped < 2
    assert platform.operations[operation]["status"] == "queued"
    assert platform.reports("return-claim")[0].body["retry_in_s"] == 0
    assert "stopping" in platform.reports("return-claim")[0].body["reason"]


async def test_a_stop_does_not_wait_for_ever_for_a_step(platform: Platform) -> None:
    stubborn = Stubborn()
    operation = platform.queue()
    async with controlling(platform, stubborn) as stop:
        await until(lambda: stubborn.began)
        stop.set()
    assert stubborn.cancelled
    assert platform.operations[operation]["status"] == "queued"


async def test_a_platform_that_is_away_is_waited_for(platform: Platform) -> None:
    left = [2]

    def away(call: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            return problem(503, "unavailable")
        return platform._claim(call)

    async def reconcile(work: Work) -> Done:
        return Done("Up.")

    platform.on("POST", r".*/claim", away)
    platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: platform.reports("complete"))


async def test_the_same_operation_claimed_again_ends_the_former_work_first(platform: Platform) -> None:
    """Our lease had ended on the platform's side: it hands the operation out again, to us, with a higher epoch."""
    running: list[int] = []
    log: list[str] = []

    async def reconcile(work: Work) -> Done:
        log.append(f"begin {work.claim_epoch}")
        running.append(work.claim_epoch)
        assert len(running) == 1, "two works on one operation"
        try:
            if work.claim_epoch == 1:
                await asyncio.sleep(60)
            return Done("Up.")
        finally:
            running.remove(work.claim_epoch)

    platform.on("POST", r".*/heartbeat", lambda _: (200, {"lease_expires_in_s": 2, "cancel_requested": False}))
    operation = platform.queue()
    async with controlling(platform, reconcile):
        await until(lambda: log)
        with platform.changed:
            platform.waiting.append(platform.operations[operation])
            platform.changed.notify_all()
        await until(lambda: platform.operations[operation]["status"] == "succeeded")
    assert log == ["begin 1", "begin 2"]


def test_a_controller_without_a_project_is_refused() -> None:
    with pytest.raises(ValueError, match="project"):
        Controller(AsyncClient("http://127.0.0.1:1"), "slurm", "x", {})
