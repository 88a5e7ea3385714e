"""Tables that apps fill: the preflight of an operation, the drift of an instance."""

import pytest

from cli.tests.support.cli_stack import Gpuaas, Scene


def checks(host: str, *answers: bool) -> dict[str, object]:
    rows = [{"check": f"question_{n}", "ok": ok, "sentence": f"Answer {n} of {host}."} for n, ok in enumerate(answers)]
    return {"host": host, "checks": rows}


def test_an_operation_shows_every_question_to_every_host(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    matrix = [checks("node-a", True, True), checks("node-b", True, False)]
    scene.operation = scene.make_operation(status="failed", adapter_detail={"preflight": matrix})
    assert gpuaas("operation", "show", "train") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "question_" in line]
    assert [(line[0], line[1], line[2]) for line in lines] == [
        ("node-a", "question_0", "ok"),
        ("node-a", "question_1", "ok"),
        ("node-b", "question_0", "ok"),
        ("node-b", "question_1", "failed"),
    ]


def test_of_many_answers_only_the_noes_are_shown(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    matrix = [checks(f"node-{n}", *([True] * 9), n != 3) for n in range(20)]
    scene.operation = scene.make_operation(status="failed", adapter_detail={"preflight": matrix})
    assert gpuaas("operation", "show", "train") == 0
    printed = capsys.readouterr().out
    assert "Answer 9 of node-3." in printed
    assert "199 other checks passed." in printed
    assert "Answer 0" not in printed


def test_an_instance_shows_what_is_not_as_the_platform_made_it(
    gpuaas: Gpuaas, capsys: pytest.CaptureFixture[str], scene: Scene
) -> None:
    entry = {"what": "main", "where": "cluster", "kind": "person", "said": "State is DOWN.", "revert": "update it"}
    scene.instance["adapter_detail"] = {"drift": [entry]}
    assert gpuaas("instance", "show", "train") == 0
    printed = capsys.readouterr().out
    for words in ("person", "State is DOWN.", "update it"):
        assert words in printed


@pytest.mark.parametrize("wild", [7, "x", [1, "y"], {"a": 1}, [{"checks": 3}]])
def test_what_has_another_shape_is_passed_over(gpuaas: Gpuaas, scene: Scene, wild: object) -> None:
    scene.operation = scene.make_operation(status="failed", adapter_detail={"preflight": wild})
    scene.instance["adapter_detail"] = {"drift": wild}
    assert gpuaas("operation", "show", "train") == 0
    assert gpuaas("instance", "show", "train") == 0
