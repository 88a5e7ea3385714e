"""Every test gets its own state and cache folder, so that no test can touch a lab in use."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_folders(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUAAS_LAB_NAME", raising=False)
    if request.node.get_closest_marker("lab") is None:
        monkeypatch.setenv("GPUAAS_LAB_STATE", str(tmp_path / "state"))
        monkeypatch.setenv("GPUAAS_LAB_CACHE", str(tmp_path / "cache"))
