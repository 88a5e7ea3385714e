"""Ending exactly the sessions of a revoked certificate, on real processes."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from gpuaas_agent import people, sessions
from gpuaas_agent.places import Places

from agent.tests.support.waits import soon

# A session leader with a child, a stubborn one, an orphan of the same session, and a service that left the session.
SESSION = """
trap '' TERM
sleep 300 &
(sleep 301 & echo $!; exec true)
setsid sh -c 'sleep 302 & echo $!' 
sh -c 'trap "" TERM; while :; do sleep 303; done' &
wait
"""


class Session:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            ["setsid", "sh", "-c", SESSION], stdout=subprocess.PIPE, text=True, start_new_session=False
        )
        assert self.process.stdout is not None
        self.orphan, self.service = (int(self.process.stdout.readline()) for _ in range(2))

    def note(self, places: Places, serial: int, *, start: int | None = None) -> Path:
        found = sessions.look(self.process.pid)
        assert found is not None
        places.sessions.mkdir(parents=True, exist_ok=True)
        path = places.sessions / f"{found.pid}.{found.start if start is None else start}.{serial}"
        path.touch()
        return path

    def alive(self) -> bool:
        return sessions.look(self.process.pid) is not None

    def close(self) -> None:
        for pid in (*members(self.process.pid), self.service):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(5)


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session()
    yield made
    made.close()


def members(session: int) -> list[int]:
    found = [sessions.look(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    return [one.pid for one in found if one and one.session == session]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_a_revoked_session_ends_with_everything_in_it_and_services_stay(session: Session, places: Places) -> None:
    session.note(places, 7)
    leader = sessions.look(session.process.pid)
    assert leader is not None
    assert session.orphan in members(leader.session)
    started = time.monotonic()
    assert sessions.end(places, [7], grace_s=0.3) == 1
    assert time.monotonic() - started < 10, "what is promised"
    session.process.wait(60)
    soon(lambda: members(leader.session) == [], "nothing of the session lives on")
    assert sessions.look(session.service) is not None, "a service of the host was killed with the session"


def test_another_serial_and_another_start_are_left_alone(session: Session, places: Places) -> None:
    mine = session.note(places, 7)
    recycled = session.note(places, 8, start=1)
    assert sessions.end(places, [8, 9], grace_s=0.2) == 0
    assert session.alive()
    assert mine.exists()
    assert not recycled.exists(), "the note of a process that is gone stays for ever"


def test_notes_that_make_no_sense_are_removed(places: Places) -> None:
    places.sessions.mkdir(parents=True)
    for name in ("nonsense", "1.2", "0.0.0", "99999999.1.7", "x.y.z", "1.2.3.4"):
        (places.sessions / name).touch()
    assert sessions.end(places, [7, 3, 0]) == 0
    assert list(places.sessions.iterdir()) == []


def test_fences_are_kept_for_a_day(places: Places) -> None:
    places.epochs.mkdir(parents=True)
    for name, age in (("op_1.1", 3600), ("op_2.1", 25 * 3600)):
        (places.epochs / name).touch()
        then = time.time() - age
        os.utime(places.epochs / name, (then, then))
    sessions.forget_old_epochs(places)
    assert [path.name for path in places.epochs.iterdir()] == ["op_1.1"]


def test_what_a_revoked_person_hid_is_found_by_its_user(places: Places) -> None:
    """Its parent has ended, it is in a session of its own, and no note leads to it."""
    hidden, of_another = (_as_person(serial) for serial in (7, 8))
    try:
        sessions.end(places, [7])
        assert hidden.wait(60) == -signal.SIGKILL
        assert of_another.poll() is None
    finally:
        of_another.kill()
        of_another.wait(5)


def _as_person(serial: int) -> subprocess.Popen[bytes]:
    user = people.user_of(serial)
    made = subprocess.Popen(["sleep", "304"], user=user, group=user, extra_groups=[], start_new_session=True)
    return made


@pytest.mark.parametrize("serial", [1, 2**63 - 1, 2**64 - 1])
def test_the_user_of_a_certificate_is_one_that_every_program_can_tell_from_others(serial: int) -> None:
    assert 1_879_048_191 < people.user_of(serial) < 2**31 - 1


def test_a_command_ends_although_the_connection_above_it_went_first(places: Places) -> None:
    """When its parent goes it becomes a child of the host's first process, and is still the same process."""
    words = ["sh", "-c", "setsid sleep 305 & echo $!; wait"]  # of a session of its own, as sshd makes them
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as connection:
        assert connection.stdout is not None
        command, found = int(connection.stdout.readline()), sessions.look(connection.pid)
        assert found is not None
        places.sessions.mkdir(parents=True)
        (places.sessions / f"{found.pid}.{found.start}.7").touch()
        reaping = threading.Thread(target=connection.wait)  # as the host's first process does: gone is gone
        reaping.start()
        try:
            assert sessions.end(places, [7]) == 1
            soon(lambda: sessions.look(command) is None, "the command ends")
        finally:
            with suppress(ProcessLookupError):
                os.kill(command, signal.SIGKILL)
            reaping.join(10)
