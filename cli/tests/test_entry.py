"""The door: help everywhere, exit codes by error class, signing in, and a quick start."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from gpuaas_cli.command_tree import HELP, build_app
from gpuaas_sdk import models

from cli.tests.support.cli_stack import Gpuaas, Scene
from sdk.tests.support.fake_platform import Platform, problem, wire

GROUPS = (
    "instance",
    "app",
    "policy",
    "entitlement",
    "member",
    "operation",
    "orphan",
    "task",
    "secret",
    "credential",
    "grant",
    "ssh-authority",
    "allocation",
    "node",
    "pool",
    "sku",
    "region",
    "quota",
    "artifact",
    "artifact-source",
    "audit",
    "iam",
    "service-account",
    "session",
    "delegation",
    "break-glass",
    "identity-provider",
    "context",
    "tenant",
    "project",
    "user",
    "deny-rule",
)


def every_command() -> list[tuple[str, ...]]:
    app = build_app()
    names = [name for name in app if not name.startswith("-")]
    inner = [(group, name) for group in GROUPS for name in app[group] if not name.startswith("-")]
    return [(name,) for name in names if name not in GROUPS] + inner


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_every_command_explains_itself_with_an_example(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert gpuaas(*command, "--help") == 0
    printed = capsys.readouterr().out
    assert f"Example: gpuaas {' '.join(command)}" in printed
    assert "--output" in printed


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_the_first_page_names_every_command(command: tuple[str, ...]) -> None:
    assert f"gpuaas {' '.join(command)}" in HELP


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_help_is_the_first_page(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert gpuaas(*arguments) == 0
    assert capsys.readouterr().out == HELP


# --- exit codes


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (401, "token_expired", 3),
        (403, "permission_denied", 4),
        (404, "not_found", 5),
        (409, "allocation_in_use", 6),
        (412, "precondition_failed", 6),
        (400, "malformed_body", 7),
        (422, "inputs_invalid", 7),
        (429, "too_many", 8),
        (500, "internal_error", 8),
        (503, "unavailable", 8),
    ],
)
def test_an_error_of_the_platform_has_its_exit_code_and_says_all(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, status: int, code: str, exit_code: int
) -> None:
    fields = [{"pointer": "/inputs/gpus", "message": "must be a number"}]
    scene.platform.on("GET", "/v1/projects/prj_1/catalog", lambda _: problem(status, code, errors=fields))
    assert gpuaas("catalog") == exit_code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"Error: It is {code}." in printed.err
    assert "/inputs/gpus: must be a number" in printed.err
    assert "What you can do: " in printed.err
    assert f"(code {code}, correlation id cor-server)" in printed.err


def test_a_platform_that_is_not_there_is_8(gpuaas: Gpuaas, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("GPUAAS_API", f"http://127.0.0.1:{free.getsockname()[1]}")
    monkeypatch.setenv("GPUAAS_TOKEN", "tok")
    assert gpuaas("whoami") == 8


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize(
    "wrong", [("nope",), ("instance", "nope"), ("catalog", "--nope"), ("catalog", "-o", "xml"), ("instance", "deploy")]
)
def test_what_is_not_understood_is_2(gpuaas: Gpuaas, wrong: tuple[str, ...]) -> None:
    assert gpuaas(*wrong) == 2


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize(
    ("wrong", "guess"),
    [
        (("instance", "deploy", "slurm", "--name", "x", "--controller", "big"), ""),
        (("instance", "deploy", "slurm", "--name", "x", "--worker", "big"), ""),
        (("instance", "deploy", "slurm", "--name", "x", "--topologi", "big"), "--topology"),
        (("instance", "shw", "train"), "show"),
    ],
)
def test_only_a_typing_mistake_is_answered_with_a_guess(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...], guess: str
) -> None:
    assert gpuaas(*wrong) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert ("Did you mean" in printed.err, guess in printed.err) == (bool(guess), True)
    assert "What you can do: " in printed.err
    assert ("--place COMPONENT=ALLOCATION" in printed.err) == ("deploy" in wrong)


def test_a_bug_is_1_and_does_not_hide_behind_a_traceback(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuaas_cli.show.table", lambda *_: 1 / 0)
    assert gpuaas("catalog") == 1
    assert "bug" in capsys.readouterr().err


def test_not_signed_in_is_3_and_says_how(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpuaas("catalog") == 3
    assert "gpuaas login" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("instance", "show", "nope"), ("operation", "show", "nope"), ("access", "nope")])
def test_an_unknown_name_is_5_like_an_unknown_id(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, command: tuple[str, ...]
) -> None:
    assert gpuaas(*command) == 5
    assert "There is no instance called nope." in capsys.readouterr().err


def test_access_before_it_can_be_used_is_a_conflict_with_a_way_out(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.instance.update(access=None, state="provisioning")
    assert gpuaas("access", "train") == 6
    assert "gpuaas instance watch train" in capsys.readouterr().err


# --- projects


def two_projects(scene: Scene) -> None:
    one = wire(models.ProjectView, id="prj_1", slug="red", name="Red")
    two = wire(models.ProjectView, id="prj_2", slug="blue", name="Blue")
    scene.platform.on("GET", "/v1/projects", lambda _: (200, {"items": [one, two], "next_cursor": None}))


def test_with_several_projects_one_has_to_be_named(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_projects(scene)
    assert gpuaas("catalog") == 2
    assert "blue, red" in capsys.readouterr().err
    assert gpuaas("catalog", "--project", "red") == 0
    assert gpuaas("catalog", "-p", "prj_1") == 0
    assert gpuaas("catalog", "-p", "green") == 5
    monkeypatch.setenv("GPUAAS_PROJECT", "red")
    assert gpuaas("catalog") == 0


# --- signing in


def sign_in(gpuaas: Gpuaas, platform: Platform, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    monkeypatch.delenv("GPUAAS_TOKEN", raising=False)
    monkeypatch.delenv("GPUAAS_API", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\n"))
    return gpuaas("login", "--api", platform.url, "--email", "ada@example.com", "--password-stdin", *more)


def test_signing_in_keeps_the_token_for_the_owner_only(
    gpuaas: Gpuaas, scene: Scene, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sign_in(gpuaas, scene.platform, monkeypatch) == 0
    assert "You are Ada" in capsys.readouterr().out
    assert scene.platform.calls[0].body == {"email": "ada@example.com", "password": "correct horse"}
    config = home / "config.json"
    assert config.stat().st_mode & 0o777 == 0o600
    assert "correct horse" not in config.read_text()
    assert gpuaas("catalog") == 0
    assert scene.platform.calls[-1].headers["authorization"] == "Bearer fresh"


def test_a_wrong_password_is_3_and_keeps_what_was_there(
    gpuaas: Gpuaas, scene: Scene, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.platform.on("POST", "/v1/sign-in", lambda _: problem(401, "unauthenticated"))
    assert sign_in(gpuaas, scene.platform, monkeypatch) == 3
    assert not (home / "config.json").exists()


def test_a_saved_token_is_never_sent_to_another_address(
    gpuaas: Gpuaas, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(gpuaas, scene.platform, monkeypatch)
    other = Platform()
    try:
        assert gpuaas("catalog", "--api", other.url) == 3
        assert other.calls == []
    finally:
        other.close()


def test_signing_out_ends_the_session_and_forgets_the_token(
    gpuaas: Gpuaas, scene: Scene, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(gpuaas, scene.platform, monkeypatch)
    assert gpuaas("logout") == 0
    assert scene.platform.calls[-1].path == "/v1/sign-out"
    assert "fresh" not in (home / "config.json").read_text()
    assert gpuaas("logout") == 0
    assert gpuaas("catalog") == 3


# --- start


def imported(*arguments: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", "-m", "gpuaas_cli", *arguments]
    report = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stderr
    return {line.rsplit("|", 1)[1].strip() for line in report.splitlines() if "|" in line}


@pytest.mark.parametrize("arguments", [("--version",), ("--help",)])
def test_the_first_page_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert imported(*arguments) & {"cyclopts", "rich", "httpx2", "msgspec", "asyncssh", "asyncio"} == set()


@pytest.mark.usefixtures("scene")
def test_a_command_that_only_asks_does_not_load_asyncio() -> None:
    heavy = {"asyncio", "asyncssh", "rich", "cryptography", "mcp", "pydantic", "yaml"}
    assert imported("whoami", "-o", "json") & heavy == set()


def test_help_of_a_command_does_not_load_the_network() -> None:
    heavy = {"httpx2", "msgspec", "asyncssh", "rich.markdown", "mcp", "pydantic", "yaml"}
    assert imported("instance", "deploy", "--help") & heavy == set()
