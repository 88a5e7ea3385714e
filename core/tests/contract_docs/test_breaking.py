"""The contract only grows: what would break a caller of the last release is named, unless it was announced."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.contract_docs.breaking import DOCUMENTS, breaks, compare_asyncapi, compare_openapi

pytestmark = pytest.mark.any_store

FOLDER = Path(__file__).parents[3] / "contracts"
FRESH = {name: (FOLDER / name).read_text() for name in DOCUMENTS}  # test_contracts.py shows that they are fresh
OPENAPI, ASYNCAPI = json.loads(FRESH["openapi.json"]), json.loads(FRESH["asyncapi.json"])
CREATE = "/v1/projects/{project_id}/instances"


def schema(document: Any, name: str) -> Any:
    return document["components"]["schemas"][name]


def drop(mapping: Any, *path: str) -> None:
    for part in path[:-1]:
        mapping = mapping[part]
    del mapping[path[-1]]


BREAKING: dict[str, Callable[[Any], object]] = {
    "GET /v1/whoami is gone": lambda d: drop(d, "paths", "/v1/whoami"),
    "the field name is gone": lambda d: drop(schema(d, "CreateInstance"), "properties", "name"),
    "body: the field inputs is newly required": lambda d: schema(d, "CreateInstance")["required"].append("inputs"),
    "the field status may newly be missing": lambda d: schema(d, "OperationView")["required"].remove("status"),
    ".progress.percent: may newly be string": lambda d: schema(d, "ProgressView")["properties"]["percent"].update(
        type="string"
    ),
    "the values failed are gone": lambda d: schema(d, "MemberReport")["properties"]["state"]["enum"].remove("failed"),
    "no longer answers 202": lambda d: drop(d["paths"][CREATE]["post"]["responses"], "202"),
    "no longer takes the query parameter cursor": lambda d: d["paths"][CREATE]["get"]["parameters"].pop(),
    "newly requires the query parameter wish": lambda d: d["paths"][CREATE]["get"]["parameters"].append(
        {"name": "wish", "in": "query", "required": True, "schema": {}}
    ),
    ".holder: the pattern is another": lambda d: schema(d, "Claim")["properties"]["holder"].update(pattern="^a$"),
    ".wait_s: maximum is now 10": lambda d: schema(d, "Claim")["properties"]["wait_s"].update(maximum=10),
}


@pytest.mark.parametrize("sentence", BREAKING)
def test_a_breaking_change_of_the_api_is_named(sentence: str) -> None:
    changed = copy.deepcopy(OPENAPI)
    BREAKING[sentence](changed)
    found = list(compare_openapi(OPENAPI, changed))
    assert any(sentence in one for one in found), found


GROWING: dict[str, Callable[[Any], object]] = {
    "a new route": lambda d: d["paths"].update({"/v1/new": d["paths"]["/v1/whoami"]}),
    "a new optional input": lambda d: schema(d, "CreateInstance")["properties"].update(wish={"type": "string"}),
    "a new field to read": lambda d: schema(d, "OperationView")["properties"].update(mood={"type": "string"}),
    "a new value to read": lambda d: schema(d, "EntryView")["properties"]["kind"].update(enum=["a", "b"]),
    "a field that is always there now": lambda d: schema(d, "EntryView")["required"].append("detail"),
    "an input no longer required": lambda d: schema(d, "CreateInstance")["required"].remove("name"),
    "a longer wait": lambda d: schema(d, "Claim")["properties"]["wait_s"].update(maximum=60),
}


@pytest.mark.parametrize("name", GROWING)
def test_growing_breaks_no_client(name: str) -> None:
    changed = copy.deepcopy(OPENAPI)
    GROWING[name](changed)
    assert changed != OPENAPI
    assert list(compare_openapi(OPENAPI, changed)) == []


def test_an_event_that_goes_or_loses_a_field_breaks_its_readers() -> None:
    changed = copy.deepcopy(ASYNCAPI)
    drop(changed, "components", "messages", "apps.instance.running")
    schema(changed, "apps.member")["required"].remove("member_id")
    drop(changed, "channels", "projectEvents")
    found = list(compare_asyncapi(ASYNCAPI, changed))
    assert "the event apps.instance.running is gone" in found
    assert any("data: the field member_id may newly be missing" in one for one in found), found
    assert any("the channel projectEvents" in one for one in found)


def test_a_break_passes_only_when_it_is_announced_and_only_while_it_is_one(tmp_path: Path) -> None:
    released = tmp_path / "released"
    released.mkdir()
    for name in DOCUMENTS:
        (released / name).write_text(FRESH[name])
    assert breaks(tmp_path, FRESH) == []
    changed = copy.deepcopy(OPENAPI)
    drop(changed, "paths", "/v1/whoami")
    now = FRESH | {"openapi.json": json.dumps(changed)}
    assert breaks(tmp_path, now) == ["GET /v1/whoami is gone"]
    (released / "breaks.json").write_text('{"GET /v1/whoami is gone": "no client uses it"}')
    assert breaks(tmp_path, now) == []
    assert breaks(tmp_path, FRESH) == ["breaks.json announces what is not broken: GET /v1/whoami is gone"]


def test_nothing_of_the_last_release_is_broken() -> None:
    assert (FOLDER / "released" / "openapi.json").exists()
    assert breaks(FOLDER, FRESH) == []
