"""`gpuaas-agent install`: the agent becomes a service of the host, its settings readable by root only."""

import json
import os
from pathlib import Path

import pytest
from gpuaas_agent.errors import NotConfigured
from gpuaas_agent.install import install
from gpuaas_agent.places import Places


def test_the_wrapper_unit_and_settings_are_in_place(tmp_path: Path) -> None:
    install(Places(tmp_path), json.dumps({"api": "https://core.example", "token": "enr_x.y"}), start=False)
    assert os.access(tmp_path / "usr/local/sbin/gpuaas-agent", os.X_OK)
    assert "ExecStart" in (tmp_path / "etc/systemd/system/gpuaas-agent.service").read_text()
    settings = tmp_path / "etc/gpuaas/agent.json"
    assert json.loads(settings.read_text())["api"] == "https://core.example"
    assert settings.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("bad", ["", "not json", "[]", '{"token": "x"}'])
def test_settings_that_name_no_api_are_refused_with_a_way_out(tmp_path: Path, bad: str) -> None:
    with pytest.raises(NotConfigured) as refused:
        install(Places(tmp_path), bad, start=False)
    assert "gpuaas node enrol" in refused.value.way_out
    assert not (tmp_path / "etc/gpuaas").exists()
