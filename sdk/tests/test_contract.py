"""The SDK and the contract: every call fits contracts/openapi.json, and every route has a call."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from gpuaas_sdk import Calls, errors, generate, models
from gpuaas_sdk.client import generated_facts
from gpuaas_sdk.client.adapter_detail import read_adapter_detail
from gpuaas_sdk.client.call import call
from gpuaas_sdk.client.request import Page, Request

CONTRACT = json.loads(generate.CONTRACT.read_text())
ANY_SCOPE = "the same as below a project, for operations that are in none"
ELSEWHERE = {
    ("POST", "/v1/operations/claim"): ANY_SCOPE,
    ("GET", "/v1/operations/{operation_id}"): ANY_SCOPE,
    **{
        ("POST", f"/v1/operations/{{operation_id}}/{verb}"): ANY_SCOPE
        for verb in (
            *("heartbeat", "progress", "complete", "fail", "return-claim"),
            *("retry", "cancel", "release-claim", "abandon"),
        )
    },
    ("POST", "/v1/token"): "auth.py asks for tokens",
    ("POST", "/v1/auth/session"): "for browsers",
    ("GET", "/v1/auth/session"): "for browsers",
    ("GET", "/v1/auth/oidc/{provider_id}/start"): "for browsers",
    ("GET", "/v1/auth/oidc/callback"): "for browsers",
    ("GET", "/healthz"): "for load balancers",
    ("GET", "/readyz"): "for load balancers",
    ("GET", "/v1/tenants/{tenant_id}/events/stream"): "events.follow",
    ("GET", "/v1/projects/{project_id}/events/stream"): "events.follow",
    ("POST", "/v1/projects/{project_id}/otlp/v1/traces"): "any OTLP exporter",
    ("POST", "/v1/projects/{project_id}/otlp/v1/logs"): "any OTLP exporter",
    ("POST", "/v1/enrol"): "the agent has its own client",
    ("POST", "/v1/renew-identity"): "the agent has its own client",
    ("GET", "/v1/agent/install.py"): "for hosts that have nothing yet",
    ("GET", "/v1/agent/{agent_version}"): "for hosts that have nothing yet",
    ("POST", "/v1/nodes/{node_id}/poll"): "the agent has its own client",
    ("POST", "/v1/nodes/{node_id}/tasks/{task_id}/renew"): "the agent has its own client",
    ("POST", "/v1/nodes/{node_id}/tasks/{task_id}/result"): "the agent has its own client",
    ("GET", "/v1/nodes/{node_id}/deliveries/{delivery_id}"): "the agent has its own client",
    ("PUT", "/v1/artifact-store/{sha256}"): "artifacts.push_file",
    ("PUT", "/v1/tenants/{tenant_id}/artifact-store/{sha256}"): "artifacts.push_file",
}
EXAMPLES = {str: "x", int: 1, bool: True, dict: {}, list: [], Mapping: {}, Sequence: []}


def every_call() -> dict[str, call[Any, Any]]:
    return {name: value for name, value in inspect.getmembers(Calls) if isinstance(value, call)}


def example(annotation: Any) -> Any:
    options = [option for option in get_args(annotation) if option is not NoneType] or [annotation]
    chosen = options[0] if NoneType in get_args(annotation) else annotation
    return EXAMPLES[getattr(chosen, "__origin__", chosen)]


def requested(one: call[Any, Any]) -> Request[Any]:
    """The request with every argument given."""
    hints, arguments, named = get_type_hints(one._describe), [], {}
    for parameter in list(inspect.signature(one._describe).parameters.values())[1:]:
        value = example(hints[parameter.name])
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            arguments.append(value)
    return one.request(*arguments, **named)


def route_of(request: Request[Any]) -> tuple[str, dict[str, Any]]:
    """The contract's route for a request; literal paths win over those with a placeholder."""
    for path in sorted(CONTRACT["paths"], key=lambda p: p.count("{")):
        if (
            re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.path)
            and request.method.lower() in CONTRACT["paths"][path]
        ):
            return path, CONTRACT["paths"][path][request.method.lower()]
    raise AssertionError(f"{request.method} {request.path} is not in the contract")


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if options := schema.get("anyOf"):
        return resolved(next(o for o in options if o.get("type") != "null"))
    return CONTRACT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def body_schema(operation: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    return resolved(content["application/json"]["schema"]) if content else {}


def answers(operation: dict[str, Any]) -> set[str]:
    """Names of what the contract says comes back."""
    good = [value for status, value in operation["responses"].items() if status < "300"]
    refs = {
        c["schema"]["$ref"].rsplit("/", 1)[1]
        for value in good
        for c in value.get("content", {}).values()
        if "$ref" in c["schema"]
    }
    return refs or {"NoneType"}


def name_of(answer: Any) -> str:
    if getattr(answer, "__origin__", None) is Page:
        return f"Page_{get_args(answer)[0].__name__}_"
    return answer.__name__


@pytest.mark.parametrize("name", every_call())
def test_a_call_fits_the_contract(name: str) -> None:
    request = requested(every_call()[name])
    path, operation = route_of(request)
    schema = body_schema(operation)
    known, sent = set(schema.get("properties", {})), set(request.body or {})
    assert sent <= known, f"{path} does not know {sent - known}"
    assert set(schema.get("required", [])) <= sent, f"{path} requires {set(schema.get('required', [])) - sent}"
    parameters = {p["name"] for p in operation.get("parameters", []) if p["in"] == "query"}
    assert set(request.query) == parameters, "query parameters differ"
    assert name_of(request.answer) in answers(operation)


def test_every_route_has_a_call() -> None:
    called = {(requested(c).method, route_of(requested(c))[0]) for c in every_call().values()}
    routes = {(method.upper(), path) for path, ops in CONTRACT["paths"].items() for method in ops}
    assert routes - called == set(ELSEWHERE), "write a call in gpuaas_sdk/calls, or say in ELSEWHERE why not"


def test_the_models_are_fresh() -> None:
    assert generate.generate(CONTRACT) == generate.MODELS.read_text(), "run python -m gpuaas_sdk.generate"


def test_the_sdk_knows_every_error_code_of_the_platform() -> None:
    contract = json.loads(generate.CONTRACT.with_name("errors.json").read_text())
    known = {code: msgspec.to_builtins(one) for code, one in errors.known_problems().items()}
    assert known == contract, "run python -m gpuaas_sdk.generate"


def test_the_generated_facts_are_fresh_and_name_the_final_states_of_an_operation() -> None:
    assert generate.facts(generate.CONTRACT.parent) == generate.FACTS.read_text(), "run python -m gpuaas_sdk.generate"
    assert "succeeded" in generated_facts.TERMINAL_STATES["operation"]
    assert generated_facts.LIVE_STATES["operation"] == ("queued", "running")
    assert generated_facts.ACTION_PERMISSIONS["member"]["drain"] == "apps.member.operate"


def test_every_model_can_be_decoded() -> None:
    for name, value in vars(models).items():
        if isinstance(value, type) and issubclass(value, msgspec.Struct):
            msgspec.json.Decoder(value)
            assert not value.__struct_config__.forbid_unknown_fields, f"{name} is not forward compatible"


def test_what_is_only_sent_leaves_out_what_was_not_said() -> None:
    report = models.MemberReport(member_id="mem_1", state="ready")
    assert json.loads(msgspec.json.encode(report)) == {"member_id": "mem_1", "state": "ready"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "enum": ["a", "b"]}, "str"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "str | None"),
        ({"type": ["integer", "null"]}, "int | None"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}, "list[Thing]"),
        (
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
            "dict[str, list[str]]",
        ),
        ({"anyOf": [{"$ref": "#/x/A"}, {"$ref": "#/x/B"}]}, "Any"),
        ({}, "Any"),
    ],
)
def test_a_schema_becomes_a_forward_compatible_type(schema: dict[str, Any], expected: str) -> None:
    assert generate.python_type(schema) == expected


def test_adapter_detail_of_another_shape_counts_as_missing() -> None:
    detail = {
        "step": 7,
        "host": "gpu1",
        "checks": [{"check": "ports", "ok": "yes"}, 3, {"check": "disk", "ok": False}],
        "preflight": {"host": "gpu1"},
        "last_failure": {"step": "join", "units": [{"unit": "slurmd.service"}]},
        "own": "of the app",
    }
    found = read_adapter_detail(detail)
    assert (found.step, found.host, found.preflight) == (None, "gpu1", None)
    assert [(check.check, check.ok) for check in found.checks or []] == [("ports", None), ("disk", False)]
    assert found.last_failure is not None
    assert found.last_failure.step == "join"
    assert read_adapter_detail(None).drift is None
