"""A stack and its lab: `make down` removes the lab that this stack started, whatever the environment names."""

from pathlib import Path

import pytest
from gpuaas_lab.errors import LabError
from gpuaas_lab.stack import up


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the labs that were taken down."""
    names: list[str] = []
    monkeypatch.setattr(up.Lab, "down", lambda self: names.append(self.name))
    return names


def test_down_removes_the_lab_of_this_stack(
    tmp_path: Path, removed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    up.own_lab(tmp_path / "var", "attack")
    monkeypatch.setenv("GPUAAS_LAB_NAME", "default")
    up.down(tmp_path / "var", lab=True)
    assert removed == ["attack"]
    assert not (tmp_path / "var").exists()


def test_a_stack_without_a_lab_removes_none(tmp_path: Path, removed: list[str]) -> None:
    up.down(tmp_path / "var", lab=True)
    assert removed == []


def test_a_stack_keeps_its_lab_until_it_is_down(tmp_path: Path) -> None:
    up.own_lab(tmp_path, "first")
    up.own_lab(tmp_path, "first")
    with pytest.raises(LabError) as refused:
        up.own_lab(tmp_path, "second")
    assert "GPUAAS_LAB_NAME=first" in refused.value.way_out
