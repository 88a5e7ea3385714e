"""`gpuaas operation certificate`: what was proven, or what is left and how to go on."""

from __future__ import annotations

import pytest

from cli.tests.support.cli_stack import Gpuaas, Scene
from cli.tests.support.departure_certificate import departure


@pytest.mark.usefixtures("scene")
def test_a_certificate_names_the_machine_the_proofs_and_whether_it_was_changed(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpuaas("operation", "certificate", "op_1") == 0
    printed = capsys.readouterr().out
    for words in ("node-a (10.0.0.9)", "usr_1", "slurm 1.0.0", "verified", "ok  key: the key is gone"):
        assert words in printed


def test_a_certificate_that_was_changed_is_not_believed(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.certificates[0]["statement"]["host"]["name"] = "node-b"
    assert gpuaas("operation", "certificate", "op_1") == 1
    assert "ALTERED" in capsys.readouterr().out


def test_a_newer_certificate_is_shown_without_a_verdict(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    scene.certificates[0]["statement"]["format"] = 2
    assert gpuaas("operation", "certificate", "op_1") == 0
    assert "not checked" in capsys.readouterr().out


def test_ways_in_that_are_still_open_are_said(gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene) -> None:
    scene.certificates = [departure(access={"open_grants": 1, "grants_not_yet_refused": 0})]
    gpuaas("operation", "certificate", "op_1")
    assert "1 certificate still valid" in capsys.readouterr().out


def test_without_a_certificate_what_is_left_and_the_way_out_are_said(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    left = {
        "code": "teardown_incomplete",
        "message": "The host is not clean: services: slurm-x.",
        "way_out": "Stop it.",
    }
    scene.operation = scene.make_operation(kind="decommission", status="failed", error=left | {"retryable": True})
    scene.certificates = []
    assert gpuaas("operation", "certificate", "train") == 1
    printed = capsys.readouterr().out
    for words in ("No certificate", "services: slurm-x", "gpuaas operation retry op_1", "Stop it."):
        assert words in printed
