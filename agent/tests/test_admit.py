"""The question sshd asks before every login, asked of the real script: who is named, who is fenced off, what is noted."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gpuaas_agent import sessions
from gpuaas_agent.places import Places
from gpuaas_agent.trust import admit_script


class Admit:
    def __init__(self, places: Places) -> None:
        self.places, self.script = places, places.ssh / "admit.sh"
        (places.ssh / "principals").mkdir(parents=True)
        self.script.write_bytes(admit_script(places))
        (places.ssh / "revoked_serials").write_text("13\n")
        (places.ssh / "principals/root").write_text("alloc_1\nalloc_2\n")

    def __call__(self, key_id: str = "op_1/1", serial: str = "7", user: str = "root") -> list[str]:
        done = subprocess.run(
            ["/usr/bin/sh", self.script, user, key_id, serial], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stderr == ""
        return done.stdout.splitlines()


@pytest.fixture
def admit(tmp_path: Path) -> Admit:
    return Admit(Places(tmp_path))


def test_the_principals_of_the_login_name_are_named(admit: Admit) -> None:
    assert admit() == ["alloc_1", "alloc_2"]
    assert admit(user="stranger") == []


def test_people_run_what_the_host_says_and_nothing_else(admit: Admit) -> None:
    (admit.places.ssh / "people").write_text("alloc_1.people\n")
    forced = f'restrict,pty,command="/usr/bin/sh {admit.places.ssh}/enter.sh 7" alloc_1.people'
    assert admit("usr_1/1") == ["alloc_1", "alloc_2", forced]
    assert admit("usr_1/1", user="stranger") == admit("usr_1/1", serial="13") == []


def test_an_epoch_lower_than_one_seen_is_refused_for_ever(admit: Admit) -> None:
    assert admit("op_1/2")
    assert admit("op_1/10")
    assert admit("op_1/2") == admit("op_1/9") == []
    assert admit("op_1/10")
    assert admit("op_2/1"), "another operation has epochs of its own"
    assert sorted(path.name for path in admit.places.epochs.iterdir()) == [
        "op_1.10", "op_1.2", "op_1.9", "op_2.1"
    ]  # fmt: skip


def test_a_revoked_serial_is_refused(admit: Admit) -> None:
    assert admit(serial="13") == []
    assert admit(serial="3") != []


@pytest.mark.parametrize(
    "key_id",
    [
        "",
        "op_1",
        "op_1/",
        "/1",
        "op_1/x",
        "op_1/-1",
        "op_1/1.5",
        "../../x/1",
        "op 1/1",
        "op_1;id/1",
        "op_1/" + "9" * 16,
    ],
)
def test_a_key_id_that_names_no_epoch_is_refused(admit: Admit, key_id: str) -> None:
    assert admit(key_id) == []
    assert not admit.places.epochs.exists()


@pytest.mark.parametrize(("serial", "user"), [("", "root"), ("7x", "root"), ("7", "../root"), ("7", ""), ("7", "*")])
def test_anything_else_that_is_odd_is_refused(admit: Admit, serial: str, user: str) -> None:
    assert admit(serial=serial, user=user) == []


def test_the_login_is_noted_with_the_process_that_asked(admit: Admit) -> None:
    admit(serial="7")
    me = sessions.look(os.getpid())
    assert me is not None
    assert [path.name for path in admit.places.sessions.iterdir()] == [f"{me.pid}.{me.start}.7"]


def test_missing_state_locks_no_owner_out(admit: Admit) -> None:
    """A new host, a wiped folder, a disk that takes nothing: the machine's owner gets in."""
    (admit.places.ssh / "revoked_serials").unlink()
    admit.places.state.parent.mkdir(parents=True, exist_ok=True)
    admit.places.state.write_text("a file where the folder should be")
    (admit.places.root / "run").write_text("and here")
    assert admit() == ["alloc_1", "alloc_2"]


def test_it_costs_a_login_little_more_than_starting_a_shell(admit: Admit) -> None:
    """By turns, so that whatever else this machine does slows both."""

    def taken(what: Callable[[], object]) -> float:
        started = time.monotonic()
        what()
        return time.monotonic() - started

    shell = lambda: subprocess.run(["/bin/sh", "-c", "true"], check=True, timeout=60)  # noqa: E731
    shells, admissions = zip(*((taken(shell), taken(admit)) for _ in range(20)), strict=True)
    ratio = statistics.median(admissions) / statistics.median(shells)
    assert ratio < 20, f"logins would be felt to be slower: {ratio:.1f} times a shell"
