"""What a person reads when the machine is not fit, or the command is wrong."""

import os
import platform
import shutil

import pytest
from gpuaas_lab import cli, preflight, sweep
from gpuaas_lab.errors import BadName, HostNeedsDisk, ImageInUse, NotLinux, NotRoot, ToolsMissing, UnknownHost
from gpuaas_lab.hosts import Lab
from gpuaas_lab.state import HostRecord, LabRecord, State


def test_on_another_system_it_says_that_it_needs_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(NotLinux, match="needs Linux; this is Darwin"):
        preflight.check()


def test_without_root_it_says_so_and_names_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NotRoot) as caught:
        preflight.check()
    assert "sudo" in caught.value.way_out


def test_a_missing_program_comes_with_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    gone = {"systemd-nspawn", "nft"}
    monkeypatch.setattr(shutil, "which", lambda tool, path=None: None if tool in gone else f"/usr/bin/{tool}")
    with pytest.raises(ToolsMissing) as caught:
        preflight.check()
    assert caught.value.way_out == "apt-get install nftables systemd-container"


def test_nothing_is_created_on_a_machine_that_is_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NotRoot):
        Lab().up(1)
    assert not Lab().state.root.exists()


def test_the_image_is_not_taken_from_under_another_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "check", lambda: None)
    monkeypatch.setattr(sweep, "remove_lab", lambda _: None)
    State("anna").save_lab(LabRecord("anna", 1, "10.88.1.0/24", []))
    with pytest.raises(ImageInUse, match="anna"):
        Lab().down(image_too=True)


def test_an_unknown_host_is_answered_with_the_known_ones() -> None:
    State("default").save_lab(LabRecord("default", 0, "10.88.0.0/24", [8080]))
    State("default").save_host(HostRecord("gpu1", 11, "/image"))
    with pytest.raises(UnknownHost, match="known: gpu1"):
        Lab().poweroff("gpu7")


def test_a_host_without_its_own_disk_is_not_filled() -> None:
    State("default").save_lab(LabRecord("default", 0, "10.88.0.0/24", [8080]))
    State("default").save_host(HostRecord("gpu1", 11, "/image"))
    with pytest.raises(HostNeedsDisk) as caught:
        Lab().fill_disk("gpu1")
    assert "--disk" in caught.value.way_out


@pytest.mark.parametrize(("text", "expected"), [("512M", 512), ("2g", 2048), (None, None)])
def test_disk_sizes_are_read_as_people_write_them(text: str | None, expected: int | None) -> None:
    assert cli.megabytes(text) == expected


@pytest.mark.parametrize("text", ["", "512", "M", "1T", "-1M"])
def test_a_disk_size_without_unit_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadName) as caught:
        cli.megabytes(text)
    assert "512M" in caught.value.way_out


def test_the_cli_prints_sentence_and_way_out_and_exits_with_the_errors_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["poweroff", "gpu7"])
    printed = capsys.readouterr().err
    assert ended.value.code == 1
    assert "no host 'gpu7'" in printed
    assert "way out: gpuaas-lab status" in printed


@pytest.mark.parametrize("command", ["image", "up", "down", "status", "ssh", "exec", "poweroff", "boot"])
def test_every_command_has_a_help_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.app([command, "--help"])
    assert ended.value.code == 0
    assert f"gpuaas-lab {command}" in capsys.readouterr().out
