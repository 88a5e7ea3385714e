"""What a person becomes on a host, tried with the real script: in namespaces of this test's own, as root."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from gpuaas_agent import people, sessions

from agent.tests.support.waits import soon

SERIAL = 2**63 - 7
USER = people.user_of(SERIAL)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "enter.sh"
    path.write_bytes(people.enter_script())
    return path


def begin(script: Path, command: str | None, serial: int | str = SERIAL) -> subprocess.Popen[str]:
    env = {"PATH": "/usr/bin:/bin", "SECRET_OF_ROOT": "x"} | ({"SSH_ORIGINAL_COMMAND": command} if command else {})
    words, pipe = ["/usr/bin/sh", str(script), str(serial)], subprocess.PIPE
    return subprocess.Popen(words, env=env, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


def asked(script: Path, command: str | None, said: str = "") -> tuple[int, str]:
    process = begin(script, command)
    out, error = process.communicate(said, timeout=30)
    return process.returncode, out + error


def test_a_person_is_a_user_without_any_right(script: Path) -> None:
    code, said = asked(script, "id -u; id -g; id -G; whoami; grep -E '^(Cap|NoNewPrivs)' /proc/self/status; env; pwd")
    assert code == 0
    lines = said.splitlines()
    assert lines[:4] == [str(USER)] * 3 + ["person"]
    held = [line.split()[1] for line in lines if line.startswith("Cap")]
    assert set(held) == {"0" * 16}, "a capability was left"
    assert "NoNewPrivs:\t1" in lines
    assert "SECRET_OF_ROOT" not in said
    assert lines[-1] == "/tmp/home"


def test_the_exit_code_and_the_streams_are_the_commands_own(script: Path) -> None:
    assert asked(script, "cat; exit 7", "said to it") == (7, "said to it")
    code, said = asked(script, None, "echo $((20 + 1)) $SHELL\nexit 3\n")
    assert (code, said) == (3, "21 /bin/bash\n")


def test_nothing_that_a_person_wrote_is_left(script: Path) -> None:
    name = f"left-by-{os.getpid()}"
    places = ("/tmp", "/var/tmp", "/dev/shm")
    code, said = asked(script, "; ".join(f"touch {place}/{name} && echo made" for place in places))
    assert (code, said.split()) == (0, ["made"] * 3)
    assert [place for place in places if Path(place, name).exists()] == []
    assert str(USER) not in Path("/etc/passwd").read_text()


@pytest.mark.parametrize("wrong", ["touch /etc/x", "ls /root", "cat /etc/shadow", "mount -t tmpfs x /mnt", "kill -9 1"])
def test_a_person_changes_and_reads_nothing_of_the_hosts(script: Path, wrong: str) -> None:
    code, said = asked(script, wrong)
    assert code != 0, said


HIDING = "(setsid sh -c 'sleep 306 & sleep 306' >/dev/null 2>&1 &); echo begun; "


def test_what_a_person_left_running_ends_with_the_session(script: Path) -> None:
    code, said = asked(script, HIDING + "exit 0")
    assert (code, said) == (0, "begun\n")
    soon(lambda: _theirs() == [], "everything ends; the script sends SIGKILL and does not wait for it")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_when_sshd_is_gone_so_is_everything(script: Path, how: signal.Signals) -> None:
    """A shell stands for sshd: the script is its child."""
    env = {"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": HIDING + "sleep 307"}
    words = ["/usr/bin/sh", "-c", f"/usr/bin/sh {script} {SERIAL}; true"]
    sshd = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert sshd.stdout is not None
    assert sshd.stdout.readline() == "begun\n"
    assert _theirs() != []
    sshd.send_signal(how)
    sshd.wait(60)
    soon(lambda: _theirs() == [], "everything ends")


@pytest.mark.parametrize("serial", ["", "7x", "-1", "9" * 20, "7;id"])
def test_an_odd_serial_lets_no_session_in(script: Path, serial: str) -> None:
    process = begin(script, "id", serial)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")


def _theirs() -> list[int]:
    return [one.pid for one in sessions._everything() if sessions._user(one.pid) == USER]
