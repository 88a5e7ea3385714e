"""A served core and the real `gpuaas`: a file is pushed, listed and fetched; a push that breaks off leaves nothing."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from core.tests.support.artifact_scene import digest, tenant
from core.tests.support.fixtures import World
from core.tests.support.served import Served, calling

pytestmark = pytest.mark.any_store

GPUAAS = Path(sys.executable).with_name("gpuaas")


def gpuaas(served: Served, world: World, *words: str, said: str = "", code: int = 0) -> Any:
    env = os.environ | {"GPUAAS_API": served.url, "GPUAAS_TOKEN": str(world.boss.token), "GPUAAS_PROJECT": world.red}
    argv = [str(GPUAAS), *words, "-o", "json"]
    done = subprocess.run(argv, env=env, input=said, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def kept(served: Served) -> list[Path]:
    return [path for path in (served.folder / "artifacts").rglob("*") if path.is_file()]


@pytest.mark.timeout(1800)
async def test_a_file_is_pushed_from_the_command_line_and_lies_in_the_store(
    served: Served, world: World, tmp_path: Path
) -> None:
    file = tmp_path / "packages.tar"
    file.write_bytes(os.urandom(5_000_000))
    words = ("artifact", "push", str(file), "--name", "packages", "--version", "22.05.8+b1")
    made = await asyncio.to_thread(gpuaas, served, world, *words)
    assert (made["sha256"], made["size"]) == (digest(file.read_bytes()), 5_000_000)
    assert [path.name for path in kept(served)] == [made["sha256"]]
    again = await asyncio.to_thread(gpuaas, served, world, *words, code=6)
    assert "artifact_version_taken" in again
    (listed,) = await asyncio.to_thread(gpuaas, served, world, "artifact", "list")
    assert (listed["id"], listed["allowed"]) == (made["id"], True)
    shown = await asyncio.to_thread(gpuaas, served, world, "artifact", "show", "packages:22.05.8+b1")
    assert shown["id"] == made["id"]
    gone = await asyncio.to_thread(gpuaas, served, world, "artifact", "withdraw", "packages:22.05.8+b1", "--yes")
    assert gone["state"] == "withdrawn"
    assert (await asyncio.to_thread(gpuaas, served, world, "artifact", "list")) == []


@pytest.mark.timeout(1800)
async def test_a_source_is_added_and_disabled_from_the_command_line(served: Served, world: World) -> None:
    secret = json.dumps({"kind": "bearer", "token": "canary-cli-4711"})
    add = ("artifact-source", "add", "models", "https://8.8.8.8/models", "--kind", "blob", "--credential-stdin")
    made = await asyncio.to_thread(gpuaas, served, world, *add, said=secret)
    assert (made["policy_name"], made["credential_kind"]) == ("acme.models", "bearer")
    assert "canary-cli-4711" not in (served.folder / "core.log").read_text()
    words = (
        "artifact",
        "register",
        "--name",
        "weights",
        "--version",
        "7",
        "--from-source",
        "models",
        "--path",
        "w.bin",
    )
    artifact = await asyncio.to_thread(gpuaas, served, world, *words, "--sha256", "0" * 64, "--size", "5")
    disabled = await asyncio.to_thread(gpuaas, served, world, "artifact-source", "disable", "models", "--yes")
    assert disabled["state"] == "disabled"
    shown = await asyncio.to_thread(gpuaas, served, world, "artifact", "show", artifact["id"])
    assert (shown["allowed"], shown["reason"]) == (False, "The source 'acme.models' is disabled.")
    listed = await asyncio.to_thread(gpuaas, served, world, "artifact-source", "list")
    assert {one["policy_name"] for one in listed} == {"builtin", "acme.models"}
    trick = await asyncio.to_thread(
        gpuaas, served, world, "artifact-source", "add", "bad", "https://a@8.8.8.8", "--kind", "oci", code=7
    )
    assert "artifact_address_refused" in trick


async def test_a_push_that_breaks_off_leaves_nothing(served: Served, world: World) -> None:
    before = len(kept(served))
    content = os.urandom(400_000)
    head = (
        f"PUT {tenant(world)}/artifact-store/{digest(content)} HTTP/1.1\r\nHost: core\r\n"
        f"Authorization: Bearer {world.boss.token}\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(head.encode() + content[:200_000])
        deadline = time.monotonic() + 60
        while not any(path.parent.name == "incoming" for path in kept(served)):
            assert time.monotonic() < deadline, "the push did not begin"
            await asyncio.sleep(0.02)
    while len(kept(served)) > before:
        assert time.monotonic() < deadline, "half a file was left"
        await asyncio.sleep(0.02)
    async with calling(served, world) as there:
        said = {"name": "half", "version": "1", "sha256": digest(content)}
        refused = await there.boss.post(tenant(world, "artifacts"), said)
    assert refused.json()["code"] == "artifact_not_uploaded"
