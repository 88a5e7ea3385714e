"""The Slurm controller has no private door: where it runs, only the public API and the hosts can be reached."""

import socket
import subprocess
import sys
import threading

import pytest

from tests.support.lab_stack import Ground

pytestmark = pytest.mark.lab
PROBE = "import socket,sys\ns=socket.socket(); s.settimeout(2)\nsys.exit(0 if s.connect_ex((sys.argv[1], int(sys.argv[2])))==0 else 1)"


def reaches(ground: Ground, address: str, port: int) -> bool:
    words = [*ground.space.prefix, sys.executable, "-c", PROBE, address, str(port)]
    return subprocess.run(words, timeout=120, check=False).returncode == 0


def test_the_controller_really_runs_in_that_namespace(ground: Ground) -> None:
    process = ground.stack.folder.process("slurm-controller")
    assert process
    inside = subprocess.run(
        ["ip", "netns", "identify", str(process.pid)], capture_output=True, text=True, timeout=60, check=True
    )
    assert inside.stdout.strip() == ground.space.name


def test_it_reaches_the_api_and_the_hosts(ground: Ground) -> None:
    assert reaches(ground, ground.gateway, ground.stack.port)
    for host in ground.lab.status():
        assert reaches(ground, host.address, 22)


def test_it_reaches_nothing_else_on_this_machine(ground: Ground) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        stop = threading.Event()
        port = other.getsockname()[1]
        assert not reaches(ground, ground.gateway, port)
        stop.set()


def test_it_has_no_way_out(ground: Ground) -> None:
    routes = subprocess.run(
        [*ground.space.prefix, "ip", "route"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "default" not in routes.stdout
    for address in ("192.0.2.2", "127.0.0.53"):
        assert not reaches(ground, address, 53)


def test_the_controller_opens_no_database_of_the_core(ground: Ground) -> None:
    process = ground.stack.folder.process("slurm-controller")
    assert process
    opened = subprocess.run(
        ["ls", "-l", f"/proc/{process.pid}/fd"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "core.db" not in opened.stdout
