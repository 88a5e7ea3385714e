"""The operator's side of custody, with a core that serves meanwhile: rotate, move to a server, lose the server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from gpuaas_lab.openbao import bao

from core.tests.support.fixtures import HOST_KEY, Store, World, remove_store
from core.tests.support.served import Served, calling, serving
from core.tests.support.software_hsm import hsm


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    (tmp_path / "core").mkdir()
    yield tmp_path / "core"
    remove_store(tmp_path / "core")


async def _ask_for_access(world: World, claim: dict[str, Any]) -> Any:
    body = {"claim_epoch": claim["claim_epoch"], "allocation_id": world.allocations[0], "ssh_public_key": HOST_KEY}
    return await world.controller.post(world.operation(claim["operation"]["id"], "access-grants"), body)


def _said(served: Served, *words: str) -> str:
    done = served.run("custody", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_master_key_is_changed_while_the_core_serves(store: Store, world: World, folder: Path) -> None:
    with serving(store, folder, GPUAAS_CORE_CUSTODY_CACHE_S="0") as served:
        async with calling(served, world) as remote:
            await remote.deploy()
            claim = await remote.claim()
            assert (await _ask_for_access(remote, claim)).status_code == 201
            assert "Version 2 of the master key is the current one." in _said(served, "rotate")
            assert (await _ask_for_access(remote, claim)).status_code == 201
            assert "Retired: version 1." in _said(served, "retire")
            assert "resealed" in _said(served, "renew-data-keys")
            assert (await _ask_for_access(remote, claim)).status_code == 201
            assert "unwrapped 2 of 2 data keys" in _said(served, "status")


async def test_keys_move_to_a_server_and_its_absence_is_said_and_survived(
    store: Store, world: World, folder: Path
) -> None:
    with bao() as server, serving(store, folder, GPUAAS_CORE_CUSTODY_CACHE_S="0") as served:
        there = server.prepare()
        served.settings |= {name: value for name, value in there.items() if name != "GPUAAS_CORE_CUSTODY"}
        assert "GPUAAS_CORE_CUSTODY=openbao" in _said(served, "move", "openbao")
        served.stop()
        refused = served.run("serve")
        assert refused.returncode == 1
        assert "held by 'openbao', but the core is configured for 'embedded'" in refused.stderr
        served.settings |= there
        served.start()
        async with calling(served, world) as remote:
            await remote.deploy()
            claim = await remote.claim()
            assert (await _ask_for_access(remote, claim)).status_code == 201
            server.stop()
            answer = await _ask_for_access(remote, claim)
            problem = answer.json()
            assert (answer.status_code, problem["code"], problem["retryable"]) == (503, "custody_unavailable", True)
            assert "does not respond" in problem["detail"]
            assert "gpuaas-core custody status" in problem["way_out"]
            assert "does not respond" in served.run("custody", "status").stderr
            server.start()
            for _ in range(300):
                answer = await _ask_for_access(remote, claim)
                if answer.status_code == 201:
                    break
                await asyncio.sleep(0.2)
            assert answer.status_code == 201
        assert "current version 1" in _said(served, "status")


def test_keys_move_to_an_hsm_and_back(store: Store, folder: Path, tmp_path: Path) -> None:
    with serving(store, folder) as served:
        there = hsm(tmp_path)
        served.settings |= {name: value for name, value in there.items() if name != "GPUAAS_CORE_CUSTODY"}
        assert "data keys rewrapped" in _said(served, "move", "pkcs11")
        served.settings |= there
        assert "holder    pkcs11, current version 1" in _said(served, "status")
        assert "data keys rewrapped" in _said(served, "move", "embedded")
        served.settings["GPUAAS_CORE_CUSTODY"] = "embedded"
        assert "holder    embedded" in _said(served, "status")


def test_a_wrong_wish_is_answered_with_what_is_possible(store: Store, folder: Path) -> None:
    with serving(store, folder) as served:
        wrong = served.run("custody", "move", "embedded")
        assert (wrong.returncode, wrong.stderr) == (1, "Choose another holder: openbao, pkcs11.\n")
        missing = served.run("custody", "move", "openbao")
        assert missing.returncode == 1
        assert "GPUAAS_CORE_OPENBAO_ADDRESS" in missing.stderr
        assert "Traceback" not in missing.stderr
