"""`gpuaas ssh`: what is given to ssh, what is left of it, and that the private key stays where it was made."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from cli.tests.support.cli_stack import Gpuaas, Scene
from sdk.tests.support.fake_platform import problem

SEEN = """\
#!/bin/sh
# Stands for ssh: writes down what it was given, and what lay where, while it lasted.
for word in "$@"; do echo "$word"; done >"$SEEN/words"
for word in "$@"; do
  case $word in IdentityFile=*) folder=$(dirname "${word#*=}") ;; esac
done
stat -c '%a %n' "$folder" "$folder/key" >"$SEEN/modes"
cp "$folder"/* "$SEEN/"
eval "$DO"
"""
SECRET = slice(216, 256)  # of a key's text: after its public half, which comes first and may be public
PATH = "/v1/projects/prj_1/instances/inst_1/members/mem_1/ssh-sessions"


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the stand-in writes what it saw."""
    folder, temporary = tmp_path / "seen", tmp_path / "tmp"
    for one in (folder, temporary, tmp_path / "bin"):
        one.mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(SEEN)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SEEN", str(folder))
    monkeypatch.setenv("DO", "exit 0")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return folder


def left(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "tmp").iterdir()]


def test_ssh_is_given_a_fresh_key_and_trusts_one_machine_only(
    gpuaas: Gpuaas, scene: Scene, seen: Path, tmp_path: Path
) -> None:
    assert gpuaas("ssh", "train", "controller/0", "--", "nvidia-smi", "-l", "1") == 0
    words = (seen / "words").read_text().splitlines()
    assert words[-3:] == ["nvidia-smi", "-l", "1"]
    assert words[words.index("--") + 1] == "10.0.0.9"
    for option in ("StrictHostKeyChecking=yes", "IdentitiesOnly=yes", "HostKeyAlias=node_1", "ConnectTimeout=10"):
        assert option in words
    assert (seen / "known_hosts").read_text() == "@cert-authority node_1 ssh-ed25519 AAAA1\n"
    assert (seen / "key-cert.pub").read_text() == "ssh-ed25519-cert-v01@openssh.com AAAA\n"
    assert [line.split()[0] for line in (seen / "modes").read_text().splitlines()] == ["700", "600"]
    assert left(tmp_path) == [], "the key outlived the connection"
    (asked,) = [call.body for call in scene.platform.calls if call.path == PATH]
    assert asked == {"ssh_public_key": (seen / "key.pub").read_text().strip()}


def test_every_connection_has_a_key_of_its_own_that_is_never_shown(
    gpuaas: Gpuaas, scene: Scene, seen: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    private = []
    for _ in range(2):
        assert gpuaas("ssh", "train", "mem_1") == 0
        private.append("".join((seen / "key").read_text().splitlines()[1:-1])[SECRET])
    assert private[0] != private[1]
    sent = json.dumps([[call.path, call.body, dict(call.headers)] for call in scene.platform.calls])
    printed = "".join(capfd.readouterr())
    assert [one for one in private if one in sent + printed] == []


@pytest.mark.parametrize(("do", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_the_exit_code_is_that_of_ssh(
    gpuaas: Gpuaas, scene: Scene, seen: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, do: str, code: int
) -> None:
    monkeypatch.setenv("DO", do)
    assert gpuaas("ssh", "train", "mem_1") == code
    assert left(tmp_path) == []


def test_who_did_not_get_in_is_told_what_to_look_at(
    gpuaas: Gpuaas, scene: Scene, seen: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DO", "exit 255")
    assert gpuaas("ssh", "train", "mem_1") == 255
    printed = capsys.readouterr().err
    assert "What you can do" in printed
    assert "10.0.0.9" in printed
    assert "gpuaas grant list --revoked" in printed


def test_printing_leaves_the_files_and_a_command_that_works(
    gpuaas: Gpuaas, scene: Scene, seen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpuaas("ssh", "train", "mem_1", "--print", "--", "echo", "a b") == 0
    printed = capsys.readouterr().out
    assert not (seen / "words").exists(), "it connected"
    (folder,) = left(tmp_path)
    kept = {path.name for path in (tmp_path / "tmp" / folder).iterdir()}
    assert kept == {"key", "key.pub", "key-cert.pub", "known_hosts"}
    subprocess.run(shlex.split(printed), check=True, timeout=20)
    assert (seen / "words").read_text().splitlines()[-2:] == ["echo", "a b"]
    assert gpuaas("ssh", "train", "mem_1", "--print", "-o", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["command"][0] == "ssh"
    assert printed["grant_id"] == "grant_2"


def test_a_refusal_of_the_platform_is_its_own_and_leaves_nothing(
    gpuaas: Gpuaas, scene: Scene, seen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.platform.on("POST", PATH, lambda _: problem(403, "permission_denied"))
    assert gpuaas("ssh", "train", "mem_1", "--print") == 4
    assert "What you can do" in capsys.readouterr().err
    assert gpuaas("ssh", "train", "worker/9") == 5
    assert left(tmp_path) == []
    assert not (seen / "words").exists()


def test_without_ssh_nothing_is_asked_for(
    gpuaas: Gpuaas, scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert gpuaas("ssh", "train", "mem_1") == 2
    assert "openssh-client" in capsys.readouterr().err
    assert scene.platform.calls == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_told_to_stop_takes_ssh_and_the_key_along(
    scene: Scene, seen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setenv("DO", 'touch "$SEEN/there"; exec sleep 60')
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuaas_cli", "ssh", "train", "mem_1"],
        env=env,
        preexec_fn=lambda: signal.signal(how, signal.SIG_DFL),  # the tests themselves may run under nohup
    )
    deadline = time.monotonic() + 180
    while not (seen / "there").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(how)
    assert process.wait(120) == 128 + how
    assert left(tmp_path) == []


def test_a_session_that_ends_hands_its_certificate_back(
    gpuaas: Gpuaas, scene: Scene, seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = "/v1/projects/prj_1/access-grants/grant_2/revoke"
    scene.platform.on("POST", back, lambda _: problem(503, "unavailable"))
    assert gpuaas("ssh", "train", "mem_1", "--idempotency-key", "one-of-this-session") == 0, "not its business"
    (printed,) = scene.platform.seen("POST", back)
    assert printed.body == {"reason": "its session was closed"}
    assert printed.headers["idempotency-key"] != "one-of-this-session"
    monkeypatch.setenv("DO", "exit 255")
    assert gpuaas("ssh", "train", "mem_1") == 255
    assert gpuaas("ssh", "train", "mem_1", "--print") == 0
    assert len(scene.platform.seen("POST", back)) == 1, "the session was refused, or is still to start"
