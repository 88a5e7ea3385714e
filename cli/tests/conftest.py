from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gpuaas_cli.main import main

from cli.tests.support.cli_stack import Gpuaas, Scene
from sdk.tests.support.fake_platform import Platform


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of its own, and nothing from the environment."""
    for name in ("GPUAAS_API", "GPUAAS_TOKEN", "GPUAAS_PROJECT", "GPUAAS_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPUAAS_CONFIG", str(tmp_path / "config.json"))
    monkeypatch.setattr("gpuaas_sdk.client.transport.MAX_TRIES", 1)
    return tmp_path


@pytest.fixture
def platform() -> Iterator[Platform]:
    server = Platform()
    yield server
    server.close()


@pytest.fixture
def scene(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Signed in by environment, with a project, a machine, an app and an instance to look at."""
    monkeypatch.setenv("GPUAAS_API", platform.url)
    monkeypatch.setenv("GPUAAS_TOKEN", "tok")
    return Scene(platform)


@pytest.fixture
def gpuaas() -> Gpuaas:
    """Run a command; its exit code."""

    def run(*arguments: str) -> int:
        try:
            return main(list(arguments))
        except SystemExit as ended:
            return int(ended.code or 0)

    return run
