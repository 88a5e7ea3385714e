"""For scripts and for people with several platforms: formats, watching, keys of one's own, contexts, completion, explain."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gpuaas_cli import failures, watch
from gpuaas_cli.batches import Living
from gpuaas_cli.completing import SHELLS, candidates
from gpuaas_sdk import errors

from cli.tests.support.cli_stack import Gpuaas, Scene
from cli.tests.test_deploy import moment
from sdk.tests.support.fake_platform import Platform, problem

ROOT = Path(__file__).parents[2]


# --- formats


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("command", [("instance", "show", "train"), ("allocation", "list"), ("audit", "verify")])
def test_yaml_says_what_json_says(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    assert gpuaas(*command, "-o", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert gpuaas(*command, "-o", "yaml") == 0
    assert yaml.safe_load(capsys.readouterr().out) == data
    assert gpuaas(*command, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == data, "the format holds for one command"


def test_events_are_a_stream_of_yaml_documents(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Installing", "Starting")
    assert gpuaas("events", "--after", "0", "-o", "yaml") == 0
    assert [one["sequence"] for one in yaml.safe_load_all(capsys.readouterr().out)] == [1, 2, 3]


# --- watching


def looks(scene: Scene, *states: str | None) -> list[float]:
    """What the platform says to one look after the other; None is no answer. Then the person leaves."""
    naps: list[float] = []
    left = list(states)

    def answer(_: object) -> tuple[object, ...]:
        state = left.pop(0)
        if state is None:
            return problem(503, "unavailable")
        return 200, {"items": [{**scene.instance, "state": state}], "next_cursor": None}

    scene.platform.on("GET", "/v1/projects/prj_1/instances", answer)
    return naps


@pytest.fixture
def nap(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch.watch, "__kwdefaults__", {"sleep": sleep})
    return naps


def test_watching_prints_what_changed_and_survives_silence(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, nap: list[float]
) -> None:
    looks(scene, "provisioning", "provisioning", None, "running")
    assert gpuaas("instance", "list", "--watch", "--every", "7", "-o", "yaml") == 130
    printed = capsys.readouterr()
    assert [one[0]["state"] for one in pages(printed.out)] == ["provisioning", "running"]
    assert "Retrying" in printed.err
    assert nap == [7, 7, 7, 7]


def pages(text: str) -> list[list[dict[str, str]]]:
    """Each page is one YAML list; the next begins where an id comes again."""
    return [yaml.safe_load(part) for part in re.split(r"(?m)^(?=- id:)", text) if part.strip()]


def test_on_a_terminal_the_page_is_redrawn(
    gpuaas: Gpuaas, scene: Scene, nap: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks(scene, "provisioning", "running", "running", "running")
    terminal = type("Terminal", (io.StringIO,), {"isatty": lambda self: True})()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "200")
    assert gpuaas("instance", "list", "-w") == 130
    assert terminal.getvalue().count(watch.CLEAR) == 2, "the same page is not drawn twice"


def test_watching_ends_with_an_error_that_looking_again_will_not_mend(gpuaas: Gpuaas, scene: Scene) -> None:
    scene.platform.on("GET", "/v1/projects/prj_1/instances", lambda _: problem(403, "permission_denied"))
    assert gpuaas("instance", "list", "--watch") == 4


# --- one intention


def test_a_key_of_ones_own_goes_with_the_change_and_not_with_its_plan(gpuaas: Gpuaas, scene: Scene) -> None:
    deploy = ("instance", "deploy", "slurm", "--name", "train", "--place", "controller=node-a")
    mine = ("--idempotency-key", "deploy-train-2026-11-16")
    assert gpuaas(*deploy, "--plan", *mine) == 0
    assert gpuaas(*deploy, "--no-wait", *mine) == 0
    assert gpuaas(*deploy, "--no-wait") == 0
    plan, first, other = [call.key for call in scene.platform.seen("POST", ".*/instances")]
    assert first == "deploy-train-2026-11-16"
    assert first not in (plan, other)


def test_waiting_is_the_default_and_can_be_said(gpuaas: Gpuaas, scene: Scene) -> None:
    for more, waits in (((), True), (("--wait",), True), (("--no-wait",), False)):
        scene.plays("Stopping")
        streams = len(scene.platform.seen("GET", ".*/events/stream"))
        assert gpuaas("instance", "stop", "train", *more) == 0
        assert (len(scene.platform.seen("GET", ".*/events/stream")) > streams) == waits


# --- several at once


def test_members_are_added_side_by_side_and_seen_to_their_end(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.plays("Installing", "Joining")
    assert gpuaas("member", "add", "train", "worker", "node-a") == 0
    printed = capsys.readouterr().out
    assert "Adding 1 × worker to train" in printed
    assert "worker 1: 2/2 Joining" in printed
    assert "1 of 1 succeeded. train is healthy." in printed


def test_a_member_that_did_not_come_up_is_9_and_says_why(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    error = {"code": "disk_full", "message": "node-a is full.", "way_out": "Free 2 GB.", "retryable": True}
    scene.plays("Installing", ends="failed", error=error)
    assert gpuaas("member", "add", "train", "worker", "node-a", "-o", "json") == 9
    printed = capsys.readouterr()
    assert json.loads(printed.out)["operations"][0]["status"] == "failed"
    assert "Free 2 GB." in printed.err


def test_on_a_terminal_each_has_its_bar() -> None:
    from rich.console import Console

    living = Living("Adding 2", {"op_1": "worker/0 on a", "op_2": "worker/1 on b"})
    living.saw("op_1", moment(2, "Installing", 0))
    living.saw("op_2", moment(1, "Checking", 0))
    living.saw("op_2", moment(1, "", 1, status="succeeded"))
    page = Console(file=io.StringIO(), width=100, force_terminal=False)
    page.print(living._render())
    first, second = page.file.getvalue().splitlines()[1:3]  # type: ignore[union-attr]
    assert first.startswith("worker/0 on a")
    assert first.rstrip().endswith("Installing")
    assert second.rstrip().endswith("succeeded")
    assert first.count("━") < second.count("━") == 40


# --- several platforms


def sign_in(gpuaas: Gpuaas, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    for name in ("GPUAAS_API", "GPUAAS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\n"))
    return gpuaas("login", "--email", "ada@example.com", "--password-stdin", *more)


def test_two_platforms_side_by_side_each_with_its_own_token(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = Platform()
    try:
        other = Scene(night)
        night.on("POST", "/v1/sign-in", lambda _: (200, {"access_token": "dark", "expires_in": 9, "principal_id": "u"}))
        assert sign_in(gpuaas, monkeypatch, "--api", scene.platform.url) == 0
        assert sign_in(gpuaas, monkeypatch, "--context", "night", "--api", night.url) == 0
        assert gpuaas("catalog") == 0
        assert other.platform.calls[-1].headers["authorization"] == "Bearer dark", "the newest one is current"
        day = scene.platform.url.split("://")[1]
        assert gpuaas("context", "use", day, "--project", "red") == 0
        assert gpuaas("catalog") == 0
        assert scene.platform.calls[-1].headers["authorization"] == "Bearer fresh"
        assert gpuaas("catalog", "--context", "night") == 0
        assert other.platform.calls[-1].path.endswith("/catalog")
        monkeypatch.setenv("GPUAAS_CONTEXT", "night")
        seen = len(other.platform.calls)
        assert gpuaas("catalog") == 0
        assert len(other.platform.calls) > seen
        monkeypatch.delenv("GPUAAS_CONTEXT")
        capsys.readouterr()
        assert gpuaas("context", "list", "-o", "json") == 0
        listed = capsys.readouterr().out
        assert {one["name"]: one["current"] for one in json.loads(listed)} == {day: True, "night": False}
        assert "dark" not in listed, "tokens are not shown"
        assert stat.S_IMODE((home / "config.json").stat().st_mode) == 0o600
        assert gpuaas("logout", "--context", "night") == 0
        assert gpuaas("catalog", "--context", "night") == 3
        assert gpuaas("catalog") == 0, "the other one is still signed in"
        assert gpuaas("context", "remove", "night") == 0
        assert gpuaas("catalog", "--context", "night") == 5
    finally:
        night.close()


def test_the_environments_token_does_not_go_to_a_named_context(
    gpuaas: Gpuaas, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sign_in(gpuaas, monkeypatch, "--context", "day", "--api", scene.platform.url) == 0
    monkeypatch.setenv("GPUAAS_API", "http://127.0.0.1:1")
    monkeypatch.setenv("GPUAAS_TOKEN", "of-another-platform")
    assert gpuaas("catalog", "--context", "day") == 0
    assert scene.platform.calls[-1].headers["authorization"] == "Bearer fresh"


def test_the_file_of_a_cli_that_knew_one_platform_is_understood(
    gpuaas: Gpuaas, scene: Scene, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GPUAAS_API", "GPUAAS_TOKEN"):
        monkeypatch.delenv(name)
    (home / "config.json").write_text(json.dumps({"api": scene.platform.url, "token": "old", "project": "red"}))
    assert gpuaas("catalog") == 0
    assert scene.platform.calls[-1].headers["authorization"] == "Bearer old"
    assert gpuaas("context", "use", "default") == 0
    assert json.loads((home / "config.json").read_text())["contexts"]["default"]["token"] == "old"


# --- what an error means


@pytest.mark.parametrize("code", ["allocation_in_use", "connection_failed"])
def test_an_error_code_is_explained_without_asking_anybody(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    assert gpuaas("explain", code) == 0
    printed = capsys.readouterr().out
    assert "What you can do" in printed
    assert re.search(r"Exit code +[68], ", printed)
    assert gpuaas("explain", code, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["code"] == code


def test_every_code_of_the_platform_has_an_exit_code_that_has_a_meaning(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpuaas("explain", "-o", "json") == 0
    explained = {one["code"]: one["exit_code"] for one in json.loads(capsys.readouterr().out)}
    assert set(errors.known_problems()) < set(explained)
    assert failures.BUG not in explained.values(), "an error the platform can name is no bug of the CLI"
    assert gpuaas("explain", "no_such_code") == failures.NOT_FOUND


def test_the_guide_lists_the_exit_codes_as_they_are() -> None:
    guide = (ROOT / "docs" / "guides" / "cli.md").read_text()
    listed = {int(code): words for code, words in re.findall(r"(?m)^\| (\d+) \| (.+?) \|$", guide)}
    assert listed == failures.MEANINGS


# --- completion


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["inst"], ["instance"]),
        (["instance", "dec"], ["decommission"]),
        (["instance", "list", "--wat"], ["--watch"]),
        (["catalog", "-o", ""], ["json", "table", "yaml"]),
        (["instance", "show", ""], ["train"]),
        (["instance", "show", "--project", "red", "tr"], ["train"]),
        (["member", "add", "train", "worker", ""], ["big"]),
        (["ssh", "train", ""], ["controller/0"]),
        (["ssh", ""], ["train"]),
        (["instance", "deploy", "slurm", "--place", ""], ["controller=big", "worker=big"]),
        (["instance", "deploy", ""], ["slurm"]),
        (["operation", "show", "tr"], ["train"]),
        (["allocation", "release", ""], ["big"]),
        (["node", "show", ""], ["node-a"]),
        (["node", "enrol", ""], []),
        (["catalog", "--project", ""], ["red"]),
        (["instance", "show", "train", "--nope"], []),
        (["nope", ""], []),
    ],
)
@pytest.mark.usefixtures("scene")
def test_commands_options_and_names_are_completed(words: list[str], expected: list[str]) -> None:
    assert candidates(words) == expected


def test_bash_completes_with_the_printed_script(scene: Scene, tmp_path: Path) -> None:
    script = tmp_path / "gpuaas.bash"
    script.write_text(SHELLS["bash"])
    asks = f'. {script}; COMP_WORDS=(gpuaas instance show tr); COMP_CWORD=3; _gpuaas; echo "${{COMPREPLY[@]}}"'
    assert _asked("bash", "-c", asks).stdout == "train\n"


# zsh: as compinit does it, the script is the body of the function; the last word shows what was found.
ZSH = """
fpath=({folder} $fpath); autoload -Uz _gpuaas; compadd() {{ print -l -- ${{(P)2}} }}
words=(gpuaas instance show tr); CURRENT=4; _gpuaas; _gpuaas
compdef() {{ print $1 for $2 }}; . {folder}/_gpuaas
"""


def test_zsh_completes_with_the_printed_script_the_first_time_and_again(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "_gpuaas").write_text(SHELLS["zsh"])
    done = _asked("zsh", "-f", "-c", ZSH.format(folder=tmp_path))
    assert done.stdout.splitlines() == ["train", "train", "_gpuaas for gpuaas"], done.stderr


def test_fish_completes_with_the_printed_script(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "gpuaas.fish").write_text(SHELLS["fish"])
    for typed, expected in (("gpuaas instance show tr", "train\n"), ("gpuaas instance dec", "decommission\n")):
        done = _asked("fish", "-N", "-c", f"source {tmp_path}/gpuaas.fish; complete -C '{typed}'")
        assert done.stdout == expected, done.stderr


def _asked(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=True)


def test_without_a_platform_completion_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "gpuaas_cli", "__complete", "instance", "show", ""]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("", "")
