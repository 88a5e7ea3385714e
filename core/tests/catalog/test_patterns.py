"""Patterns of schemas mean what ECMA-262 says, as they do in a browser: `$` is the end, `\\d` is 0 to 9."""

import copy
from typing import Any

import pytest
from gpuaas_core.catalog.manifest import InputsInvalid, ManifestInvalid, check_inputs, check_manifest
from gpuaas_core.kit.json_schema import PatternInvalid, to_python, validator
from gpuaas_core.node_tasks.errors import TaskInvalid
from gpuaas_core.node_tasks.kinds import KINDS, asked_for

from core.tests.http.test_bad_input import check_problem
from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import World


def _form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _fits(form: dict[str, Any], inputs: dict[str, Any]) -> bool:
    try:
        check_inputs({"inputs_schema": form}, inputs)
    except InputsInvalid:
        return False
    return True


NAME = {"type": "string", "pattern": "^[a-z]+$"}
FORMS: dict[str, tuple[dict[str, Any], Any]] = {
    "a property": (_form(v=NAME), lambda text: {"v": text}),
    "the items of a list": (_form(v={"type": "array", "items": NAME}), lambda text: {"v": [text]}),
    "a reference": (_form(v={"$ref": "#/$defs/name"}) | {"$defs": {"name": NAME}}, lambda text: {"v": text}),
    "a reference elsewhere": (
        _form(v={"$ref": "#/x-mine/name"}) | {"x-mine": {"name": NAME}},
        lambda text: {"v": text},
    ),
    "one of several": (_form(v={"anyOf": [{"type": "null"}, NAME]}), lambda text: {"v": text}),
    "a property named pattern": (_form(pattern=NAME), lambda text: {"pattern": text}),
    "the names of an object": ({"type": "object", "propertyNames": NAME}, lambda text: {text: 1}),
    "names that have a rule": (
        {"type": "object", "patternProperties": {"^[a-z]+$": {"type": "integer"}}, "additionalProperties": False},
        lambda text: {text: 1},
    ),
    "names nothing else evaluates": (
        {"type": "object", "allOf": [{"patternProperties": {"^[a-z]+$": True}}], "unevaluatedProperties": False},
        lambda text: {text: 1},
    ),
}


@pytest.mark.parametrize("where", FORMS)
def test_a_trailing_newline_is_refused_wherever_a_form_has_a_pattern(where: str) -> None:
    form, inputs = FORMS[where]
    assert _fits(form, inputs("agent"))
    assert not _fits(form, inputs("agent\n"))
    assert not _fits(form, inputs("agent\r"))


def test_default_and_enum_values_are_data_and_stay_as_they_are() -> None:
    form = _form(v={"enum": [{"pattern": "a$"}, "b"]}, w={"const": {"patternProperties": {"$": 1}}})
    assert _fits(form, {"v": {"pattern": "a$"}, "w": {"patternProperties": {"$": 1}}})


MATCHES = [
    (r"^a$", "a", True),
    (r"^a$", "a\n", False),
    (r"^(a|b$)", "b\n", False),
    (r"^[$]$", "$", True),
    (r"^\$$", "$", True),
    (r"^\$$", "$\n", False),
    (r"^\\$", "\\\n", False),
    (r"^[\]$]+$", "]$", True),
    (r"^[[]$", "[", True),
    (r"^a$|^b$", "b\n", False),
    (r"^\d+$", "12", True),
    (r"^\d+$", "\u0661\u0662", False),
    (r"^[\d.]+$", "\u0661", False),
    (r"^\w+$", "a_1", True),
    (r"^\w+$", "\u00e9", False),
    (r"^\W$", "\u00e9", True),
    (r"^\s$", "\u00a0", True),
    (r"^[\s]$", "\u2028", True),
    (r"^\s$", "\x1c", False),
    (r"^\S$", "\ufeff", False),
    (r"^.$", "\r", False),
    (r"^.$", "\u2028", False),
    (r"^.$", "\u00e9", True),
    (r"^[.]$", "a", False),
    (r"^(?<one>a|b)\k<one>$", "aa", True),
    (r"^(?<one>a|b)\k<one>$", "ab", False),
    (r"^(a)\1$", "aa", True),
    (r"^(?!agent)[a-z]+$", "agent", False),
    (r"a(?<=a)b", "ab", True),
    (r"^[^]$", "\n", True),
    (r"^[]", "", False),
    (r"^a{2,3}$", "aaa", True),
    (r"b$", "ab", True),
]


