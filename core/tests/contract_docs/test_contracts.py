"""The contracts in the repository are the ones the code speaks, and they are sound documents."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from gpuaas_core.authz.permissions import PERMISSIONS
from gpuaas_core.contract_docs.contracts import all_contracts, write_contracts
from gpuaas_core.events.event_log import TYPES
from gpuaas_core.kit.problems import CATALOGUE
from openapi_spec_validator import OpenAPIV31SpecValidator

pytestmark = pytest.mark.any_store

FOLDER = Path(__file__).parents[3] / "contracts"
DOCS = Path(__file__).parents[3] / "docs" / "reference"
SOURCE = Path(__file__).parents[2] / "src" / "gpuaas_core"
OTLP = {f"/v1/projects/{{project_id}}/otlp/v1/{signal}" for signal in ("traces", "logs")}  # exporters send no key
SIGNING_IN = {f"/v1/{path}" for path in ("sign-in", "token", "auth/session", "auth/oidc/token")}
WITHOUT_KEY = {"/v1/enrol", "/v1/invitations/accept"} | SIGNING_IN | OTLP


@pytest.fixture(scope="module")
def fresh() -> dict[str, Any]:
    return {name: json.loads(text) for name, text in all_contracts().items()}


def test_the_committed_contracts_are_fresh() -> None:
    assert write_contracts(FOLDER, DOCS, check=True) == [], (
        "run `make contracts` and read the difference before you commit it"
    )


def test_writing_makes_them_fresh_and_checking_touches_nothing(tmp_path: Path) -> None:
    folder, docs = tmp_path / "contracts", tmp_path / "docs"
    assert len(write_contracts(folder, docs, check=True)) == 16
    assert list(tmp_path.iterdir()) == []
    assert write_contracts(folder, docs, check=False) == []
    assert write_contracts(folder, docs, check=True) == []
    (folder / "errors.json").write_text("{}")
    (docs / "errors.md").write_text("# Nothing ever fails")
    assert write_contracts(folder, docs, check=True) == ["errors.json", "errors.md"]


def test_the_openapi_document_is_valid(fresh: dict[str, Any]) -> None:
    document = fresh["openapi.json"]
    assert document["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(document).validate()


def _operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(m, path, operation) for path, methods in document["paths"].items() for m, operation in methods.items()]


def test_every_post_but_a_few_requires_an_idempotency_key(fresh: dict[str, Any]) -> None:
    for method, path, operation in _operations(fresh["openapi.json"]):
        required = {p["name"] for p in operation.get("parameters", []) if p["in"] == "header" and p["required"]}
        assert ("Idempotency-Key" in required) == (method == "post" and path not in WITHOUT_KEY), f"{method} {path}"


def test_every_operation_names_its_permission_its_security_and_its_problem(fresh: dict[str, Any]) -> None:
    for method, path, operation in _operations(fresh["openapi.json"]):
        where = f"{method} {path}"
        public = operation["x-permission"] == "public"
        assert public or operation["x-permission"] in PERMISSIONS, where
        assert public == ("security" not in operation), where
        assert "application/problem+json" in operation["responses"]["default"]["content"], where
        assert "422" not in operation["responses"], where


def test_operation_ids_are_unique(fresh: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in _operations(fresh["openapi.json"])]
    assert len(ids) == len(set(ids))


def test_every_error_code_in_the_code_is_in_the_catalogue(fresh: dict[str, Any]) -> None:
    written = set()
    for path in SOURCE.rglob("*.py"):
        written |= set(re.findall(r'status, code, title = \d+, "([a-z_]+)"', path.read_text()))
    assert len(written) > 30
    assert written == set(fresh["errors.json"]) == set(CATALOGUE)


def test_every_error_has_a_status_a_sentence_and_a_way_out(fresh: dict[str, Any]) -> None:
    for code, error in fresh["errors.json"].items():
        assert re.fullmatch(r"[a-z][a-z_]{2,62}", code)
        assert 400 <= error["status"] <= 599, code
        assert len(error["title"]) > 5, code
        assert error["way_out"].endswith("."), code


def test_every_emitted_event_type_is_in_the_asyncapi_document(fresh: dict[str, Any]) -> None:
    document = fresh["asyncapi.json"]
    assert document["asyncapi"].startswith("3.")
    assert set(document["components"]["messages"]) == set(TYPES)
    written = set()
    for path in SOURCE.rglob("*.py"):
        written |= set(re.findall(r'ctx\.emit\(\s*"([a-z_.]+)"', path.read_text()))
    assert len(written) > 10
    assert written <= set(TYPES)


def test_every_permission_is_held_by_a_role(fresh: dict[str, Any]) -> None:
    document = fresh["permissions.json"]
    held = set(document["everybody"]).union(*document["roles"].values())
    assert set(document["permissions"]) == held


def test_every_permission_a_route_asks_for_is_used_and_the_rest_are_announced(fresh: dict[str, Any]) -> None:
    asked = {operation["x-permission"] for _, _, operation in _operations(fresh["openapi.json"])} - {"public"}
    waiting = {key for key in PERMISSIONS if key.startswith("scheduler.")} | {
        "iam.operator.appoint",
        "iam.tenant_admin.appoint",
    }
    assert set(PERMISSIONS) - asked == waiting, "a permission without a route: this list only shrinks"
