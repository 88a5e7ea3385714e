"""The custody server goes away in the middle of a deploy: the operation says so, waits, and finishes when it is back."""

import os
import subprocess
from collections.abc import Iterator

import pytest
from gpuaas_lab.openbao import Bao, bao
from gpuaas_lab.stack.platform import program
from ground import Ground, wait_until

pytestmark = pytest.mark.lab


def _custody(ground: Ground, *words: str, **settings: str) -> None:
    command = [program("gpuaas-core"), "custody", *words]
    env = os.environ | ground.stack.core_env | settings
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def _core_restarted_with(ground: Ground, **settings: str) -> None:
    before = ground.stack.folder.process("core")
    ground.stack.run_core(**settings)
    wait_until(lambda: ground.stack.folder.process("core") not in (None, before), 30, "core restart")
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


def test_a_deploy_survives_the_absence_of_the_custody_server(ground: Ground, server: Bao) -> None:
    instance, operation = ground.deploy("no-custody", "gpu1")
    wait_until(lambda: ground.operation(operation.id).status == "running", 60, "the deploy to begin")
    server.stop()
    try:
        wait_until(lambda: "custody" in _log(ground), 60, "the controller to say that custody is away")
        assert ground.operation(operation.id).status == "running"
    finally:
        server.start()
    done = ground.ended(operation.id)
    assert done.status == "succeeded", done.error
    ground.gone(ground.instance(instance.id))


def _log(ground: Ground) -> str:
    return ground.stack.log_tail("slurm-controller", 40)
