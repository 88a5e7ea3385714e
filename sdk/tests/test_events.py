"""Following events over a line that breaks: nothing lost, nothing twice, nothing out of order."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from gpuaas_sdk import AsyncClient, Bearer, Client, errors
from gpuaas_sdk.client.events import Position, afollow, follow
from gpuaas_sdk.client.models import EventList, EventView
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sdk.tests.support.fake_platform import Call, Platform, Stream, problem, wire

PATIENT = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def event(sequence: int) -> dict[str, Any]:
    data = {"org_id": "ten_1", "note": "line one\nline two: ü"}
    return wire(EventView, id=f"evt_{sequence}", type="apps.operation.progressed", sequence=sequence, data=data)


def as_sse(sequence: int) -> bytes:
    return f"id: c{sequence}\nevent: message\ndata: {json.dumps(event(sequence))}\n\n".encode()


class Line:
    """The platform's stream of events 1..total, cut after a given number of bytes each time it is opened."""

    def __init__(
        self,
        total: int,
        cuts: list[int],
        *,
        clean: bool = True,
        hidden: frozenset[int] = frozenset(),
        repeats: int = 0,
    ) -> None:
        self.total, self._cuts, self._clean, self._hidden, self._repeats = total, iter(cuts), clean, hidden, repeats
        self.opened: list[str] = []
        self.lists = 0

    def stream(self, call: Call) -> Any:
        last = call.headers.get("last-event-id", "0")
        assert call.query.get("after", "0") == last
        self.opened.append(last)
        start = max(1, int(last.removeprefix("c")) + 1 - self._repeats)
        shown = [s for s in range(start, self.total + 1) if s not in self._hidden]
        whole = b": ping\n\n" + b"".join(as_sse(s) for s in shown)
        return 200, Stream(whole[: next(self._cuts, len(whole))], clean=self._clean)

    def list(self, call: Call) -> Any:
        self.lists += 1
        after = int(call.query["after"].removeprefix("c"))
        page = range(after + 1, min(after + 3, self.total) + 1)
        return 200, wire(EventList, items=[event(s) for s in page], head=self.total)


def serve(platform: Platform, line: Line) -> None:
    platform.handlers.clear()
    for scope in ("tenants/ten_1", "projects/prj_1"):
        platform.on("GET", f"/v1/{scope}/events/stream", line.stream)
        platform.on("GET", f"/v1/{scope}/events", line.list)


def take(client: Client, count: int, **where: Any) -> list[int]:
    events = follow(client, after=0, sleep=lambda _: None, **where)
    return [e.sequence for e in itertools.islice(events, count)]


@PATIENT
@given(
    cuts=st.lists(st.integers(0, 1500), max_size=12),
    clean=st.booleans(),
    total=st.integers(1, 12),
    repeats=st.integers(0, 3),
)
def test_a_stream_cut_anywhere_loses_and_repeats_nothing(
    platform: Platform, client: Client, cuts: list[int], clean: bool, total: int, repeats: int
) -> None:
    """Even if the platform sends some again after a reconnect, as at-least-once delivery may."""
    serve(platform, Line(total, cuts, clean=clean, repeats=repeats))
    assert take(client, total, project_id="prj_1") == list(range(1, total + 1))


@PATIENT
@given(hidden=st.frozensets(st.integers(1, 11)), cuts=st.lists(st.integers(0, 1500), max_size=4))
def test_a_hole_in_a_tenants_stream_is_filled_from_the_list(
    platform: Platform, client: Client, hidden: frozenset[int], cuts: list[int]
) -> None:
    line = Line(12, cuts, hidden=hidden)
    serve(platform, line)
    assert take(client, 12, tenant_id="ten_1") == list(range(1, 13))
    assert bool(line.lists) == bool(hidden)


def test_gaps_in_a_projects_stream_are_normal(platform: Platform, client: Client) -> None:
    line = Line(9, [], hidden=frozenset({2, 3, 7}))
    serve(platform, line)
    assert take(client, 6, project_id="prj_1") == [1, 4, 5, 6, 8, 9]
    assert line.lists == 0


def test_a_hole_that_the_platform_cannot_fill_is_an_error_not_a_silence(platform: Platform, client: Client) -> None:
    serve(platform, Line(5, [], hidden=frozenset({3})))
    platform.on("GET", "/v1/tenants/ten_1/events", lambda _: (200, wire(EventList)))
    with pytest.raises(errors.BadAnswer, match="between 2 and 4"):
        take(client, 5, tenant_id="ten_1")


def test_resuming_names_the_last_event_seen(platform: Platform, client: Client) -> None:
    line = Line(2, [len(b": ping\n\n" + as_sse(1)) + 5])
    serve(platform, line)
    assert take(client, 2, project_id="prj_1") == [1, 2]
    assert line.opened == ["0", "c1"]


def test_a_platform_that_restarts_is_waited_for_and_the_follower_is_told(platform: Platform, client: Client) -> None:
    line, left, reported = Line(3, []), [3], []

    def away(call: Call) -> Any:
        left[0] -= 1
        return line.stream(call) if left[0] < 0 else problem(503, "unavailable")

    serve(platform, line)
    platform.on("GET", "/v1/projects/prj_1/events/stream", away)
    events = follow(
        client, project_id="prj_1", after=0, sleep=lambda _: None, on_line=lambda e: reported.append(e and e.code)
    )
    assert [e.sequence for e in itertools.islice(events, 3)] == [1, 2, 3]
    assert reported == ["unavailable"] * 3 + [None]


@pytest.mark.parametrize(
    ("status", "kind"), [(410, errors.Gone), (404, errors.NotFound), (401, errors.Unauthenticated)]
)
def test_what_waiting_cannot_mend_is_raised(
    platform: Platform, client: Client, status: int, kind: type[Exception]
) -> None:
    platform.on("GET", "/v1/projects/prj_1/events/stream", lambda _: problem(status, "some_code"))
    with pytest.raises(kind):
        take(client, 1, project_id="prj_1")


async def test_the_async_follower_does_the_same(platform: Platform) -> None:
    serve(platform, Line(6, [300, 700], hidden=frozenset({4})))
    seen: list[int] = []
    async with AsyncClient(platform.url, Bearer("tok")) as client:
        async for one in afollow(client, tenant_id="ten_1", after=0):
            seen.append(one.sequence)
            if len(seen) == 6:
                break
    assert seen == [1, 2, 3, 4, 5, 6]


def test_one_tenant_or_one_project() -> None:
    with pytest.raises(ValueError, match="one"):
        Position(None, None, None)
    with pytest.raises(ValueError, match="one"):
        Position("ten_1", "prj_1", None)
