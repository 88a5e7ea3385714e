"""The custody server goes away in the middle of a deploy: the operation says so, waits, and finishes when it is back."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_lab.openbao import Bao, bao
from gpuaas_lab.stack.platform import program

from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(19)]


def _custody(ground: Ground, *words: str, **settings: str) -> None:
    command = [program("gpuaas-core"), "custody", *words]
    env = os.environ | ground.stack.core_env | settings
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr


def _core_restarted_with(ground: Ground, **settings: str) -> None:
    before = ground.stack.folder.process("core")
    ground.stack.run_core(**settings)
    wait_until(lambda: ground.stack.folder.process("core") not in (None, before), 120, "core restart")
    ground.stack.wait_ready()


@pytest.fixture
def server(ground: Ground) -> Iterator[Bao]:
    """The ground's keys are in an OpenBao while the test runs, and back in the file afterwards."""
    with bao() as running:
        there = running.prepare()
        _custody(ground, "move", "openbao", **(there | {"GPUAAS_CORE_CUSTODY": "embedded"}))
        _core_restarted_with(ground, **there, GPUAAS_CORE_CUSTODY_CACHE_S="0")
        yield running
        _custody(ground, "move", "embedded", **there)
        _core_restarted_with(ground)


@pytest.fixture
def points(ground: Ground, tmp_path: Path) -> Iterator[Path]:
    """A file `<step>.<moment>` in this folder holds the controller there until it is gone."""
    ground.controller_restarted_with({"GPUAAS_FAILPOINT_DIR": str(tmp_path)})
    yield tmp_path
    ground.controller_restarted_with({})


def test_a_deploy_survives_the_absence_of_the_custody_server(ground: Ground, server: Bao, points: Path) -> None:
    """In the middle of it the controller loses its connections to the hosts too, and needs certificates for new ones."""
    held = points / "scheduler.before_act"
    held.touch()
    instance, operation = ground.deploy("no-custody", "gpu1")
    wait_until(lambda: held.read_text() == "here", 180, "the deploy to be in the middle")
    server.stop()
    try:
        ground.kill("slurm-controller")
        held.unlink()
        wait_until(lambda: "custody" in _log(ground), 180, "the controller to say that custody is away")
        assert ground.operation(operation.id).status == "running"
    finally:
        server.start()
    done = ground.ended(operation.id)
    assert done.status == "succeeded", done.error
    ground.gone(ground.instance(instance.id))


def _log(ground: Ground) -> str:
    return ground.stack.log_tail("slurm-controller", 40)
