"""The README's first command, as a newcomer runs it: up, up again, down; and the machine is as it was."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from gpuaas_lab.plan import link_tag

from tests.support.lab_stack import free_port, wait_until

pytestmark = pytest.mark.lab
ROOT = Path(__file__).parents[2]
NAME = "makeup"


def make(*words: str, env: dict[str, str], timeout: float = 560) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=ROOT,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"make {' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def read(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False).stdout


def traces(root: Path) -> dict[str, list[str]]:
    """Everything on this machine that carries this run's name or path."""
    names = (f"gpuaas.{NAME}.", f"/{NAME}/", f"/{NAME} ", f"/{NAME}.lock", str(root))
    seen = {
        "mounts": Path("/proc/self/mountinfo").read_text().splitlines(),
        "namespaces": read("ip", "netns", "list").splitlines(),
        "tables": read("nft", "list", "tables").splitlines(),
        "processes": [line for line in read("ps", "-eo", "pid=,args=").splitlines() if " ps " not in line],
        "cgroups": [str(path) for path in Path("/sys/fs/cgroup").glob("*/gpuaas*/*")],
        "state": [str(path) for path in Path("/var/lib/gpuaas-lab").glob("*")],
    }
    return {kind: [line for line in lines if any(name in f"{line} " for name in names)] for kind, lines in seen.items()}


def links() -> set[str]:
    """Without those of other labs, which come and go by themselves."""
    known = json.loads(read("ip", "-j", "link"))
    tags = {one["ifname"]: one.get("ifalias", "") for one in known}
    return {name for name, tag in tags.items() if tag == link_tag(NAME) or not tag.startswith(link_tag(""))}


@pytest.fixture
def env(tmp_path: Path):
    chosen = {"GPUAAS_ROOT": str(tmp_path / "var"), "GPUAAS_LAB_NAME": NAME, "PORT": str(free_port()), "NO_COLOR": "1"}
    yield chosen
    subprocess.run(["make", "down"], cwd=ROOT, env=os.environ | chosen, capture_output=True, timeout=300, check=False)


def test_up_ends_with_a_job_and_down_leaves_the_machine_as_it_was(env: dict[str, str], tmp_path: Path) -> None:
    before = links()
    assert not any(traces(tmp_path).values())
    first = make("up", env=env)
    assert "$ srun -N2 hostname\n    gpu2\n    gpu3\n" in first
    assert "starting the scheduler" in first
    assert "dana@demo.example" in first
    assert f"  console      http://127.0.0.1:{env['PORT']}/\n" in first

    started = time.monotonic()
    again = make("up", env=env)
    assert "running already" in again
    assert "$ srun -N2 hostname\n    gpu2\n    gpu3\n" in again
    print(f"the second make up took {time.monotonic() - started:.1f} s")

    status = make("status", env=env)
    assert status.count("running (pid") == 3
    assert all(host in status for host in ("gpu1", "gpu2", "gpu3", "gpu4", "gpu5"))
    assert "== " in make("logs", env=env)

    make("down", env=env)
    assert {kind: lines for kind, lines in traces(tmp_path).items() if lines} == {}
    wait_until(lambda: links() == before, 60, "the links to be as they were")
    assert not (tmp_path / "var").exists()
    assert "GPUaaS is down" in make("down", env=env)


def test_without_a_lab_the_core_runs_alone_and_says_how_to_bring_machines(env: dict[str, str], tmp_path: Path) -> None:
    said = make("up", "LAB=no", env=env)
    assert "gpuaas node enrol" in said
    make("down", "LAB=no", env=env)
    assert (tmp_path / "var" / "core" / "core.db").exists(), "the data of a platform with real machines is kept"
    assert not traces(tmp_path)["processes"]


def test_a_port_in_use_is_said_with_a_way_out(env: dict[str, str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(env["PORT"])))
        taken.listen()
        done = subprocess.run(
            ["make", "up", "LAB=no"],
            cwd=ROOT,
            env=os.environ | env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode != 0
    assert "in use by another program" in done.stderr
    assert "PORT=" in done.stderr