@pytest.mark.parametrize(("pattern", "text", "matches"), MATCHES, ids=lambda value: ascii(value))
def test_a_pattern_matches_what_ecma_262_says(pattern: str, text: str, matches: bool) -> None:
    assert validator({"pattern": pattern}).is_valid(text) is matches


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "(?<=a+)b", "\\p{Lu}", "a\\"])
def test_a_pattern_that_does_not_compile_is_refused_when_the_version_is_added(pattern: str) -> None:
    with pytest.raises(PatternInvalid):
        to_python(pattern)
    for form in (_form(v={"pattern": pattern}), {"type": "object", "patternProperties": {pattern: True}}):
        manifest = copy.deepcopy(MANIFEST) | {"inputs_schema": form}
        with pytest.raises(ManifestInvalid) as refused:
            check_manifest(manifest, app_slug="echo", version="1.0.0")
        (error,) = refused.value.errors
        assert error["pointer"] == "/inputs_schema"
        assert repr(pattern) in error["message"]


def test_a_refusal_shows_the_pattern_as_its_author_wrote_it() -> None:
    with pytest.raises(InputsInvalid) as refused:
        check_inputs({"inputs_schema": _form(v=NAME)}, {"v": "agent\n"})
    assert refused.value.errors == [{"pointer": "/inputs/v", "message": r"'agent\n' does not match '^[a-z]+$'"}]
    names = {"type": "object", "patternProperties": {"^[a-z]+$": True}, "additionalProperties": False}
    with pytest.raises(InputsInvalid) as refused:
        check_inputs({"inputs_schema": names}, {"agent\n": 1})
    assert "^[a-z]+$" in refused.value.errors[0]["message"]
    assert "(?a:" not in refused.value.errors[0]["message"]


@pytest.mark.parametrize("name", ["app_slug", "version"])
def test_a_manifests_own_names_take_no_newline(name: str) -> None:
    given = {"app_slug": "echo", "version": "1.0.0"}
    manifest = copy.deepcopy(MANIFEST) | {name: given[name] + "\n"}
    with pytest.raises(ManifestInvalid) as refused:
        check_manifest(manifest, **(given | {name: given[name] + "\n"}))
    assert f"/{name}" in [error["pointer"] for error in refused.value.errors]


async def test_a_deployment_with_a_newline_after_an_input_is_refused(world: World) -> None:
    form = _form(greeting={"type": "string", "pattern": "^[A-Z][a-z]*$"})
    manifest = MANIFEST | {"version": "2.0.0", "inputs_schema": form}
    await world.admin.ok("/v1/apps/echo/versions", {"version": "2.0.0", "manifest": manifest})
    await world.admin.ok("/v1/apps/echo/versions/2.0.0/publish")
    body = world.deploy_body(world.allocations[0], version="2.0.0", inputs={"greeting": "Hello\n"})
    problem = check_problem(await world.boss.post(f"/v1/projects/{world.red}/instances", body), 422, "inputs_invalid")
    assert [error["pointer"] for error in problem["errors"]] == ["/inputs/greeting"]
    await world.boss.ok(f"/v1/projects/{world.red}/instances", body | {"inputs": {"greeting": "Hello"}})


GOOD_TASKS: dict[str, dict[str, Any]] = {
    "write_file": {"path": "/opt/gpuaas/a", "content": "", "mode": "0644", "owner": "root", "group": "root"},
    "fetch_artifact": {"artifact_id": "art_1", "path": "/opt/gpuaas/a", "mode": "0644"},
    "run_unit": {"unit": "gpuaas-a.service", "action": "start"},
    "upgrade_agent": {"sha256": "0" * 64, "size": 1, "version": "1.0"},
}


@pytest.mark.parametrize("kind", GOOD_TASKS)
def test_no_argument_of_a_task_takes_a_trailing_newline(kind: str) -> None:
    good, by = GOOD_TASKS[kind], KINDS[kind].asked_by
    asked_for(kind, good, by)
    for name, value in good.items():
        if isinstance(value, str) and name != "content":
            with pytest.raises(TaskInvalid) as refused:
                asked_for(kind, good | {name: f"{value}\n"}, by)
            assert [error["pointer"] for error in refused.value.errors] == [f"/arguments/{name}"]
