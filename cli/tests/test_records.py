"""What happened: events, the audit trail and triage, on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gpuaas_sdk import models as m

from cli.tests.support.cli_stack import Gpuaas, Scene
from sdk.tests.support.fake_platform import problem, wire


def test_events_are_listed_and_json_is_one_per_line(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Installing", "Starting")
    assert gpuaas("events") == 0
    assert "1/2 Installing" in capsys.readouterr().out
    assert gpuaas("events", "--after", "0", "-o", "json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["sequence"] for line in lines] == [1, 2, 3]


def test_following_events_goes_on_until_the_person_leaves(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.plays("Installing", "Starting")
    naps: list[float] = []

    def nap(_: float) -> None:
        naps.append(1)
        if len(naps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("gpuaas_sdk.client.events.time.sleep", nap)
    monkeypatch.setattr("gpuaas_sdk.client.events.follow.__kwdefaults__", {**_defaults(), "sleep": nap})
    assert gpuaas("events", "--follow", "--after", "0", "-o", "json") == 130
    assert [json.loads(line)["sequence"] for line in capsys.readouterr().out.splitlines()] == [1, 2, 3]


def _defaults() -> dict[str, object]:
    from gpuaas_sdk.client.events import follow

    return dict(follow.__kwdefaults__ or {})


def test_the_audit_trail_is_searched_by_the_platform(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    asked: list[dict[str, str]] = []
    scene.platform.on(
        "GET", "/v1/tenants/ten_1/audit", lambda c: asked.append(c.query) or (200, {"items": [], "next_after": 0})
    )
    wanted = ("--actor", "usr_1", "--permission", "apps.", "--outcome", "denied", "--correlation", "cor-1")
    assert gpuaas("audit", "list", *wanted, "--project", "red") == 0
    assert "No audit rows" in capsys.readouterr().out
    query = {
        "actor": "usr_1",
        "permission": "apps.",
        "outcome": "denied",
        "correlation_id": "cor-1",
        "project": "prj_1",
    }
    assert asked == [{"before": "0", "limit": "200"} | query]


def test_the_newest_audit_rows_are_asked_for_from_the_end(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    def answer(call: Any) -> tuple[int, dict[str, object]]:
        last, limit = int(call.query["before"]) or 9, int(call.query["limit"])
        numbers = range(last - 1, max(0, last - 1 - limit), -1)
        rows = [scene._row() | {"sequence": number} for number in numbers]
        return 200, {"items": rows, "next_after": numbers[-1]}

    scene.platform.on("GET", "/v1/tenants/ten_1/audit", answer)
    assert gpuaas("audit", "list", "--limit", "3", "-o", "json") == 0
    assert [row["sequence"] for row in json.loads(capsys.readouterr().out)] == [6, 7, 8]
    assert gpuaas("audit", "list", "--after", "6", "-o", "json") == 0
    assert [row["sequence"] for row in json.loads(capsys.readouterr().out)] == [7, 8]


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_broken_audit_trail_ends_badly_and_says_where(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, output: str
) -> None:
    broken = {"sequence": 3, "sentence": "Row 3 is not as it was written.", "way_out": "Find out who."}
    scene.verdict |= {"ok": False, "sentence": broken["sentence"], "broken": broken}
    assert gpuaas("audit", "verify", "-o", output) == 9
    printed = capsys.readouterr()
    assert "Row 3 is not as it was written. First break: row 3." in printed.err
    assert "Find out who." in printed.err
    assert output == "table" or json.loads(printed.out)["broken"]["sequence"] == 3


TRIAGE = wire(
    m.TriageView,
    correlation_id="cor-of-op",
    verdict=wire(m.VerdictView, what="It failed.", why="The disk is full.", way_out="Free space.", code="disk_full"),
    timeline=[
        wire(
            m.EntryView, at="2026-11-15T12:00:00.000Z", source="core", kind="request", level="info", sentence="POST /x"
        ),
        wire(
            m.EntryView,
            at="2026-11-15T12:00:01.250Z",
            source="host",
            kind="command",
            level="error",
            sentence="a\x1b[2Jb\nc",
        ),
    ],
)


def test_triage_tells_the_verdict_first_and_then_everything_in_order(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.platform.on("GET", r"/v1/triage/cor-of-op", lambda _call: (200, TRIAGE))
    assert gpuaas("triage", "cor-of-op") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["What:", "It", "failed."]
    assert lines[1].endswith("The disk is full. (disk_full)")
    assert lines[2].split(maxsplit=2) == ["First", "symptom:", "a[2Jb c"]
    assert lines[3] == "What you can do: Free space."
    assert "2026-11-15" in lines[5]
    assert lines[6].endswith("  core  request  POST /x")
    assert lines[7].endswith("! host  command  a[2Jb c"), "a log line cannot steer the terminal"


def test_the_first_sign_is_neither_a_span_nor_the_verdict_again(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"at": "2026-11-15T12:00:00.000Z", "source": "controller", "level": "error"}
    span = wire(m.EntryView, **entry, kind="span", sentence="deploy, claim 1 took 9 ms, with an error")
    again = wire(m.EntryView, **entry, kind="log", sentence="operation fails: The disk is full.")
    scene.platform.on("GET", r"/v1/triage/cor-of-op", lambda _call: (200, {**TRIAGE, "timeline": [span, again]}))
    assert gpuaas("triage", "cor-of-op") == 0
    assert "First symptom" not in capsys.readouterr().out


def test_triage_speaks_json(gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.platform.on("GET", r"/v1/triage/cor-of-op", lambda _call: (200, TRIAGE))
    assert gpuaas("triage", "cor-of-op", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["code"] == "disk_full"


@pytest.mark.parametrize("what", ["train", "op_1", "inst_1"])
def test_triage_takes_an_instance_or_an_operation_as_well(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    scene.platform.on("GET", r"/v1/triage/cor-of-op", lambda _call: (200, TRIAGE))
    scene.platform.on("GET", r"/v1/triage/train", lambda _call: problem(404, "not_found"))
    assert gpuaas("triage", what) == 0
    assert "The disk is full. (disk_full)" in capsys.readouterr().out


def test_triage_of_a_word_that_is_nothing_says_what_it_takes(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.platform.on("GET", r"/v1/triage/trian", lambda _call: problem(404, "not_found"))
    assert gpuaas("triage", "trian") == 5
    assert "the id of an operation, or an instance's name" in capsys.readouterr().err


def test_an_unknown_id_is_not_found(gpuaas: Gpuaas, scene: Scene) -> None:
    scene.platform.on("GET", r"/v1/triage/cor-none", lambda _call: problem(404, "not_found"))
    assert gpuaas("triage", "cor-none") == 5
