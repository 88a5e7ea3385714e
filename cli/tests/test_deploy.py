"""Deploying and watching: live steps, ends in words, exit codes, and a line that breaks."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from gpuaas_cli.destructive import CONSEQUENCES
from gpuaas_cli.operation_stream import Moment
from gpuaas_cli.progress import Living, Steps
from gpuaas_cli.show import lasting
from gpuaas_sdk.client.models import TriageView

from cli.tests.support.cli_stack import LONG_AGO, Gpuaas, Scene
from cli.tests.test_commands import LOOKING
from cli.tests.test_entry import every_command
from cli.tests.test_reach import options
from sdk.tests.support.fake_platform import problem, wire

DEPLOY = ("instance", "deploy", "slurm", "--name", "train", "--place", "controller=node-a")
ERROR = {"code": "port_in_use", "message": "Port 6817 is taken.", "way_out": "Stop that program.", "retryable": True}


@pytest.fixture(autouse=True)
def _no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuaas_sdk.client.events.Backoff.next", lambda self: 0.0)
    monkeypatch.setattr("gpuaas_cli.operation_stream.POLL_S", 0.01)


def test_a_deploy_shows_its_steps_and_ends_with_health_and_what_next(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Installing Slurm", "Starting the daemon")
    assert gpuaas(*DEPLOY) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == "Deploying train (slurm 1.0.0)"
    assert "1/2 Installing Slurm" in printed
    assert "2/2 Starting the daemon" in printed
    assert "train is healthy: One node is idle." in printed
    assert "gpuaas access train" in printed


def test_a_failed_operation_prints_why_the_way_out_and_exits_9(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Installing Slurm", "Starting the daemon", ends="failed", error=ERROR)
    assert gpuaas(*DEPLOY) == 9
    printed = capsys.readouterr().err
    assert "failed at step 2 of 2. Port 6817 is taken." in printed
    assert "What you can do: Stop that program." in printed
    assert "(code port_in_use, correlation id cor-of-op)" in printed
    assert "gpuaas operation retry op_1" in printed


def test_a_failed_operation_is_valid_json_too(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene) -> None:
    scene.plays("Installing Slurm", ends="failed", error=ERROR)
    assert gpuaas(*DEPLOY, "-o", "json") == 9
    assert json.loads(capsys.readouterr().out)["operation"]["error"]["code"] == "port_in_use"


@pytest.mark.parametrize("status", ["canceled", "needs_attention", "a_status_of_the_future"])
def test_every_end_but_success_is_9(gpuaas: Gpuaas, scene: Scene, status: str) -> None:
    scene.plays("Installing", ends=status)
    assert gpuaas(*DEPLOY) == 9


def test_watching_survives_cuts_and_a_platform_that_restarts(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Checking", "Installing", "Starting", "Proving")
    scene.cuts = [50, 700, 1000]
    opened = [0]

    def restarting(call):
        opened[0] += 1
        return problem(503, "unavailable") if opened[0] == 3 else scene.stream(call)

    scene.platform.on("GET", "/v1/projects/prj_1/events/stream", restarting)
    assert gpuaas("instance", "watch", "train") == 0
    printed = capsys.readouterr().out
    for number, step in enumerate(("Checking", "Installing", "Starting", "Proving"), 1):
        assert printed.count(f"{number}/4 {step}") == 1
    assert "The platform does not answer." in printed
    assert "Reconnected to the platform." in printed
    assert opened[0] == 5


def test_without_the_right_to_read_events_the_operation_is_asked_instead(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Installing")
    asked = [0]

    def operation(_):
        asked[0] += 1
        status = "running" if asked[0] < 5 else "succeeded"
        progress = {"step": 1, "of": 2, "message": "Installing", "percent": 50}
        return 200, scene.make_operation(status=status, progress=progress)

    scene.platform.on("GET", "/v1/projects/prj_1/events/stream", lambda _: problem(403, "permission_denied"))
    scene.platform.on("GET", "/v1/projects/prj_1/operations/op_1", operation)
    assert gpuaas("instance", "watch", "train") == 0
    assert "1/2 Installing" in capsys.readouterr().out


def test_leaving_does_not_stop_the_operation_and_says_so(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.plays("Installing")

    def leave(*_: object, **__: object):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("gpuaas_cli.wait.moments", leave)
    assert gpuaas("instance", "watch", "train") == 130
    assert "continues on the platform" in capsys.readouterr().err


# --- what is sent


@pytest.mark.parametrize("where", ["node-a", "big", "alloc_1"])
def test_a_machine_may_be_named_by_node_by_allocation_or_by_id(gpuaas: Gpuaas, scene: Scene, where: str) -> None:
    scene.plays("Installing")
    assert gpuaas("instance", "deploy", "slurm", "--name", "train", "--place", f"controller={where}") == 0
    assert scene.platform.seen("POST", ".*/instances")[0].body["placement_intent"] == {"controller": ["alloc_1"]}


def test_places_and_inputs_arrive_as_meant(gpuaas: Gpuaas, scene: Scene, tmp_path: Path) -> None:
    scene.plays("Installing")
    file = tmp_path / "inputs.json"
    file.write_text('{"partition": "gpu", "nodes": 1}')
    more = ("--place", "controller=alloc_1", "--place", "worker=alloc_2,alloc_3")
    inputs = ("--inputs", str(file), "--input", "nodes=4", "--input", "debug=true", "--input", "motd=hello world")
    assert gpuaas("instance", "deploy", "slurm", "--name", "train", *more, *inputs) == 0
    body = scene.platform.seen("POST", ".*/instances")[0].body
    assert body["placement_intent"] == {"controller": ["alloc_1"], "worker": ["alloc_2", "alloc_3"]}
    assert body["inputs"] == {"partition": "gpu", "nodes": 4, "debug": True, "motd": "hello world"}
    assert body["topology"] == "multi_node"


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (("worker=alloc_1",), "multi_node (1 controller, 1-64 worker)"),
        (("controller=alloc_1", "workr=alloc_2"), "Components: controller, worker."),
        (("controller=alloc_1", "--topology", "ring"), "Topologies: single_node (1 controller); multi_node"),
    ],
)
def test_a_placement_that_the_app_does_not_know_is_refused_with_what_it_offers(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str], places: tuple[str, ...], words: str
) -> None:
    options = [word for place in places for word in (("--place", place) if "=" in place else (place,))]
    assert gpuaas("instance", "deploy", "slurm", "--name", "train", *options) == 2
    assert words in capsys.readouterr().err
    assert scene.platform.seen("POST", ".*") == []


def test_the_topology_is_the_first_that_fits_unless_one_is_named(gpuaas: Gpuaas, scene: Scene) -> None:
    wanted = {"single_node": (), "multi_node": ("--place", "worker=alloc_2")}
    for topology, more in wanted.items():
        scene.plays("Installing")
        assert gpuaas(*DEPLOY, *more) == 0
        assert scene.platform.seen("POST", ".*/instances")[-1].body["topology"] == topology


def test_an_app_that_is_not_in_the_catalog_is_named_with_the_nearest_one(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpuaas("instance", "deploy", "slrum", "--name", "train", "--place", "controller=big") == 5
    assert "Did you mean slurm?" in capsys.readouterr().err


def test_without_the_right_to_read_the_catalog_the_platform_checks_the_placement(gpuaas: Gpuaas, scene: Scene) -> None:
    scene.plays("Installing")
    scene.platform.on("GET", "/v1/projects/prj_1/catalog", lambda _: problem(403, "permission_denied"))
    assert gpuaas(*DEPLOY) == 0


def test_the_operator_is_named_by_name_and_sent_by_id(
    gpuaas: Gpuaas, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.plays("Installing")
    assert gpuaas(*DEPLOY, "--operator", "unknown") != 0
    assert "gpuaas service-account list" in capsys.readouterr().err
    assert gpuaas(*DEPLOY, "--operator", "robot") == 0
    (sent,) = scene.platform.seen("POST", ".*/instances")
    assert sent.body["operator_id"] == "sa_1"


def test_one_command_has_one_correlation_id(gpuaas: Gpuaas, scene: Scene) -> None:
    scene.plays("Installing")
    gpuaas(*DEPLOY)
    assert len({call.headers["x-correlation-id"] for call in scene.platform.calls}) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("--place", "controller"),
        ("--place", "controller=node-a", "--input", "nokey"),
        ("--place", "controller=node-a", "--inputs", "/no/such/file"),
    ],
)
def test_what_cannot_be_understood_is_a_usage_error_before_anything_is_sent(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, wrong: tuple[str, ...]
) -> None:
    assert gpuaas("instance", "deploy", "slurm", "--name", "train", *wrong) == 2
    assert "What you can do" in capsys.readouterr().err
    assert scene.platform.seen("POST", ".*") == []


@pytest.mark.parametrize(("typed", "code"), [("train", 0), ("no", 2)])
def test_on_a_terminal_decommission_asks_first(
    gpuaas: Gpuaas, scene: Scene, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin", type("Tty", (io.StringIO,), {"isatty": lambda self: True})(typed + "\n"))
    assert gpuaas("instance", "decommission", "train", "--no-wait") == code
    assert len(scene.platform.seen("POST", ".*/decommission")) == (1 if code == 0 else 0)


# --- the living view


def moment(step: int, message: str, at: float, status: str = "running") -> Moment:
    return Moment(status, step, 3, message, datetime(2026, 11, 15, tzinfo=UTC) + timedelta(seconds=at))


def test_a_step_ends_when_the_next_begins_and_a_new_message_only_renames_it() -> None:
    steps = Steps()
    for one in (moment(1, "Checking", 0), moment(1, "Checking the disk", 1), moment(2, "Installing", 4)):
        steps.saw(one)
    assert [(s.message, s.ended is not None) for s in steps.steps] == [
        ("Checking the disk", True),
        ("Installing", False),
    ]
    assert steps.steps[0].seconds() == 4
    steps.saw(moment(2, "", 9, status="succeeded"))
    assert steps.steps[1].seconds() == 5


def test_a_restarted_controller_shows_its_steps_again() -> None:
    steps = Steps()
    for one in (moment(1, "Checking", 0), moment(2, "Installing", 1), moment(1, "Checking", 2)):
        steps.saw(one)
    assert [s.message for s in steps.steps] == ["Checking", "Installing", "Checking"]


@pytest.mark.parametrize(("ends", "mark"), [("succeeded", "✓"), ("failed", "✗")])
def test_on_a_terminal_steps_get_check_marks(ends: str, mark: str) -> None:
    from rich.console import Console

    living = Living("Deploying train")
    for one in (moment(1, "Checking [the] disk", 0), moment(2, "Installing", 4)):
        living.saw(one)
    page = Console(file=io.StringIO(), width=60, force_terminal=False)
    page.print(living._render())
    running = page.file.getvalue()  # type: ignore[union-attr]
    assert "✓ Checking [the] disk" in running
    assert "2 of 3" in running
    living.saw(moment(2, "", 9, status=ends))
    page = Console(file=io.StringIO(), width=60, force_terminal=False)
    page.print(living._render())
    assert f"{mark} Installing" in page.file.getvalue()  # type: ignore[union-attr]


@pytest.mark.parametrize(("seconds", "words"), [(0.42, "0.4 s"), (12.3, "12 s"), (200, "3 min 20 s")])
def test_durations_are_words(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


def test_work_on_one_member_ends_with_its_own_sentence_not_with_the_instances(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Waiting for job 7", says="Nothing runs on node-a any more.")
    scene.operation |= {"kind": "drain_member", "member_id": "mem_1"}
    assert gpuaas("member", "drain", "train", "controller/0") == 0
    printed = capsys.readouterr().out
    assert "\nNothing runs on node-a any more.\n" in printed
    assert "is healthy" not in printed
    assert "gpuaas member list train" in printed


def test_members_without_machines_are_asked_for_them(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpuaas("member", "add", "train", "worker") == 2
    assert "No node was named." in capsys.readouterr().err


def test_an_operation_that_gave_way_to_a_later_one_is_not_offered_again(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Installing", ends="superseded")
    assert gpuaas("instance", "restart", "train") == 9
    printed = capsys.readouterr().err
    assert "was superseded by a newer operation" in printed
    assert "gpuaas operation show train" in printed
    assert "retry" not in printed


def test_a_plan_shows_what_an_hour_costs_where_it_is_known(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    plan = scene._plan()
    dear = {**plan["hosts"][0], "sku": "h100", "price_micros_per_hour": 23_500_000, "currency": "EUR"}
    priced = {**plan, "hosts": [dear, plan["hosts"][0]]}
    scene.platform.on("POST", "/v1/projects/prj_1/instances", lambda _: (200, {"plan": priced}))
    assert gpuaas(*DEPLOY, "--plan") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines if "node-a" in line] == ["EUR", "-"]
    assert "23.50 EUR" in "".join(lines)


def test_a_stuck_operation_has_not_ended_and_says_why_it_waits(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Installing")
    scene.steps = [{"type": "stuck", "reason": "unclaimed"}, {"type": "unstuck"}, *scene.steps]
    waiting = {"reason": "unclaimed", "message": "No controller has claimed it.", "since": LONG_AGO}
    stuck = [None, waiting, None]

    def operation(_):
        if stuck:
            return 200, scene.make_operation(status="queued", stuck=stuck.pop(0))
        return 200, scene.operation

    scene.platform.on("GET", "/v1/projects/prj_1/operations/op_1", operation)
    assert gpuaas(*DEPLOY) == 0
    printed = capsys.readouterr()
    assert "No controller has claimed it." in printed.out
    assert "1/1 Installing" in printed.out
    assert "Error" not in printed.err


def test_a_name_means_the_newest_operation_also_of_a_member(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    """`last_operation_id` of the instance is still the deploy."""
    newest = scene.make_operation(
        id="op_2", kind="add_member", member_id="mem_2", status="failed", error=ERROR, correlation_id="cor-of-add"
    )
    page = {"items": [newest], "next_cursor": None, "event_sequence": 0}
    scene.platform.on("GET", "/v1/projects/prj_1/operations", lambda _: (200, page))
    assert gpuaas("operation", "show", "train") == 0
    assert "Port 6817 is taken." in capsys.readouterr().out
    asked = scene.platform.seen("GET", "/v1/projects/prj_1/operations")[-1].query
    assert asked == {"instance_id": "inst_1", "newest_first": "true", "limit": "1"}
    found = wire(TriageView, correlation_id="cor-of-add")
    scene.platform.on("GET", "/v1/triage/train", lambda _: problem(404, "not_found"))
    scene.platform.on("GET", "/v1/triage/cor-of-add", lambda _: (200, found))
    assert gpuaas("triage", "train") == 0
    assert scene.platform.seen("GET", "/v1/triage/cor-of-add")


# --- destructive commands


def test_every_destructive_command_is_in_the_table_and_nothing_else_is() -> None:
    asking = {" ".join(words) for words in every_command() if "--yes" in options(words)}
    assert asking == set(CONSEQUENCES)
    verbs = [
        "decommission",
        "remove",
        "delete",
        "revoke",
        "disable",
        "retire",
        "wipe",
        "release",
        "withdraw",
        "tombstone",
        "abandon",
        "unbind",
    ]
    destroys = {name for words in every_command() if (name := " ".join(words)).split()[-1].split("-")[0] in verbs}
    harmless = {"context remove", "operation release-claim"}  # forgets a sign-in here; another controller goes on
    assert destroys - asking == harmless


@pytest.mark.parametrize("words", [words for words in LOOKING if "--yes" in words], ids=" ".join)
def test_without_a_terminal_a_destructive_command_needs_yes(
    gpuaas: Gpuaas,
    capsys: pytest.CaptureFixture[str],
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert gpuaas(*(word for word in words if word != "--yes")) == 2
    assert "Add --yes" in capsys.readouterr().err
    assert not [call for call in scene.platform.calls if call.method != "GET"]


@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("", 2), ("n", 2)])
def test_on_a_terminal_a_destructive_command_says_what_happens_and_asks(
    gpuaas: Gpuaas,
    capsys: pytest.CaptureFixture[str],
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    code: int,
) -> None:
    monkeypatch.setattr("sys.stdin", type("Tty", (io.StringIO,), {"isatty": lambda self: True})(typed + "\n"))
    assert gpuaas("service-account", "delete", "robot", "-o", "json") == code
    printed = capsys.readouterr()
    assert "service-account delete robot: The account is deleted with its keys, tokens and roles." in printed.err
    assert "Continue?" not in printed.out
    assert len(scene.platform.seen("POST", ".*/delete")) == (1 if code == 0 else 0)
